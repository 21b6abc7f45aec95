#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The .deb of a build: what shells, man and Python look for is where they look, and the programs need nothing that it
# does not name. And what ci/release refuses.
#
#   tests/scripts/package_test.sh BUILD
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
export PYTHONDONTWRITEBYTECODE=1
unset MOEGATE_HOME MOEGATE_PYTHON

(cd "$1" && cpack -G DEB -B "$scratch/out") >"$scratch/printed" 2>&1 || { cat "$scratch/printed" >&2; exit 1; }
deb=$(find "$scratch/out" -maxdepth 1 -name 'moegate_*.deb')
field() { dpkg-deb --field "$deb" "$1"; }
expect "it is called so" moegate "$(field Package)"
expect "and has the tool's version" "$("$1/moegate" --version | cut -d' ' -f2)" "$(field Version)"
dpkg-deb --extract "$deb" "$scratch/root"
usr=$scratch/root/usr
cd "$scratch"
expect "the command runs, and finds its suites" 0 "$(code "$usr/bin/moegate" verify --device host --suite tiny --filter ^moe_sum/)"
for file in share/man/man1/moegate.1 share/bash-completion/completions/moegate \
  share/fish/vendor_completions.d/moegate.fish share/zsh/vendor-completions/_moegate lib/python3/dist-packages/moegate/__init__.py; do
  expect "there is a $file" 0 "$(code test -s "$usr/$file")"
done

# needs FILE: the libraries that it is linked with; versions FILE NAME: the newest symbol version of that kind.
needs() { objdump -p "$1" | sed -n 's/^  NEEDED  *//p'; }
versions() { objdump -T "$1" | { grep -o "$2_[0-9.]*" || true; } | sed "s/$2_//" | sort -uV | tail -n 1; }
home=$usr/lib/moegate
for file in "$home"/bin/* "$home"/lib/*.so*; do
  name=$(basename "$file")
  for library in $(needs "$file"); do
    case $library in
      libc.so.6 | libm.so.6 | libgcc_s.so.1 | libstdc++.so.6 | ld-linux-*) ;; # what the package depends on
      *) expect "$name's $library is inside" 0 "$(code test -e "$home/lib/$library")" ;;
    esac
  done
  # What Debian 12 builds runs on Ubuntu 22.04; a newer system's compiler asks for more.
  case $(. /etc/os-release && echo "$ID$VERSION_ID") in debian12) ;; *) continue ;; esac
  for promise in GLIBC:2.35 GLIBCXX:3.4.30; do
    newest=$(versions "$file" "${promise%:*}")
    expect "$name asks for no more than $promise" "${promise#*:}" \
      "$(printf '%s\n' "${promise#*:}" "${newest:-0}" | sort -V | tail -n 1)"
  done
done

expect "a release of another tag is refused" 2 "$(code "$root/ci/release" "$scratch/release" v9.9.9)"
expect "and says which version it is" 1 "$(says 'tag v9.9.9 is not the version')"
expect "a release goes into a folder" 2 "$(code "$root/ci/release")"
finish
