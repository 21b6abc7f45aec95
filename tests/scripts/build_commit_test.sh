#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/build-commit in a repository of its own, with stubs for cmake and ci/setup: a commit is built once, and a
# checkout that was killed is made again.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh disable=SC1091
. "$(dirname "$0")/expect.sh"

repository=$scratch/repository
mkdir -p "$repository/ci" "$repository/harness" "$scratch/bin"
cp "$root/ci/build-commit" "$repository/ci/build-commit"
cp "$root/.gitignore" "$repository/.gitignore"
printf '#!/bin/sh\n' >"$repository/ci/setup"
touch "$repository/CMakeLists.txt" "$repository/harness/main.cc" "$scratch/builds"
# Builds where there is something to build; the program is what git takes for changed.
cat >"$scratch/bin/cmake" <<END
#!/bin/sh
[ -e harness/main.cc ] || exit 1
mkdir -p build
case \$1 in --build) git status --porcelain >build/moegate; echo built >>"$scratch/builds" ;; esac
END
chmod +x "$repository/ci/setup" "$scratch/bin/cmake"
export PATH=$scratch/bin:$PATH HOME=$scratch
cd "$repository"
git init --quiet
git add --all
git -c user.name=x -c user.email=x@localhost commit --quiet --message first
folder=$repository/.cache/ab/$(git rev-parse HEAD)
build() { ci/build-commit HEAD 2>>"$scratch/said"; }
builds() { wc -l <"$scratch/builds"; }

expect "the path of the program" "$folder/build/moegate" "$(build)"
expect "no file of the build makes it a dirty one" '' "$(cat "$folder/build/moegate")"
build >/dev/null
expect "it is built once" 1 "$(builds)"

rm -rf "$folder/harness" "$folder/built" "$folder.checkout" # as a checkout that was killed leaves it
expect "the path after a killed checkout" "$folder/build/moegate" "$(build || true)"
expect "the checkout is made again" 2 "$(builds)"

rm -f "$folder/built" # as a build that was killed leaves it
build >/dev/null || true
expect "a killed build goes on in its checkout" 3 "$(builds)"

code=0
ci/build-commit nowhere >/dev/null 2>&1 || code=$?
expect "no such commit" 2 "$code"
[ "$failures" -eq 0 ] || cat "$scratch/said"
finish
