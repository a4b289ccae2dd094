"""What shows a recording while it goes on: the table on the terminal, in the browser, or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kiebitz.cli.watch.beside import Beside
from kiebitz.cli.web.beside import PageBeside

Companion = Beside | PageBeside


@contextmanager
def companions(is_watched: bool, place: tuple[str, int] | None) -> Iterator[Sequence[Companion]]:
    """Those that are asked for, until the recording is over. Raises UsageError without a terminal for one."""
    found: list[Companion] = []
    if place is not None:
        found.append(PageBeside(place))
    if is_watched:
        found.append(Beside())
    with ExitStack() as stack:
        for one in found:
            stack.enter_context(one)
        yield found
