"""Options whose former name still works, but is shown in no help and no completion."""

from __future__ import annotations

from typing import Any

import click


class RenamedOption(click.Option):
    """An option that also accepts its `former` name."""

    def __init__(self, *args: Any, former: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self._former = former

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown, self.opts = self.opts, [*self.opts, self._former]
        super().add_to_parser(parser, ctx)
        self.opts = shown
