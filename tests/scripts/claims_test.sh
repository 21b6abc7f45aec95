#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/claims in an installed folder with a stub of moegate: what is measured, resumed and left out.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
expect() {
  [ "$2" = "$3" ] && return
  printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3" >&2
  failures=$((failures + 1))
}

mkdir -p "$scratch/ci" "$scratch/bin" "$scratch/suites"
cp "$root/ci/claims" "$scratch/ci/"
touch "$scratch/suites/"{pr-a-1,pr-b-2,pr-c-3,tiny}.suite
cat >"$scratch/bin/moegate" <<'END'
#!/usr/bin/env bash
case $1 in
  list) cat "${0%/*}/runs" ;;
  run) echo "${@:2}" >>"${0%/*}/said"; case $* in *"${FAILING:-nothing}"*) exit "$CODE" ;; esac ;;
esac
END
chmod +x "$scratch/bin/moegate"
cd "$scratch"
# claims EXIT CODE, ARGUMENTS: what moegate was asked to run, of a line each
claims() {
  local code=0
  : >bin/said
  ci/claims "${@:2}" 2>/dev/null || code=$?
  expect "the exit code of $*" "$1" "$code"
  cat bin/said
}

expect "every pull request in a new store" "--suite pr-a-1 --device cuda --label pr-a-1 --db $PWD/claims.sqlite
--suite pr-b-2 --device cuda --label pr-b-2 --db $PWD/claims.sqlite
--suite pr-c-3 --device cuda --label pr-c-3 --db $PWD/claims.sqlite" "$(claims 0)"

touch s.sqlite
printf 'run\tlabel\tstarted\tstatus\n1\tpr-a-1\tt\tinterrupted\n2\tpr-a-1\tt\tcomplete\n3\tpr-b-2\tt\tinterrupted\n' >bin/runs
expect "what is there is left out, what was cut is resumed" "--resume=3 --db s.sqlite
--suite pr-c-3 --device cuda:1 --label pr-c-3 --db s.sqlite" "$(claims 0 --db s.sqlite --device cuda:1)"

export FAILING=pr-a-1 CODE=11
expect "a wrong output stops nothing" 3 "$(claims 11 --db new.sqlite | wc -l)"
export CODE=130
expect "somebody who interrupts does" 1 "$(claims 130 --db new.sqlite | wc -l)"
expect "an unknown argument" "" "$(claims 2 --suite tiny)"
exit $((failures > 0))
