#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/ab with a stub for ci/build-commit: which commits it builds, what it gives to `moegate ab`, which exit code
# comes back.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh disable=SC1091
. "$(dirname "$0")/installed_folder.sh"
cp "$root/ci/ab" "$folder/ci/"
# The program of a commit is built/COMMIT/moegate; one called broken does not build, and unknown there is none.
cat >"$folder/ci/build-commit" <<EOF
#!/usr/bin/env bash
[ "\$1" != broken ] || exit 1
[ "\$1" != unknown ] || exit 2
echo "$folder/built/\$1/moegate"
EOF
chmod +x "$folder/ci/build-commit"
for commit in main feature --worktree; do
  stub "$folder/built/$commit/moegate"
  stub "$folder/built/$commit/moegate-judge"
done
stub "$folder/built/old/moegate"
built=$folder/built
calls() { cat "$scratch/calls"; }
# sides BASE HEAD [LABEL]
sides() {
  echo "<moegate-judge><ab><--base><program=$built/$1/moegate><--base><label=$1>$(
  )<--head><program=$built/$2/moegate><--head><label=${3-$2}>"
}

fresh
expect "exit code of one commit" 0 "$(code "$folder/ci/ab" main)"
expect "the working tree" "$(sides main --worktree 'working tree')" "$(calls)"
expect "in the clone, whose project it is" "$folder" "$(cat "$scratch/place")"
expect "the command that a reader can repeat" "ci/ab main" "$(tail -n 1 "$scratch/typed")"

fresh 10
expect "exit code of the verdict" 10 "$(cd "$folder/built" && code ../ci/ab main feature --filter 'a b|c' --out v.json)"
expect "two commits and flags" "$(sides main feature)<--filter><a b|c><--out><v.json>" "$(calls)"
expect "files are where they are named" "$folder/built" "$(cat "$scratch/place")"
expect "quoted for a shell" "ci/ab main feature --filter a\\ b\\|c --out v.json" "$(tail -n 1 "$scratch/typed")"

# The head's limits, clocks and exit handlers are not asked.
fresh
for commit in main feature; do
  sed "s/<%s>/<$commit %s>/" "$folder/built/$commit/moegate-judge" >"$scratch/named"
  cat "$scratch/named" >"$folder/built/$commit/moegate-judge"
done
code "$folder/ci/ab" main feature >/dev/null
expect "the base judges" 1 "$(grep -c '^<main moegate-judge><main ab>' "$scratch/calls")"
fresh
code "$folder/ci/ab" old feature >/dev/null
expect "the head's judge, for a base from before" 1 "$(grep -c '^<feature moegate-judge>.*ab>' "$scratch/calls")"

fresh
mkdir -p "$folder/out"
exec 7>"$folder/out/.lock"
flock 7
expect "exit code beside another measurement" 21 "$(code "$folder/ci/ab" main)"
expect "nothing measured beside another" '' "$(cat "$scratch/calls")"
exec 7>&-

fresh
expect "a base that does not build" 21 "$(code "$folder/ci/ab" broken)"
expect "is named" 1 "$(grep -c '^ci/ab: broken does not build' "$scratch/printed")"
expect "a head that does not build" 21 "$(code "$folder/ci/ab" main broken)"
expect "no such commit" 2 "$(code "$folder/ci/ab" main unknown)"
expect "nothing measured then" '' "$(cat "$scratch/calls")"
expect "no commit" 2 "$(code "$folder/ci/ab")"
expect "an option where the base is due" 2 "$(code "$folder/ci/ab" --suite s)"
expect "exit code of --help" 0 "$(code "$folder/ci/ab" --help)"
expect "--help says how it is called" 1 "$(grep -c '^  ci/ab BASE' "$scratch/printed")"
finish
