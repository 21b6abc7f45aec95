// SPDX-License-Identifier: Apache-2.0
// This file hashes bytes, texts and files, so that two of them can be told apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moegate {

/// 64-bit hash of a byte range; pass the previous result as `seed` to continue.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);

/// SHA-256 of a text as 64 hex digits, like sha256sum's.
std::string sha256(const std::string& text);

/// Of all that stands before these places of a text, which rise.
std::vector<std::string> sha256_before(const std::string& text, const std::vector<size_t>& places);

/// Of a file: size, seconds and nanoseconds of its change and of that of its state, number. Another
/// one: its content may be another.
using FileStamp = std::array<int64_t, 6>;

/// Of a file by its path; nothing where there is none, or it is no regular file.
std::optional<FileStamp> stamp_of(const std::string& path);

/// 16 hex digits; empty where it cannot be read. Of a library neither debug information nor the
/// build's id counts, nor the folders in which it looks for others. Of what is longer than 64 MiB
/// the first and the last MiB are read, and its time counts.
std::string content_hash(const std::string& path, const FileStamp& stamp);
/// Of the file as it is now; empty, too, where there is none.
std::string content_hash(const std::string& path);

}  // namespace moegate
