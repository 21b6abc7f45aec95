#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Documents name what is there: every relative link of a markdown file leads to a file or folder, and so does
# every `path` in backticks that begins with a folder of the repository or ends like a source file. A source
# file may be named without its folder, in the README of a room only one of that room. A path with a placeholder (<name>, *, {a,b}) is not looked at, nor is a
# fenced block, nor the changelog, which also names what has gone.
#
#   tests/scripts/links_test.sh [ROOT]
set -euo pipefail
root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$root"

files=$(find . \( -path ./.git -o -path './build*' -o -path ./out -o -path ./dist -o -path ./.cache \) -prune -o -print |
  sed 's|^\./||' | LC_ALL=C sort)
# shellcheck disable=SC2016  # the $ are awk's
grep '\.md$' <<<"$files" | grep -vx CHANGELOG.md | xargs -d '\n' awk -v files="$files" '
  BEGIN {
    n = split(files, list, "\n")
    for (i = 1; i <= n; ++i) {
      there[list[i]] = 1
      name = list[i]
      sub(/.*\//, "", name)
      base[name] = 1
      if (split(list[i], part, "/") > 1) top[part[1]] = 1
      if (part[1] == "harness") room[part[2] "/" name] = 1
    }
    source_end = "\\.(cc|h|cu|cuh|sql|sh|suite|cmake)$"
  }
  # The path without "." and "x/..", or "" where it leaves the repository.
  function plain(path,   part, out, n, i, m, text) {
    m = 0
    n = split(path, part, "/")
    for (i = 1; i <= n; ++i) {
      if (part[i] == "" || part[i] == ".") continue
      if (part[i] == "..") { if (--m < 0) return ""; continue }
      out[++m] = part[i]
    }
    text = out[1]
    for (i = 2; i <= m; ++i) text = text "/" out[i]
    return text
  }
  function dead(what) { print FILENAME ":" FNR ": " what ": there is no such file"; bad = 1 }
  function link(target) {
    sub(/[ \t].*/, "", target)
    sub(/#.*/, "", target)
    if (target == "" || target ~ /^[a-z]+:/) return
    ++seen
    if (!(plain(folder target) in there) && plain(folder target) != "") dead("link " target)
  }
  function named(path,   first, name) {
    if (path !~ /^[A-Za-z0-9_.\/-]+$/ || path ~ /\.\.\.|^\//) return
    sub(/:[0-9]+$/, "", path)
    first = path
    sub(/\/.*/, "", first)
    if (path ~ /\// && first in top) {
      ++seen
      if (!(plain(path) in there) && !(plain(folder path) in there)) dead("`" path "`")
    } else if (path ~ source_end && path !~ /^\./) {
      ++seen
      name = path
      sub(/.*\//, "", name)
      if (path ~ /\// ? !(plain(folder path) in there) : !(of_room ? of_room "/" name in room : name in base))
        dead("`" path "`")
    }
  }
  FNR == 1 {
    fence = 0; folder = FILENAME; if (!sub(/[^\/]*$/, "", folder)) folder = ""
    of_room = split(folder, part, "/") == 3 && part[1] == "harness" ? part[2] : ""
  }
  /^ *```/ { fence = !fence; next }
  fence { next }
  {
    text = $0
    while (match(text, /\]\([^)]+\)/)) {
      link(substr(text, RSTART + 2, RLENGTH - 3))
      text = substr(text, RSTART + RLENGTH)
    }
    text = $0
    while (match(text, /`[^`]+`/)) {
      if (substr(text, RSTART + RLENGTH, 2) != "](") named(substr(text, RSTART + 1, RLENGTH - 2))
      text = substr(text, RSTART + RLENGTH)
    }
  }
  END {
    print seen + 0 " links and paths looked at"
    exit bad || !seen
  }'
