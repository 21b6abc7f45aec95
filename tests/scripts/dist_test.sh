#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/dist replaces a folder of its own and no other, and names what it does not know. That what it makes works elsewhere
# is what an installed folder's night shows.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"

expect "an unknown option is refused" 2 "$(code "$root/ci/dist" --bases)"
mkdir "$scratch/mine"
echo precious >"$scratch/mine/file"
expect "a folder of something else is refused" 2 "$(code "$root/ci/dist" "$scratch/mine")"
expect "and left alone" precious "$(cat "$scratch/mine/file")"
expect "the message names it" 1 "$(grep -c "$scratch/mine" "$scratch/printed")"
finish
