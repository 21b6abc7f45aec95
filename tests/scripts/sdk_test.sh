#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A project that knows moegate only as an installed folder builds a module of kernels; the installed program
# verifies them and refuses what does not fit. So it does what it writes to begin with.
#
#   tests/scripts/sdk_test.sh BUILD [NVCC]
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
build=$1 nvcc=${2-}
sdk=$scratch/sdk
cmake --install "$build" --prefix "$sdk" >"$scratch/installed"
moegate=$sdk/bin/moegate
export XDG_CACHE_HOME=$scratch/cache GIT_CONFIG_GLOBAL=/dev/null CCACHE_DISABLE=1

expect "bash finds what completes it" 0 "$(code cmp "$root/harness/commands/moegate.bash" "$sdk/share/bash-completion/completions/moegate")"
expect "there is a man page" 0 "$(code grep -q '^\.TH MOEGATE 1 ' "$sdk/share/man/man1/moegate.1")"
expect "with every command" "" "$("$moegate" --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | while read -r command; do
  grep -qx "\.SS moegate $command" "$sdk/share/man/man1/moegate.1" || echo "$command"; done)"

cp -r "$root/examples/cpp" "$scratch/mine"
cd "$scratch/mine"
configure="cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=$sdk"
[ -z "$nvcc" ] || configure="$configure -DCMAKE_CUDA_COMPILER=$nvcc"
expect "the example is configured" 0 "$(code bash -c "$configure")"
expect "and builds" 0 "$(code cmake --build build)"
module=build/my_kernels.so
verify() { "$moegate" verify --device host --suite row_norm.suite --module "$@"; }

expect "kernels are listed" 0 "$(code "$moegate" list kernels --module $module --variant 'eight_sums|two_columns')"
expect "of an operator of its own, and of ours" "moe_sum row_norm" "$(sed -n 's/^\([a-z_]*\) .*host.*/\1/p' "$scratch/printed" | xargs)"
expect "and are right" 0 "$(code verify $module)"
expect "all of them" 1 "$(grep -c '4 ok' "$scratch/printed")"
expect "their controls are rejected" 0 "$(code verify $module --controls)"
expect "a variant of ours is right" 0 "$(code "$moegate" verify --device host --suite tiny --variant two_columns --module $module)"

# refused WHAT WHY FILE
refused() {
  expect "$1 is refused" 2 "$(code verify "$3")"
  expect "and why" 1 "$(grep -c -- "$2" "$scratch/printed")"
}
refused "a file that is not there" "No such file" build/none.so
echo nothing >nothing.so
refused "what is no module" "is not a module of kernels" nothing.so
sed 's/SDK: 1/SDK: 7/' $module >other_sdk.so
refused "a module of another SDK" "was built with 'SDK: 7', this program with 'SDK: 1'" other_sdk.so
sed 's/compiler: [a-z]++ /compiler: x++ /' $module >other_compiler.so
refused "a module of another compiler" "was built with 'compiler: x++" other_compiler.so
cp $module twice.so
expect "two of the same kernels are refused" 2 "$(code verify $module --module twice.so)"
expect "by name" 1 "$(grep -c "operator 'row_norm' is defined twice" "$scratch/printed")"

cat >>CMakeLists.txt <<'EOF'
moegate_add_kernels(throws broken/throws.cc)
moegate_add_kernels(orphan broken/orphan.cc)
EOF
mkdir broken
echo '#include <stdexcept>
static const int thrown = [] { throw std::runtime_error("not today"); return 0; }();' >broken/throws.cc
cat >broken/orphan.cc <<'EOF'
#include "harness/kernel/kernel.h"
struct None : moegate::Problem { static constexpr const char* kOp = "none"; };
static const moegate::Kernel<None> kernel({.name = "v", .backend = moegate::Backend::host, .launch = [](None&, const moegate::Launch&) {}});
EOF
expect "broken modules build" 0 "$(code cmake --build build)"
refused "a module that throws" "fails while it is loaded: not today" build/throws.so
refused "a variant of no operator" "operator 'none', which does not exist" build/orphan.so

# Starting points: written by the installed program, built with what they say, right as they are.
new() { "$moegate" new "$@" --out "$scratch/new"; }
expect "an operator is written" 0 "$(code new operator my_norm)"
expect "a variant that is whole" 0 "$(code new variant whole --op moe_sum)"
expect "and one that is not" 0 "$(code new variant later --op qmoe_fc2)"
[ -z "$nvcc" ] || expect "one for a GPU" 0 "$(code new variant whole_gpu --op moe_sum --language cuda)"
cd "$scratch/new"
expect "the project is configured" 0 "$(code bash -c "$configure")"
expect "and builds" 0 "$(code cmake --build build)"
check() { "$moegate" verify --device host --module build/my_kernels.so "$@"; }
expect "the operator is right" 0 "$(code check --suite my_norm.suite)"
expect "in both variants" 1 "$(grep -c ': 10 ok$' "$scratch/printed")"
expect "its controls are rejected" 0 "$(code check --suite my_norm.suite --controls)"
expect "the whole variant is right" 0 "$(code check --suite tiny --variant '^whole$')"
expect "and nothing else" 1 "$(grep -c ': [0-9]* ok$' "$scratch/printed")"
expect "the other one is no failure" 0 "$(code check --suite tiny --variant '^later$')"
expect "but says what it is" 1 "$(grep -c ': [0-9]* unsupported$' "$scratch/printed")"
finish
