#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/ab with a stub for ci/build-commit: which commits it builds, what it gives to `moegate ab`, which exit code
# comes back.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh disable=SC1091
. "$(dirname "$0")/installed_folder.sh"
cp "$root/ci/ab" "$root/ci/run-judge" "$folder/ci/"
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
db=$folder/out/ab.sqlite
doctor() { echo "<moegate-judge><doctor><--device><$1><--db><$2>"; }
# Where it is not given, the verdict goes to a scratch folder.
calls() { sed 's/<--out><[^>]*>//' "$scratch/calls"; }
sides() { echo "<moegate-judge><ab><--base><program=$built/$1/moegate><--head><program=$built/$2/moegate>"; }

fresh
expect "exit code of one commit" 0 "$(code "$folder/ci/ab" main)"
expect "the working tree, on a GPU" \
  "$(doctor cuda:0 "$db")
$(sides main --worktree)<--base><label=main><--head><label=working tree><--suite><nightly><--db><$db>" \
  "$(calls)"
expect "the command that a reader can repeat" "ci/ab main" "$(tail -n 1 "$scratch/typed")"

fresh 10
echo 'host,some CPU,x86-64' >"$scratch/device"
mkdir -p "$folder/out"
touch "$db"
expect "exit code of the gate" 10 "$(code "$folder/ci/ab" main feature --filter 'a b|c')"
expect "two commits, on a host, with ceilings in the store" \
  "$(sides main feature)<--base><label=main><--head><label=feature><--suite><smoke><--db><$db><--filter><a b|c>" \
  "$(calls)"
expect "quoted for a shell" "ci/ab main feature --filter a\\ b\\|c" "$(tail -n 1 "$scratch/typed")"

fresh
expect "exit code with flags of its own" 0 \
  "$(code "$folder/ci/ab" main feature --suite s --db "$scratch/my store" --device=cuda:2)"
expect "what is given is not given twice" \
  "$(doctor cuda:2 "$scratch/my store")
$(sides main feature)<--base><label=main><--head><label=feature><--suite><s><--db><$scratch/my store><--device=cuda:2>" \
  "$(calls)"

fresh 0 10
expect "the verdict has the word" 10 "$(code "$folder/ci/ab" main --out "$scratch/v.json")"
fresh 0 none
expect "no verdict is a failure" 1 "$(code "$folder/ci/ab" main)"

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
