"""`--anonymize` and `--replaced`: sessions that name nobody, and the list of what stands for whom."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kiebitz.storage.schema import StorageError, sentence

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.anonymizing.stand_ins import StandIns
    from kiebitz.dissectors.inspector import DecodeAs

anonymize_option = click.option(
    "--anonymize",
    "is_anonymized",
    is_flag=True,
    help="Put others in place of names, chats, passwords and addresses, the same one everywhere.",
)
"""Gives the command `is_anonymized`."""

replaced_option = click.option(
    "--replaced",
    type=click.Path(),
    metavar="FILE",
    help="With --anonymize: list in this new file what stands for whom. Keep it to yourself.",
)
"""Gives the command `replaced`: a path, or None."""


def check_replaced(is_anonymized: bool, replaced: str | None) -> None:
    """Raise UsageError for `--replaced` without `--anonymize`."""
    if replaced is not None and not is_anonymized:
        raise click.UsageError("--replaced goes with --anonymize")


def stand_ins_if(is_anonymized: bool) -> StandIns | None:
    """Stand-ins for what is to be anonymized; None where nothing is."""
    if not is_anonymized:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.stand_ins import StandIns
    from kiebitz.dissectors.registry import installed

    return StandIns(installed().dissectors.values())


def anonymizer_if(stand_ins: StandIns | None, forced: DecodeAs) -> Anonymizer | None:
    """What puts stand-ins into the items of a session; None where there are none."""
    if stand_ins is None:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.registry import installed

    return Anonymizer(installed().dissectors.values(), forced, stand_ins)


@contextmanager
def listing_replaced(path: str | None, stand_ins: StandIns | None) -> Iterator[None]:
    """When the block is over, list in a new file what stands for whom, if there is a path.

    Only its owner may read it. Raises StorageError before the block if there is such a file already.
    """
    if path is None or stand_ins is None:
        yield
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise StorageError(f"{path}: there is such a file already; name a new one for the list") from error
    except OSError as error:
        raise StorageError(sentence(path, error)) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        try:
            yield
        except StorageError:
            # Nothing came of it, and the file would be in the way of another try.
            os.unlink(path)
            raise
        finally:
            file.writelines(f"{word}\t{stand_in}\n" for word, stand_in in stand_ins.pairs())
