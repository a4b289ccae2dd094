"""`kiebitz completion`: print the completion script for a shell."""

from __future__ import annotations

import click

from kiebitz.cli.completion.shells import script
from kiebitz.cli.terminal.console import show_lines


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell, to be loaded in its start-up file.

    \b
    Example, for ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:
      eval "$(kiebitz completion bash)"
      eval "$(kiebitz completion zsh)"
      kiebitz completion fish | source
    """
    root = click.get_current_context().find_root().command
    show_lines(script(shell, root).split("\n"))
