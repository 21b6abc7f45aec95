#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every include keeps to the rooms: a file of harness/ROOM includes only headers of its own room and of those
# that the table in harness/README.md allows it; a file of kernels/ only headers of harness/kernel and of
# kernels/. Tests and what only they include (*_test.*, *_fixture.h, *testing.h) may use everything.
#
#   tests/scripts/layers_test.sh [ROOT]
set -euo pipefail
root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$root"

# "room allowed", a line each, from the rows "| `room` | allowed, allowed | ..." of the table.
allowed=$(awk -F'|' '
  /^## / { table = 0 }
  /^\| room \| may use \|/ { table = 1; next }
  table && $2 ~ /`/ {
    gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3)
    print $2, $2
    n = split($3, names, ",")
    for (i = 1; i <= n; ++i) if (names[i] ~ /^[a-z]+$/) print $2, names[i]
  }' harness/README.md)
[ -n "$allowed" ] || { echo "harness/README.md: no table '| room | may use |'" >&2; exit 1; }

for folder in harness/*/; do
  room=$(basename "$folder")
  grep -q "^$room " <<<"$allowed" || { echo "$folder is not in the table of harness/README.md" >&2; exit 1; }
done

grep -rnE --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.in' \
    '^ *# *include "(harness|kernels|tests)/' harness kernels |
  awk -F: -v allowed="$allowed" '
    BEGIN {
      n = split(allowed, lines, "\n")
      for (i = 1; i <= n; ++i) ok[lines[i]] = 1
    }
    {
      file = $1
      if (file ~ /(_test\.[a-z]+|_fixture\.h|testing\.h)$/) next
      split(file, from, "/")
      match($0, /"[^"]*"/)
      header = substr($0, RSTART + 1, RLENGTH - 2)
      split(header, to, "/")
      ++seen
      if (from[1] == "kernels") {
        good = to[1] == "kernels" || (to[1] == "harness" && to[2] == "kernel")
      } else if (from[3] == "") {
        good = to[1] == "harness"  # main.cc stands above the rooms
      } else {
        good = to[1] == "harness" && (from[2] " " to[2]) in ok
      }
      if (!good) { print file ":" $2 ": includes " header ", which its room may not use"; bad = 1 }
    }
    END {
      print seen + 0 " includes looked at"
      exit bad || !seen
    }'
