#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What judges is values in, verdict out: the program given, which links the room `judge` and no other, needs no
# database, GPU, worker or benchmark library, and the archives given define and call nothing of theirs.
#
#   tests/scripts/judge_links_test.sh PROGRAM ARCHIVE...
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: judge_links_test.sh PROGRAM ARCHIVE..." >&2; exit 1; }
program=$1
shift
failed=0
refuse() { echo "$1: has what judging does not need:"$'\n'"$2"; failed=1; }

libraries=$(readelf --dynamic --wide "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$libraries" ] || { echo "$program: needs no libraries at all; is it a program?" >&2; exit 1; }
bad=$(grep -E '^lib(sqlite3|cuda|cudart|cupti|nvidia|cublas|benchmark)' <<<"$libraries") && refuse "$program" "$bad"

names='(sqlite3_|(cuda|cupti|cublas|cu)[A-Z]|benchmark::|moegate::(Tensor|Device|Database|Statement)(::|\())'
for file in "$program" "$@"; do
  symbols=$(nm --demangle "$file" 2>/dev/null)
  [ -n "$symbols" ] || { echo "$file: has no symbols" >&2; exit 1; }
  bad=$(grep -m 5 -E " $names" <<<"$symbols") && refuse "$file" "$bad"
done
[ $failed -ne 0 ] || echo "$(wc -l <<<"$libraries") libraries, $# archives: only values"
exit $failed
