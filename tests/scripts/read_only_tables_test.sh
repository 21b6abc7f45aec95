#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# read_only_tables_test.sh PROGRAM...: each looks all functions up at its start, and what it has found is read-only.
set -eu
for program in "$@"; do
  readelf -d "$program" | grep -q 'BIND_NOW\|FLAGS_1.*NOW' || { echo "$program: functions are looked up late" >&2; exit 1; }
  readelf -l "$program" | grep -q GNU_RELRO || { echo "$program: its tables stay writable" >&2; exit 1; }
done
