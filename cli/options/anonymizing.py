"""`--anonymize` and `--replaced`: sessions that name nobody, and the list of what stands for whom."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.outputs import BESIDE_OUTPUT
from kiebitz.proxy.system.sudo import give_to_invoking_user, is_own_user
from kiebitz.storage.database.schema import StorageError, sentence

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.pseudonyms import StandIns

anonymize_option = click.option(
    "--anonymize",
    "is_anonymized",
    is_flag=True,
    help="Put others in place of names, chats, passwords and addresses, the same one everywhere.",
)
"""Gives the command `is_anonymized`."""

replaced_option = click.option(
    "--replaced",
    type=BESIDE_OUTPUT,
    metavar="FILE",
    help="With --anonymize: list in this new file what stands for whom. Keep it to yourself.",
)
"""Gives the command `replaced`: a path, or None."""


def check_replaced(is_anonymized: bool, replaced: str | None) -> None:
    """Raise UsageError for `--replaced` without `--anonymize`."""
    if replaced is not None and not is_anonymized:
        raise click.UsageError("--replaced goes with --anonymize")


@contextmanager
def listing_replaced(path: str | None, stand_ins: StandIns | None) -> Iterator[None]:
    """When the block is over, list in a new file what stands for whom, if there is a path.

    Only its owner may read it. Raises StorageError before the block if there is such a file already, and
    after it if the list cannot be written.
    """
    if path is None or stand_ins is None:
        yield
        return
    with os.fdopen(_new_list(path), "w", encoding="utf-8") as file:
        try:
            yield
        except StorageError:
            # Nothing came of it, and the file would be in the way of another try.
            os.unlink(path)
            raise
        finally:
            try:
                file.writelines(f"{word}\t{stand_in}\n" for word, stand_in in stand_ins.pairs())
                file.flush()
            except OSError as error:
                raise StorageError(f"{sentence(path, error)}; the list is not complete") from error


def _new_list(path: str) -> int:
    """Make a file that only its owner may read, or use an empty one that a killed command has left.

    Raises StorageError.
    """
    is_new = False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        found = os.fstat(descriptor)
        is_empty = stat.S_ISREG(found.st_mode) and found.st_size == 0
        if is_empty and is_own_user(found.st_uid) and found.st_nlink == 1 and not found.st_mode & 0o077:
            with suppress(BlockingIOError):
                # Held as long as this file is open, by whoever is about to write a list.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                give_to_invoking_user(descriptor)
                is_new = True
        if not is_new:
            os.close(descriptor)
    except OSError as error:
        if not os.path.lexists(path):
            raise StorageError(sentence(path, error)) from error
    if not is_new:
        raise StorageError(f"{path}: there is such a file already; name a new one for the list")
    return descriptor
