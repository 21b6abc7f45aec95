#compdef moegate moegate-judge
# SPDX-License-Identifier: Apache-2.0
# Completion for zsh: put it as _moegate into a folder of fpath, as `cmake --install` does. The program that is being
# typed is asked, so that its own commands, flags and variants are what is offered.

_moegate() {
  local -a lines
  local current=${words[CURRENT]} program=${words[1]}
  [[ $program != '~'/* ]] || program=$HOME/${program#*/}
  lines=("${(@f)$("$program" complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ ${lines[1]} == :files ]]; then
    [[ $current != --*=* ]] || compset -P '--*='
    _files
    return
  fi
  # Something follows a parameter's name and an operator's.
  local line
  local -a open closed
  for line in "${lines[@]}"; do
    [[ -z $line ]] && continue
    if [[ $line == *[=/] ]]; then open+=("$line"); else closed+=("$line"); fi
  done
  compadd -U -S '' -a open
  compadd -U -a closed
}

# As a file of fpath it is the function's body; sourced, it says whose it is.
if [[ ${funcstack[1]} == _moegate ]]; then
  _moegate "$@"
else
  compdef _moegate moegate moegate-judge
fi
