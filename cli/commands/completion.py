"""`kiebitz completion`: the script by which a shell completes commands, options and filter names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kiebitz.cli.terminal.console import show_lines

_VARIABLE = "_KIEBITZ_COMPLETE"
"""The variable by which click's scripts ask a command called kiebitz."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell; its start-up file is the place to load it.

    \b
    Example, for ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:
      eval "$(kiebitz completion bash)"
      eval "$(kiebitz completion zsh)"
      kiebitz completion fish | source
    """
    context = click.get_current_context().find_root()
    made = get_completion_class(shell)
    assert made is not None, "click knows these three shells"
    show_lines(made(context.command, {}, "kiebitz", _VARIABLE).source().split("\n"))
