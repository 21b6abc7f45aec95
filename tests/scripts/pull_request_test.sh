#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/pull-request in a clone of a team's repository, as GitHub, GitLab and Buildkite start it; and ci/publish-comment,
# with a stand-in for gh that notes what it is asked. What ci/PULL_REQUESTS.md tells people to paste is valid.
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
export GIT_CONFIG_GLOBAL=/dev/null
unset GITHUB_BASE_REF GITHUB_STEP_SUMMARY CI_MERGE_REQUEST_TARGET_BRANCH_NAME BUILDKITE_PULL_REQUEST_BASE_BRANCH
git() { command git -c user.name=a -c user.email=a@b "$@"; }

git init -q -b main "$scratch/origin"
(cd "$scratch/origin" && git commit -q --allow-empty -m one && git tag parting && git commit -q --allow-empty -m later)
git clone -q "$scratch/origin" "$scratch/clone"
cd "$scratch/clone"
git checkout -q -b work parting
git commit -q --allow-empty -m work
base=$(git rev-parse parting)

stub "$scratch/bin/moegate"
export PATH=$scratch/bin:$PATH
gate() { code "$root/ci/pull-request" "$@"; }
called() { sed 's/><--out>.*//; s/<moegate>//' "$scratch/calls"; }
verdict=out/pull-request/verdict.json

for variable in GITHUB_BASE_REF CI_MERGE_REQUEST_TARGET_BRANCH_NAME BUILDKITE_PULL_REQUEST_BASE_BRANCH; do
  fresh 0
  expect "$variable names the base" 0 "$(export $variable=main; gate)"
  expect "from where the two part" "<ab><$base><--format><md" "$(called)"
  expect "a verdict" 0 "$(code test -s $verdict)"
  expect "a badge" 1 "$(grep -c '"message": "passes"' out/pull-request/badge.json)"
done
fresh 10
expect "slower fails" 10 "$(GITHUB_BASE_REF=main gate)"
expect "and the badge says so" 1 "$(grep -c '"message": "slower"' out/pull-request/badge.json)"
fresh 0
expect "a base by hand" 0 "$(gate main~1 --rounds 4)"
expect "with options" 1 "$(grep -c '<ab><main~1>.*<--rounds><4>$' "$scratch/calls")"
expect "GitHub's summary is written on GitHub alone" 0 "$(grep -c -- --github "$scratch/calls")"
fresh 0
expect "there it is" 0 "$(GITHUB_STEP_SUMMARY=x gate main)"
expect "with annotations" 1 "$(grep -c -- '<--github>' "$scratch/calls")"
fresh 0 none
expect "no verdict is a failure" 1 "$(gate main)"
fresh 0
expect "no base is a fault" 2 "$(gate)"
expect "that is named" 1 "$(grep -c 'give BASE' "$scratch/printed")"

# --- the comment
mkdir -p "$scratch/artifact"
printf 'slower, says @somebody \xff\n' >"$scratch/artifact/comment.md"
cat >"$scratch/bin/gh" <<EOF
#!/usr/bin/env bash
echo "\$*" >>"$scratch/asked"
for argument; do
  case \$argument in body=@*) cp "\${argument#body=@}" "$scratch/body" ;; esac
done
case "\$*" in
  *pulls*) cat "$scratch/number" ;;
  *--method*) ;;
  *comments*) cat "$scratch/earlier" ;;
esac
EOF
chmod +x "$scratch/bin/gh"
publish() { : >"$scratch/asked"; code "$root/ci/publish-comment" team/kernels "$base" "$scratch/artifact"; }
echo 7 >"$scratch/number"
: >"$scratch/earlier"
expect "a first comment" 0 "$(publish)"
expect "is made" 1 "$(grep -c -- '--method POST repos/team/kernels/issues/7/comments' "$scratch/asked")"
expect "with its mark" '<!-- moegate -->' "$(head -n 1 "$scratch/body")"
expect "and calls nobody" 'slower, says @&#8203;somebody ' "$(tail -n 1 "$scratch/body")"
echo 99 >"$scratch/earlier"
expect "a second one" 0 "$(publish)"
expect "replaces it" 1 "$(grep -c -- '--method PATCH repos/team/kernels/issues/comments/99' "$scratch/asked")"
: >"$scratch/number"
expect "a commit of no pull request" 0 "$(publish)"
expect "has no comment" 0 "$(grep -c -- --method "$scratch/asked")"
head -c 100000 /dev/zero | tr '\0' x >"$scratch/artifact/comment.md"
echo 7 >"$scratch/number"
expect "a large one" 0 "$(publish)"
expect "is cut" 60017 "$(wc -c <"$scratch/body" | xargs)"
ln -sf /etc/passwd "$scratch/artifact/comment.md"
expect "a link is not followed" 1 "$(publish)"

# --- what people paste
blocks() { # of a language, joined as documents
  awk -v tag="\`\`\`$1" '$0 == tag {on = 1; next} $0 == "```" && on {on = 0; print "---"} on' "$root/ci/PULL_REQUESTS.md"
}
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
  expect "the workflows are YAML" 0 "$(blocks yaml | code /usr/bin/python3 -c 'import sys, yaml; list(yaml.safe_load_all(sys.stdin))')"
  expect "the action, too" 0 "$(code /usr/bin/python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$root/action.yml")"
fi
expect "scripts that it names are there" "" "$(grep -o 'ci/[a-z-]*' "$root/ci/PULL_REQUESTS.md" | sort -u | while read -r script; do
  [ -x "$root/$script" ] || echo "$script"; done)"
finish
