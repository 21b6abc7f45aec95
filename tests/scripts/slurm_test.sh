#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Campaigns over a real Slurm cluster of two nodes, on the host device: a task that is killed and started again, a shard
# that never ran, stores merged in any order, a planted failure. One verdict each, and its exit code.
#
#   slurm_test.sh SABOTEURS JUDGE
set -euo pipefail
saboteurs=$1 judge=$2 root='' scratch='' folder=''  # the last three are set below
# shellcheck source=tests/scripts/installed_folder.sh disable=SC1091
. "$(dirname "$0")/installed_folder.sh"
# shellcheck source=tests/scripts/slurm_cluster.sh disable=SC1091
. "$(dirname "$0")/slurm_cluster.sh"
cluster=$scratch/cluster
trap 'stop_cluster "$cluster"; sleep 0.5; rm -rf "$scratch"' EXIT
start_cluster "$cluster"

ln -s "$saboteurs" "$folder/bin/moegate"
ln -s "$judge" "$folder/bin/moegate-judge"
mkdir -p "$folder/suites" "$folder/baselines"
cp -r "$root/ci/slurm" "$root/ci/run-judge" "$folder/ci/"
cp -r "$root/reports" "$folder/"
for suite in one two three; do
  case $suite in one) tokens='3, 4' ;; two) tokens='5, 6' ;; three) tokens='7, 8, 9' ;; esac
  printf 'op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[m]\ntokens = %s\n' "$tokens" >"$folder/suites/$suite.suite"
done
export MOEGATE_HOME=$folder MOEGATE_TEST_ONE_PROCESSOR=1
rows=21  # 7 cases of 3 variants

