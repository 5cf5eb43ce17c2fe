"""Completion scripts, by click's own classes, except that the script for bash keeps words with `:`, `=` and `@` whole, and that no
word can do anything to the shell that completes it.

Words may be names of files and directories, which anybody who can write there chooses. Shells read one word a line, and bash inserts
it into the command line as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import click
from click import shell_completion
from click.shell_completion import CompletionItem

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


SAFE = re.compile(r"[^\w@%+=:,./-]", re.ASCII)
"""What bash must not see bare. A backslash before it also keeps it from ending a quotation that is open."""


def harmless(words: Sequence[CompletionItem]) -> list[CompletionItem]:
    """Words without those that hold a control character, and without descriptions that do. Pure."""
    kept = []
    for word in words:
        if word.value.isprintable():
            shown = word.help if word.help and word.help.isprintable() else None
            kept.append(CompletionItem(word.value, type=word.type, help=shown))
        elif word.type != "plain":
            kept.append(CompletionItem("", type=word.type))  # the shell itself lists files and directories
    return kept


class Harmless(shell_completion.ShellComplete):
    """Offers only words that can do nothing to the shell."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return harmless(super().get_completions(args, incomplete))


class Zsh(Harmless, shell_completion.ZshComplete):
    """Zsh quotes what it inserts."""


class Fish(Harmless, shell_completion.FishComplete):
    """Fish quotes what it inserts."""


class WholeWords(Harmless, shell_completion.BashComplete):
    """Bash 4.4 or newer. COMP_WORDS holds the line up to the cursor."""

    source_template = BASH.lstrip()

    def format_completion(self, item: CompletionItem) -> str:
        value = SAFE.sub(r"\\\g<0>", item.value)
        return f"{item.type},{value}"

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = shell_completion.split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


def register() -> None:
    """Let click use the classes above."""
    for shell_class in (WholeWords, Zsh, Fish):
        shell_completion.add_completion_class(shell_class)


def script(cli: click.Command, shell: str) -> str:
    """The completion script of `bash`, `zsh` or `fish`."""
    register()
    shell_class = shell_completion.get_completion_class(shell)
    assert shell_class is not None
    return shell_class(cli, {}, PROGRAM, VARIABLE).source()
