"""What bash, zsh and fish load. Each asks `hourhand completion answer` for what may follow, and knows nothing else."""

FILES = ":files"  # an answer that leaves it to the shell to complete the name of a file

BASH = r"""# hourhand, for bash: eval "$(hourhand completion bash)"
_hourhand() {
    local IFS=$'\n' line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == ":files" ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$2")
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${1:-hourhand}" completion answer --breaks "$COMP_WORDBREAKS" --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _hourhand hourhand
"""

ZSH = r"""#compdef hourhand
# hourhand, for zsh: eval "$(hourhand completion zsh)" after compinit, or as a file _hourhand in your fpath
_hourhand() {
    local line value
    local -a found
    while IFS= read -r line; do
        if [[ $line == ":files" ]]; then
            _files
            continue
        fi
        value=${line%%$'\t'*}
        if [[ $line == *$'\t'* ]]; then
            found+=("${value//:/\\:}:${line#*$'\t'}")
        else
            found+=("${value//:/\\:}")
        fi
    done < <("${(Q)words[1]}" completion answer -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)
    (( ${#found} )) && _describe -V hourhand found
}
if [[ ${funcstack[1]} == _hourhand ]]; then _hourhand "$@"; else compdef _hourhand hourhand; fi
"""

FISH = r"""# hourhand, for fish: hourhand completion fish | source
function __hourhand_complete
    set -l words (commandline -opc)
    set -a words (commandline -ct | string unescape | string collect --allow-empty)
    for line in (command $words[1] completion answer -- $words 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c hourhand -f -a '(__hourhand_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
