# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of scripts: $root, a folder $scratch that goes with the test, and expectations. Call expect in the
# test's own shell, where it counts.

# shellcheck disable=SC2034  # for the tests
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect WHAT WANTED GOT
expect() {
  [ "$2" = "$3" ] && return
  printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3" >&2
  [ ! -f "$scratch/printed" ] || sed 's/^/  | /' "$scratch/printed" | tail -60 >&2
  failures=$((failures + 1))
}

finish() {
  [ "$failures" -eq 0 ] || { echo "$failures failures" >&2; exit 1; }
  echo "passed"
}
