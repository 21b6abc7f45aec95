#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/claims in an installed folder with a stub of moegate: what is measured, resumed and left out.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh disable=SC1091
. "$(dirname "$0")/expect.sh"

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
# claims ARGUMENTS: $ended is its exit code, $asked what moegate was asked to run, a line each.
claims() {
  : >bin/said
  ended=0
  ci/claims "$@" 2>/dev/null || ended=$?
  asked=$(cat bin/said)
}

claims
expect "the exit code" 0 "$ended"
expect "every pull request in a new store" "--suite pr-a-1 --device cuda --label pr-a-1 --db $PWD/claims.sqlite
--suite pr-b-2 --device cuda --label pr-b-2 --db $PWD/claims.sqlite
--suite pr-c-3 --device cuda --label pr-c-3 --db $PWD/claims.sqlite" "$asked"

touch s.sqlite
printf 'run\tlabel\tstarted\tstatus\n1\tpr-a-1\tt\tinterrupted\n2\tpr-a-1\tt\tcomplete\n3\tpr-b-2\tt\tinterrupted\n' >bin/runs
claims --db s.sqlite --device cuda:1
expect "what is there is left out, what was cut is resumed" "--resume=3 --db s.sqlite
--suite pr-c-3 --device cuda:1 --label pr-c-3 --db s.sqlite" "$asked"

export FAILING=pr-a-1 CODE=11
claims --db new.sqlite
expect "the exit code of a wrong output" 11 "$ended"
expect "a wrong output stops nothing" 3 "$(wc -l <bin/said)"
export CODE=130
claims --db new.sqlite
expect "the exit code of an interrupt" 130 "$ended"
expect "somebody who interrupts stops it" 1 "$(wc -l <bin/said)"
claims --suite tiny
expect "the exit code of an unknown argument" 2 "$ended"
expect "an unknown argument runs nothing" "" "$asked"
finish
