# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of scripts: a scratch folder laid out like an installed one, in which `moegate` is a stub
# that notes how it was called in $scratch/calls and where in $scratch/place, writes a verdict with what
# $scratch/says to the file of its --out FILE.json, or into the folder of its --out or the folder's out/, and exits with what
# $scratch/exit says.

# shellcheck source=tests/scripts/expect.sh disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
folder="$scratch/an installed folder"
mkdir -p "$folder/bin" "$folder/ci"

# stub PATH: a moegate that does as it is told.
stub() {
  mkdir -p "$(dirname "$1")"
  cat >"$1" <<EOF
#!/usr/bin/env bash
{ printf '<%s>' "\${0##*/}" "\$@"; echo; } >>"$scratch/calls"
printf '%s\n' "\${MOEGATE_COMMAND-}" >>"$scratch/typed"
pwd >"$scratch/place"
verdict="$folder/out/verdict.json"
while [ \$# -gt 0 ]; do
  case "\$1 \${2-}" in --out\ *.json) verdict=\$2 ;; --out\ *) verdict=\$2/verdict.json ;; esac
  shift
done
mkdir -p "\$(dirname "\$verdict")"
[ ! -s "$scratch/says" ] || printf '{\n "counts": {\n  "exit": 99\n },\n "exit": %s,\n "judged": 1\n}\n' "\$(cat "$scratch/says")" >"\$verdict"
exit "\$(cat "$scratch/exit")"
EOF
  chmod +x "$1"
}

# fresh [EXIT [SAYS]]: forgets the calls; the stub exits with EXIT (default 0), its verdict says SAYS (default
# EXIT; "none": it writes none).
fresh() {
  echo "${1-0}" >"$scratch/exit"
  echo "${2-${1-0}}" | sed '/none/d' >"$scratch/says"
  : >"$scratch/calls"
  : >"$scratch/typed"
}

# code COMMAND...: its exit code; what it prints goes to $scratch/printed.
code() {
  local exit=0
  "$@" >"$scratch/printed" 2>&1 || exit=$?
  echo "$exit"
}

# says RE: how many lines of what it printed match.
says() { grep -c -- "$1" "$scratch/printed"; }
