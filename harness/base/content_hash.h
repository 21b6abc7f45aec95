// SPDX-License-Identifier: Apache-2.0
// A file by its content; of what the loader maps, by what it maps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace moegate {

/// Of a file: size, seconds and nanoseconds of its change and of that of its state, number. Another
/// one: its content may be another.
using FileStamp = std::array<int64_t, 6>;

/// Of a file by its path; nothing where there is none, or it is no regular file.
std::optional<FileStamp> stamp_of(const std::string& path);

/// 16 hex digits; empty where it cannot be read. Of a library neither debug information nor the build's id
/// counts, nor the folders in which it looks for others. Of what is longer than 64 MiB the first and
/// the last MiB are read, and its time counts.
std::string content_hash(const std::string& path, const FileStamp& stamp);
/// Of the file as it is now; empty, too, where there is none.
std::string content_hash(const std::string& path);

}  // namespace moegate
