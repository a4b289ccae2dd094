"""Reports of packets and parts of a capture that could not be read."""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.proxy.capture.files import CaptureFile
from kiebitz.proxy.capture.packets import PacketDecoder
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted

_MOST_CLAUSES = 10
"""Maximum number of losses of one kind to print."""


def losses(
    decoder: PacketDecoder,
    capture: CaptureFile | None = None,
    is_over: bool = True,
    late: int = 0,
    dropped: int = 0,
) -> list[str]:
    """Return a clause for each kind of packet and each part of a capture that could not be read.

    Ordinary packets without UDP or TCP, such as ARP, do not count. `is_over` is True if the capture was read
    to its end; `late` is the number of packets that could not be put in time order, `dropped`
    that of packets that the capturing machine has dropped.
    """
    found = [f"{_counted(dropped, 'packet')} dropped by the capturing machine"] if dropped else []
    found += _limit(
        [f"{_counted(number, 'packet')} not read: {why}" for why, number in decoder.malformed.items()]
    )
    found += _limit(
        [
            f"{counted(number, 'packet')} of {what} {_was(number)} not read"
            for what, number in decoder.unread.most_common()
        ]
    )
    if capture is not None:
        found += _limit(
            [f"{_counted(number, noun)} {what}" for (noun, what), number in capture.reader.faults.items()]
        )
        found += _limit([f"the capture is {damage}" for damage in capture.reader.damages])
        if is_over and capture.truncated is not None:
            found.append(f"{capture.truncated}; all before that was kept")
    if late:
        found.append(
            f"the times of {counted(late, 'packet')} go back by over a second; unless the clock was set"
            " meanwhile, sort the capture and import the result: reordercap CAPTURE SORTED"
        )
    return found


def _counted(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {_was(number)}"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _limit(clauses: list[str]) -> list[str]:
    if len(clauses) <= _MOST_CLAUSES:
        return clauses
    return [*clauses[:_MOST_CLAUSES], f"and {len(clauses) - _MOST_CLAUSES} more like that"]


def print_losses(name: str, found: Iterable[str]) -> None:
    """Print the losses of a capture to stderr, one per line."""
    for loss in found:
        warn(f"{name}: {loss}")
