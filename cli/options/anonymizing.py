"""The options `--anonymize` and `--mapping-file`."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.records import BESIDE_OUTPUT, RenamedOption
from kiebitz.proxy.system.sudo import give_to_invoking_user, is_own_user
from kiebitz.storage.database.schema import StorageError, sentence

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms

anonymize_option = click.option(
    "--anonymize",
    "is_anonymized",
    is_flag=True,
    help="Replace names, chats, passwords and addresses with consistent pseudonyms.",
)

mapping_file_option = click.option(
    "--mapping-file",
    cls=RenamedOption,
    former="--replaced",
    type=BESIDE_OUTPUT,
    metavar="FILE",
    help="With --anonymize: write original values and pseudonyms to this new file. Keep it private.",
)
"""Passes `mapping_file` to the command: a path, or None."""


def check_mapping_file(is_anonymized: bool, path: str | None) -> None:
    """Raise UsageError for `--mapping-file` without `--anonymize`."""
    if path is not None and not is_anonymized:
        raise click.UsageError("--mapping-file requires --anonymize")


@contextmanager
def writing_mapping(path: str | None, pseudonyms: Pseudonyms | None) -> Iterator[None]:
    """Write the pseudonyms to a new file, readable only by its owner, when the block ends.

    Do nothing without a path. Raises StorageError before the block if the file exists, and after it if the
    file cannot be written.
    """
    if path is None or pseudonyms is None:
        yield
        return
    with os.fdopen(_new_list(path), "w", encoding="utf-8") as file:
        try:
            yield
        except StorageError:
            # Remove the file, which would block another attempt.
            os.unlink(path)
            raise
        finally:
            try:
                file.writelines(f"{word}\t{stand_in}\n" for word, stand_in in pseudonyms.pairs())
                file.flush()
            except OSError as error:
                raise StorageError(f"{sentence(path, error)}; the list is incomplete") from error


def _new_list(path: str) -> int:
    """Open a new file readable only by its owner, or an empty one that a killed command left.

    Raises StorageError.
    """
    is_new = False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        with suppress(BlockingIOError):
            # The lock is held while the file is open: no other process is writing it. Another one may have
            # written it before, since it was created.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(descriptor)
            is_empty = stat.S_ISREG(found.st_mode) and found.st_size == 0
            is_private = is_own_user(found.st_uid) and not found.st_mode & 0o077
            if is_empty and is_private and found.st_nlink == 1:
                give_to_invoking_user(descriptor)
                is_new = True
        if not is_new:
            os.close(descriptor)
    except OSError as error:
        if not os.path.lexists(path):
            raise StorageError(sentence(path, error)) from error
    if not is_new:
        raise StorageError(f"{path}: file exists; give a new file for the mapping")
    return descriptor
