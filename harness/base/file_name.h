// SPDX-License-Identifier: Apache-2.0
// Names of files in a folder: which texts may be one, and one that nobody guesses.
#pragma once

#include <string>
#include <string_view>

namespace moegate {

/// Whether a text may name a file in a folder, and nothing elsewhere: no '/', no control characters, and it does
/// not begin with '.' or '-'. What a store or a baseline says becomes a part of a path, or of a command, only so.
bool is_file_name(std::string_view text);

/// 16 hex digits for what is made beside a file: another user cannot lay a link there beforehand.
std::string random_name();

}  // namespace moegate
