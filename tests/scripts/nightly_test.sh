#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/nightly in an installed folder: what it is given goes to `moegate nightly` as it is, and so does the exit
# code come back.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh disable=SC1091
. "$(dirname "$0")/installed_folder.sh"
stub "$folder/bin/moegate-judge"
cp "$root/ci/nightly" "$root/ci/run-judge" "$folder/ci/"

cd "$scratch"
fresh
expect "exit code of no arguments" 0 "$(code "$folder/ci/nightly")"
expect "call without arguments" "<moegate-judge><nightly><--out><$scratch/out>" "$(cat "$scratch/calls")"

fresh
expect "exit code" 0 "$(code "$folder/ci/nightly" --suite a --suite './my suites/b.suite' --device cuda:1 \
  --out "$scratch/an out" --require-baseline --github --rounds 7)"
expect "arguments, in order and whole" \
  "<moegate-judge><nightly><--suite><a><--suite><./my suites/b.suite><--device><cuda:1><--out><$scratch/an out>\
<--require-baseline><--github><--rounds><7>" "$(cat "$scratch/calls")"

for exit in 2 10 12 21 22 30 130; do
  fresh "$exit"
  expect "exit code $exit" "$exit" "$(code "$folder/ci/nightly" --no-such-option)"
done

# The judge's process ended with 0, whatever ended it: the verdict has the word.
fresh 0 10
expect "exit code of the verdict" 10 "$(code "$folder/ci/nightly")"
fresh 0 none
expect "no verdict is a failure" 1 "$(code "$folder/ci/nightly" --out "$scratch/an out")"
expect "and says so" 1 "$(grep -c 'without a verdict' "$scratch/printed")"
fresh 0 0
echo ' "exit": 0' >"$scratch/an out/verdict.json"
fresh 0 none
expect "an earlier night's verdict is not this one's" 1 "$(code "$folder/ci/nightly" --out="$scratch/an out")"

# A killed night takes what it started with it.
slow=$folder/bin/moegate-judge
cp "$slow" "$scratch/quick"
printf '#!/usr/bin/env bash\necho $$ >>"%s/pids"\nexec sleep 60\n' "$scratch" >"$slow"
"$folder/ci/nightly" >/dev/null 2>&1 &
night=$!
until [ -s "$scratch/pids" ]; do sleep 0.05; done
kill "$night"
wait "$night" || true
expect "nothing measures on" gone "$(kill -0 "$(cat "$scratch/pids")" 2>/dev/null && echo "still there" || echo gone)"
cp "$scratch/quick" "$slow"

for help in --help -h; do
  fresh 1
  expect "exit code of $help" 0 "$(code "$folder/ci/nightly" "$help")"
  expect "$help says how it is called" 1 "$(grep -c '^  ci/nightly \[--require-baseline\]' "$scratch/printed")"
  expect "$help ends with the header" 0 "$(grep -c 'set -euo' "$scratch/printed" || true)"
  expect "$help runs nothing" '' "$(cat "$scratch/calls")"
done

# From another folder, by a relative path; a suite's path stays the caller's.
fresh
expect "exit code from elsewhere" 0 "$(code "an installed folder/ci/nightly" --suite ./s.suite)"
expect "call from elsewhere" "<moegate-judge><nightly><--out><$scratch/out><--suite><./s.suite>" "$(cat "$scratch/calls")"
expect "the caller's folder" "$scratch" "$(cat "$scratch/place")"
finish
