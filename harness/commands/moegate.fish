# SPDX-License-Identifier: Apache-2.0
# Completion for fish: source it, or leave it where `cmake --install` puts it. The program that is being typed is asked,
# so that its own commands, flags and variants are what is offered.

function __moegate_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    for line in ($program complete $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            # fish completes the value of --flag=FILE behind the equals sign.
            set -l typed (string replace -r '^--[a-z-]+=' '' -- "$current")
            set -l before (string replace -r -f '^(--[a-z-]+=).*' '$1' -- "$current")
            for path in (__fish_complete_path "$typed")
                printf '%s%s\n' "$before" "$path"
            end
        else
            printf '%s\n' "$line"
        end
    end
end

complete -c moegate -f -a '(__moegate_complete)'
complete -c moegate-judge -f -a '(__moegate_complete)'
