"""Completion scripts, by click's own classes, except that the script for bash keeps words with `:`, `=` and `@` whole."""

from __future__ import annotations

import os

import click
from click import shell_completion

from ciphercost.commands._completers import VARIABLE

PROGRAM = "ciphercost"

BASH = r"""
%(complete_func)s() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" word breaks before="" type value
    # Bash cuts a word at : = and @, and replaces only what is behind the last of them.
    word="${line##*[[:space:]]}"
    breaks="${COMP_WORDBREAKS//[^:=@]/}"
    [[ -n $breaks ]] && before="${word%%"${word##*[$breaks]}"}"
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *[=:/,] ]] && compopt -o nospace
                COMPREPLY+=("${value#"$before"}")
                ;;
        esac
    done < <(COMP_WORDS="$line" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
"""click's script passes on the pieces into which bash cut the line, so that `postgresql:tls` would be three words."""


class WholeWords(shell_completion.BashComplete):
    """Bash 4.4 or newer. COMP_WORDS holds the line up to the cursor."""

    source_template = BASH.lstrip()

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = shell_completion.split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


def register() -> None:
    """Let click use the class above."""
    shell_completion.add_completion_class(WholeWords)


def script(cli: click.Command, shell: str) -> str:
    """The completion script of `bash`, `zsh` or `fish`."""
    register()
    found = shell_completion.get_completion_class(shell)
    assert found is not None
    return found(cli, {}, PROGRAM, VARIABLE).source()
