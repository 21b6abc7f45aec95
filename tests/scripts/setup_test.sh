#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/setup with stubs for dpkg-query, apt-get, dpkg and curl: what is missing is installed, once; CUDA comes from
# NVIDIA's repository, and only when it is asked for.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh disable=SC1091
. "$(dirname "$0")/expect.sh"

mkdir "$scratch/bin"
# One file holds what is installed, another what was called.
cat >"$scratch/bin/dpkg-query" <<END
#!/bin/bash
code=0
for name in "\${@:2}"; do
  [[ \$name != -* ]] || continue
  if grep -qx "\$name" "$scratch/installed"; then echo "\$name installed"; else code=1; fi
done
exit \$code
END
cat >"$scratch/bin/apt-get" <<END
#!/bin/bash
echo "apt-get \$*" >>"$scratch/calls"
[ "\$1" = install ] || exit 0
for name in "\${@:2}"; do [[ \$name == -* ]] || echo "\$name" >>"$scratch/installed"; done
END
cat >"$scratch/bin/curl" <<END
#!/bin/bash
echo "curl \${*: -1}" >>"$scratch/calls"
[ ! -e "$scratch/offline" ] || exit 6
END
cat >"$scratch/bin/dpkg" <<END
#!/bin/bash
echo "dpkg \$1" >>"$scratch/calls"
echo cuda-keyring >>"$scratch/installed"
END
printf '#!/bin/sh\necho 0\n' >"$scratch/bin/id" # as root
chmod +x "$scratch"/bin/*
export PATH=$scratch/bin:$PATH CUDA_HOME=$scratch/cuda

fresh() { : >"$scratch/installed"; : >"$scratch/calls"; }
setup() { "$root/ci/setup" "$@" >"$scratch/printed" 2>"$scratch/said" && echo 0 || echo $?; }
calls() { sed -E 's|https:.*/||; s/ -y .*//' "$scratch/calls" | tr '\n' ';'; }

fresh
expect "exit code" 0 "$(setup)"
expect "one installation" 'apt-get update -qq;apt-get install;' "$(calls)"
expect "no sanitizers unless asked for" 0 "$(grep -cx clang "$scratch/installed" || true)"
expect "no CUDA unless asked for" 0 "$(grep -c cuda "$scratch/installed" || true)"
expect "says what it installs" 1 "$(grep -c '^ci/setup: installing g++ cmake ' "$scratch/said")"
: >"$scratch/calls"
expect "exit code, again" 0 "$(setup)"
expect "nothing is missing: apt is not called" '' "$(calls)"
expect "and nothing is said" '' "$(cat "$scratch/printed" "$scratch/said")"
sed -i '/^ccache$/d' "$scratch/installed"
expect "exit code, one missing" 0 "$(setup)"
expect "only that one" 1 "$(grep -c '^apt-get install .* ccache$' "$scratch/calls")"

fresh
expect "exit code, CUDA" 0 "$(setup cuda)"
expect "first the key, then the compiler" \
  'apt-get update -qq;apt-get install;curl cuda-keyring_1.1-1_all.deb;dpkg --install;apt-get update -qq;apt-get install;' \
  "$(calls)"
expect "nvcc" 1 "$(grep -cx 'cuda-nvcc-[0-9]*-[0-9]*' "$scratch/installed")"
: >"$scratch/calls"
expect "exit code, CUDA again" 0 "$(setup cuda)"
expect "CUDA is installed once" '' "$(calls)"
sed -i '/^libcublas/d' "$scratch/installed"
expect "exit code, a header's package is missing" 0 "$(setup cuda)"
expect "the key is there" 'apt-get update -qq;apt-get install;' "$(calls)"

fresh
touch "$scratch/offline"
expect "without a network" 6 "$(setup cuda)"
expect "nothing of CUDA" 0 "$(grep -c cuda "$scratch/installed" || true)"
fresh
mkdir -p "$scratch/cuda/bin"
printf '#!/bin/sh\n' >"$scratch/cuda/bin/nvcc"
chmod +x "$scratch/cuda/bin/nvcc"
expect "the user's own toolkit" 0 "$(setup cuda)"
expect "is left alone" '' "$(calls)"
printf '#!/bin/sh\necho Cuda compilation tools, release 12.4\n' >"$scratch/cuda/bin/nvcc"
expect "the user's own toolkit of CUDA 12" 0 "$(setup cuda-12)"
expect "is left alone, too" '' "$(calls)"
printf '#!/bin/sh\necho Cuda compilation tools, release 13.0\n' >"$scratch/cuda/bin/nvcc"
rm "$scratch/offline"
expect "the user's own toolkit of CUDA 13" 0 "$(setup cuda-12)"
expect "is not what was asked for" 1 "$(grep -cx 'cuda-nvcc-12-[0-9]*' "$scratch/installed")"

# Ubuntu has packages of other architectures elsewhere.
fresh
if grep -qsx ID=debian /etc/os-release; then
  expect "exit code, cross" 0 "$(setup cross)"
  expect "first the architecture" 'dpkg --add-architecture;apt-get update -qq;apt-get install;' "$(calls)"
  expect "libraries of that architecture, and no others" 0 "$(grep '^lib' "$scratch/installed" | grep -vc ':arm64$' || true)"
  : >"$scratch/calls"
  expect "exit code, cross again" 0 "$(setup cross)"
else
  expect "exit code, cross" 1 "$(setup cross)"
fi
expect "nothing more is installed" '' "$(calls)"

fresh
for argument in --cuda nowhere; do expect "exit code of $argument" 2 "$(setup "$argument")"; done
expect "exit code of --help" 0 "$(setup --help)"
expect "--help names cuda" 1 "$(grep -c '^  ci/setup cuda ' "$scratch/printed")"
expect "none of these installs" '' "$(calls)"
finish