# ask STORE SQL: the values of the first column.
ask() {
  python3 - "$1" "$2" <<'PYTHON'
import sqlite3, sys
try:
    for row in sqlite3.connect(sys.argv[1], timeout=10).execute(sys.argv[2]):
        print(row[0])
except sqlite3.OperationalError:
    print("none")  # not yet
PYTHON
}
# until_true COMMAND...: within a minute or two.
until_true() {
  for _ in $(seq 600); do
    if "$@"; then return 0; fi
    sleep 0.2
  done
  echo "FAILED: waited in vain for: $*" >&2
  tail -n 5 "$scratch"/*/*.log "$cluster"/*.log >&2
  exit 1
}
submit() {
  "$folder/ci/slurm/submit" --device host --gres gpu:1 --time 5 --sbatch --cpus-per-task=1 "$@"
}
three_suites=(--shards 2 --suite one --suite two --suite three --rounds 2 --run --min-samples --run 10
  --run --budget --run 150ms --gate --candidate --gate "$scratch/candidates")

# --- three suites on two nodes; the first task is killed once it has a row, and started again
out=$scratch/first
MOEGATE_SABOTEUR=none submit "${three_suites[@]}" --out "$out" --label night >"$scratch/submitted"
array=$(sed -n 's/^measuring: job \([0-9]*\),.*/\1/p' "$scratch/submitted")
has_a_row() { [[ $(ask "$out/shard-1.sqlite" "SELECT count(*) > 0 FROM result") == 1 ]]; }
until_true has_a_row
begun=$(ask "$out/shard-1.sqlite" "SELECT uuid FROM run")
scontrol requeue "${array}_1"
is_started_again() { grep -q 'start 1$' "$out/shard-1.log"; }
until_true is_started_again
until_true test -s "$out/exit"
expect "exit code of the first campaign" 0 "$(cat "$out/exit")"
expect "its verdict" 1 "$(grep -c '^# \|NO BASELINE' "$out/report.md" | sed 's/[1-9][0-9]*/1/')"
expect "nodes that measured" 'n1 n2' "$(sed -n 's/^task . on \(n[12]\),.*/\1/p' "$out"/shard-*.log | sort -u | xargs)"
expect "runs of the campaign" 1 "$(ask "$out/results.sqlite" "SELECT count(*) FROM run")"
expect "its state" complete "$(ask "$out/results.sqlite" "SELECT status FROM run")"
expect "every row in both rounds, once" $((2 * rows)) "$(ask "$out/results.sqlite" \
  "SELECT count(DISTINCT key || variant || round) FROM result JOIN process USING (process_id) JOIN bench_case USING (case_id)")"
expect "and none twice" $((2 * rows)) "$(ask "$out/results.sqlite" "SELECT count(*) FROM result")"
expect "suites" 3 "$(ask "$out/results.sqlite" "SELECT count(DISTINCT suite) FROM run_case")"
expect "the killed shard went on with its run" "$begun" "$(ask "$out/results.sqlite" "SELECT uuid FROM shard WHERE shard = 1")"
expect "samples came along" 1 "$(ask "$out/results.sqlite" \
  "SELECT (SELECT count(*) FROM sample) = (SELECT count(*) FROM result WHERE samples > 0)")"

# --- the same content in any order and any number of times
merge() { "$folder/bin/moegate-judge" store merge "$@" >/dev/null; }
merge "$scratch/a.sqlite" "$out/shard-1.sqlite" "$out/shard-2.sqlite"
merge "$scratch/b.sqlite" "$out/shard-2.sqlite"
merge "$scratch/b.sqlite" "$out/shard-1.sqlite" "$out/shard-2.sqlite"
merge "$scratch/b.sqlite" "$scratch/a.sqlite"
content="SELECT key || variant || round || p.uuid || r.uuid || span_ns || hex(spans) FROM result JOIN sample USING (result_id)
  JOIN process p USING (process_id) JOIN run r USING (run_id) JOIN bench_case USING (case_id) ORDER BY 1"
expect "content" "$(ask "$scratch/a.sqlite" "$content" | sha256sum)" "$(ask "$scratch/b.sqlite" "$content" | sha256sum)"
expect "latencies" "$("$folder/bin/moegate-judge" report latency --columns case,variant,us,samples --db "$scratch/a.sqlite")" \
  "$("$folder/bin/moegate-judge" report latency --columns case,variant,us,samples --db "$scratch/b.sqlite")"

# --- a shard that never ran is named, with what runs it; then it runs
lacking=$scratch/lacking
mkdir "$lacking"
cp "$out"/{shard-2.sqlite,campaign,shards,device,label,run.args,gate.args} "$lacking/"
expect "exit code without a shard" 13 "$(code bash "$folder/ci/slurm/gate.sbatch" "$folder/bin" "$lacking" "$folder/ci/run-judge")"
expect "it is counted in the first line" 1 "$(grep -c '; shard 1 of 2 absent' "$lacking/report.md")"
expect "and named with what runs it" 1 "$(grep -c 'Shard 1 of 2 is absent.*moegate run.* --shard 1/2 ' "$lacking/report.md")"
MOEGATE_SABOTEUR=none submit --again 1 --out "$lacking" --wait >"$scratch/printed" 2>&1 && again=0 || again=$?
expect "exit code once it has run" 0 "$again"
expect "rows then" $((2 * rows)) "$(ask "$lacking/results.sqlite" "SELECT count(*) FROM result")"

# --- a planted failure in three suites on two nodes: one verdict
MOEGATE_SABOTEUR=scale submit "${three_suites[@]}" --out "$scratch/planted" --wait >"$scratch/printed" 2>&1 && planted=0 || planted=$?
expect "exit code of the planted failure" 11 "$planted"
expect "rows that are wrong" 7 "$(ask "$scratch/planted/results.sqlite" "SELECT count(*) FROM verdict WHERE outcome = 'wrong'")"

expect "what submit refuses" 2 "$(code submit --suite one)"
expect "a campaign's folder again" 2 "$(code submit "${three_suites[@]}" --out "$out")"
finish
