#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MOEGATE_KERNEL_DIRS takes a folder of kernels, and refuses what would silently build a program without them.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"

configure() {
  cmake -S "$root" -B "$scratch/build" -G Ninja -DMOEGATE_CUDA=OFF -DMOEGATE_TESTS=OFF "-DMOEGATE_KERNEL_DIRS=$1"
}

mkdir "$scratch/empty" "$scratch/kernels"
touch "$scratch/file.cc" "$scratch/kernels/mine.cc"
for path in "$scratch/none" "$scratch/empty" "$scratch/file.cc" not/there; do
  expect "$path is refused" 1 "$(code configure "$path")"
  # cmake breaks its lines between any words
  expect "and the message says why" 1 "$(tr -s '[:space:]' ' ' <"$scratch/printed" | grep -c "$path holds no .cc or .cu file")"
done
expect "a folder of kernels is taken" 0 "$(code configure "$scratch/kernels")"
finish
