#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MOEGATE_KERNEL_DIRS takes a folder of kernels, and refuses what would silently build a program without them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

configure() {
  cmake -S "$root" -B "$scratch/build" -G Ninja -DMOEGATE_CUDA=OFF -DMOEGATE_TESTS=OFF "-DMOEGATE_KERNEL_DIRS=$1" 2>&1
}

mkdir "$scratch/empty" "$scratch/kernels"
touch "$scratch/file.cc" "$scratch/kernels/mine.cc"
for path in "$scratch/none" "$scratch/empty" "$scratch/file.cc" not/there; do
  if said=$(configure "$path") || ! grep -q "holds no .cc or .cu file" <<<"$said"; then
    echo "MOEGATE_KERNEL_DIRS=$path was not refused:"$'\n'"$said"
    failed=1
  fi
done
configure "$scratch/kernels" >"$scratch/said" || { cat "$scratch/said"; failed=1; }
exit $failed
