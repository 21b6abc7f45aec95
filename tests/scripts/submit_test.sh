#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/slurm/submit hands one argument per line to its jobs: no value may hold a line end.
set -euo pipefail
submit=$(cd "$(dirname "$0")/../.." && pwd)/ci/slurm/submit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for option in --label --suite --run --gate --sbatch --out --device --again; do
  for end in $'\n' $'\r'; do
    code=0
    "$submit" --shards 1 --suite tiny --out "$scratch/out" "$option" "x$end--module${end}evil.py" 2>"$scratch/said" || code=$?
    if [ "$code" != 2 ] || ! grep -q -e "$option: its value has a line end" "$scratch/said"; then
      echo "FAILED: $option with a line end: exit $code: $(cat "$scratch/said")" >&2
      exit 1
    fi
  done
done
[ ! -e "$scratch/out" ] || { echo "FAILED: a refused call left $scratch/out" >&2; exit 1; }
