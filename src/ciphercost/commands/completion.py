"""`ciphercost completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and their values, engines, mechanisms, workloads, formats, studies and runs. Install it
    with one line, then open a new shell. In zsh the script must come after `compinit`.

    \b
    ciphercost completion bash >> ~/.bashrc
    ciphercost completion zsh >> ~/.zshrc
    ciphercost completion fish > ~/.config/fish/completions/ciphercost.fish
    """
    from ciphercost.commands import _shells

    click.echo(_shells.script(click.get_current_context().find_root().command, shell), nl=False)
