#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Functions of host kernels start at cache lines: the .text of every object given is aligned to 64 bytes. A
# file that is added or removed then moves the others by whole lines, which does not show in their times.
set -euo pipefail
[ $# -gt 0 ] || { echo "no objects given" >&2; exit 1; }
objdump -h "$@" | awk '
  /file format/ { file = $1 }
  $2 == ".text" && $3 !~ /^0+$/ {
    split($7, power, /\*\*/)
    if (power[2] < 6) { print file " .text is aligned to 2**" power[2] ", not 2**6"; bad = 1 }
    else ++good
  }
  END { print good + 0 " objects are aligned"; exit bad || !good }'
