# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Completion for bash: source it, or leave it to bash-completion, which finds it where `cmake --install` puts it. The
# program that is being typed is asked, so that its own commands, flags and variants are what is offered.

_moegate() {
  local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} line quoted=
  # bash makes a word of the '=' of --suite=tiny; what is completed is what follows it.
  [ "$current" != = ] || current=
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  # A word in quotes, such as a regular expression, comes with the first of them.
  if [[ $current == [\'\"]* ]]; then
    quoted=1 words[COMP_CWORD - 1]=${current:1}
  fi
  [[ $program != '~'/* ]] || program=$HOME/${program#*/}
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = :files ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
      return
    fi
    # A label may be any text; what needs no quotes stays as it is.
    [ -n "$quoted" ] || [[ $line =~ ^[[:alnum:]_.,:=/+-]+$ ]] || printf -v line %q "$line"
    # Something follows a parameter's name and an operator's.
    [[ $line != *[=/] ]] || compopt -o nospace 2>/dev/null
    COMPREPLY+=("$line")
  done < <("$program" complete "${words[@]}" 2>/dev/null)
}

complete -F _moegate moegate moegate-judge
