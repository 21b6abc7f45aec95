#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The story of a team that has moegate from a wheel, and kernels in C++ and Python in a repository of its own: begun by
# `moegate new`, a night, blessed, a regression, waived, expired, an A/B, bisected, pages. One file, no flag, and nothing
# is written into what is installed.
#
#   tests/scripts/team_test.sh BUILD
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "skipped: /usr/bin/python3 has no numpy"; exit 77; }
export XDG_CACHE_HOME=$scratch/cache GIT_CONFIG_GLOBAL=/dev/null CCACHE_DISABLE=1
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$scratch/site
unset MOEGATE_PYTHON MOEGATE_HOME MOEGATE_DB

cmake --install "$1" --prefix "$scratch/installed" >/dev/null
wheel=$("$root/ci/wheel" "$scratch/installed" --out "$scratch/out")
mv "$scratch/installed" "$scratch/gone"
/usr/bin/python3 - "$wheel" "$PYTHONPATH" <<'END'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for member in wheel.infolist():
    path = wheel.extract(member, sys.argv[2])
    __import__("os").chmod(path, member.external_attr >> 16)
END
chmod -R a-w "$PYTHONPATH"
# installed: all that there is, with times.
installed() { find "$PYTHONPATH" -printf '%p %T@ %s\n' | sort; }
installed >"$scratch/before"

moegate() { /usr/bin/python3 -m moegate "$@"; }
git() { command git -c user.name=a -c user.email=a@b "$@"; }
commit() { git add -A && git commit -q -m "$1" && git tag "$1"; }
# measured RATIO: the newest run has what a quiet machine would have measured: `quick` takes so much of the yardstick's
# time for 64 tokens, and its code is another one where that is not 1.
measured() {
  /usr/bin/python3 - "$1" <<'END'
import sqlite3, sys
db = sqlite3.connect("out/results.sqlite")
db.execute(
    "UPDATE result SET checksum = 0, verified_checksum = 0, impossible = 0, suspect_warm = 0, invalid = 0, flags = 0, "
    "slow = 0, status = 'ok', why = '', timer = 'clock', samples = 20, span_ns = 1e5, min_ns = 9e4, mean_ns = 1e5, "
    "yardstick = 'plain', yardstick_code = 'c0de', judged = iif(variant = 'plain', 'is_yardstick', 'ratio'), "
    "ratio = r, ratio_low = r, ratio_high = r, mean_ratio = r, code = iif(r = 1, code, 'changed') FROM "
    "(SELECT iif(variant = 'quick' AND key LIKE '%tokens=64', ?, 1) AS r, result_id AS id "
    "FROM result JOIN bench_case USING (case_id)) WHERE id = result_id AND "
    "process_id IN (SELECT process_id FROM process WHERE run_id = (SELECT max(run_id) FROM run))",
    (float(sys.argv[1]),))
db.commit()
END
}

mkdir "$scratch/team" && cd "$scratch/team"
git init -q -b work .
expect "an operator is begun" 0 "$(code moegate new operator my_norm)"
expect "with the repository's file" 1 "$(says '^moegate.ini$')"
build=$(sed -n 's/^  \(cmake .*\)/\1/p' "$scratch/printed")
cat >quick.py <<'END'
import moegate
import numpy as np

FACTOR = 1


@moegate.variant("my_norm", "quick", backend="host")
def launch(p):
    rms = np.sqrt(np.mean(p.x * p.x, axis=1, keepdims=True) + np.float32(1e-6))
    p.out[:] = np.float32(FACTOR) * p.x / rms * p.weight
END
sed -i 's/^module = .*/&, quick.py/' moegate.ini
printf 'budget = 30s\nrounds = 1\n[pull-request]\nrounds = 2,2,0\n' >>moegate.ini
echo build/ >.gitignore
expect "it builds as is said" 0 "$(code sh -c "$build")"
expect "it is right" 0 "$(code moegate verify)"
expect "in both languages" 1 "$(says ': 15 ok$')"
commit begun

expect "a night has nothing to compare with" 0 "$(code moegate nightly)"
expect "and spoils the team's outputs" 1 "$(says 'token dropped')"
night() { code moegate run --rounds 3 --min-samples 10 --max-samples 20 --budget 100ms; }
expect "a first night" 0 "$(night)"
measured 1
expect "is blessed" 0 "$(code moegate bless --reason first --accept dirty)"
commit blessed
expect "and judged by itself" 0 "$(code moegate gate)"
expect "a second one" 0 "$(night)"
measured 1.24
expect "is slower, and fails" 10 "$(code moegate gate)"
waive() { # EXPIRES
  cat >waivers.ini <<END
[W-1]
cases = my_norm/.*tokens=64
max_cases = 1
variant = quick
class = $(basename baselines/*/)
metric = latency
max_regression = 25%
reason = the new compiler
issue = team/kernels/1
owner = alice
created = $(date -d "$1 -30 days" +%F)
expires = $1
END
}
waive "$(date -d '+20 days' +%F)"
expect "a waiver lets it pass" 0 "$(code moegate gate)"
expect "and is named" 1 "$(says '1 row waived by W-1')"
waive 2020-01-20
expect "until it ends" 10 "$(code moegate gate)"
expect "which is said" 1 "$(says 'waiver W-1 of alice expired')"
rm waivers.ini
expect "what changed" 0 "$(code moegate report changes --against 4)"
expect "is one row" 1 "$(says '1 slower.* of 15 rows')"

comment() { sed -i "1s/^/\/\/ $1\n/" my_norm/my_norm_eight_sums.cc && commit "$1"; }
comment one
sed -i 's/^FACTOR = 1/FACTOR = 1.5/' quick.py && commit wrong
# Whatever the machine does meanwhile: rows of one code that are off by twice --fail-at are measured all the same.
expect "a comment is no change" 0 "$(code moegate ab begun one --variant eight_sums --fail-at 1000%)"
expect "the code is the same, wherever it was built" 1 "$(says '5 identical')"
expect "a wrong output fails a pull request" 11 "$(code moegate ab begun --variant quick)"
expect "of another commit" 0 "$(code moegate bisect --base begun --filter tokens=64 --variant quick)"
expect "that is named" 1 "$(says "first bad commit: $(git rev-parse wrong)")"
expect "pages are written" 0 "$(code moegate pages)"
expect "here" 0 "$(code test -f out/pages/index.html)"
expect "the repository has no change" "" "$(git status --porcelain)"
installed >"$scratch/after"
expect "nor has what is installed" 0 "$(code cmp "$scratch/before" "$scratch/after")"
finish
