#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints tiny-replay.npy: expert ids [32, 8] int32 over 64 experts.
#   bash suites/data/make-tiny-replay.sh > suites/data/tiny-replay.npy
# Token t, slot i goes to expert (t * t + 7 * i) mod 64: distinct in a row (7 has an inverse mod 64), uneven
# over the experts (squares), neither sorted nor starting at 0, so that a wrong order or row shows.
set -eu

header="{'descr': '<i4', 'fortran_order': False, 'shape': (32, 8), }"
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" # 0x76 = 118 bytes of header text

for ((t = 0; t < 32; ++t)); do
  for ((i = 0; i < 8; ++i)); do
    printf "\\x$(printf %02x $(((t * t + 7 * i) % 64)))\\x00\\x00\\x00"
  done
done
