#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What differs by architecture compiles for aarch64. Skipped (77) without what `ci/setup cross` installs.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! [ -e /usr/lib/aarch64-linux-gnu/libre2.so ]; then
  echo "skipped: no compiler and libraries for aarch64; ci/setup cross"
  exit 77
fi

objects=()
for source in device/chill.cc device/device_host.cc timing/timer_host.cc worker/process_state.cc; do
  objects+=("harness/CMakeFiles/${source%/*}.dir/$source.o")
done
build=$scratch/build
expect "it configures" 0 "$(code cmake -S "$root" -B "$build" -G Ninja -DMOEGATE_CUDA=OFF -DMOEGATE_TESTS=OFF \
  "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64.cmake")"
expect "it compiles" 0 "$(code cmake --build "$build" -j2 --target "${objects[@]}")"
expect "for aarch64" "${#objects[@]}" "$(cd "$build" && readelf -h "${objects[@]}" | grep -c 'Machine: *AArch64')"
finish
