"""A file with the secret of the page's keys, so that links stay valid when the server is started again."""

from __future__ import annotations

import os
import secrets
import stat

from kiebitz.cli.web.access import SECRET_BYTES, Keys
from kiebitz.services.output_files import make_folder
from kiebitz.storage.database.schema import StorageError


def kept_keys(path: str) -> Keys:
    """Return the keys of a file, which is created if it is missing. Raises StorageError.

    Others must not know them: a file that belongs to another user, or that others may read, is refused.
    """
    folder = os.path.dirname(path)
    if folder:
        make_folder(folder)
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600)
        except FileExistsError:
            with open(os.open(path, os.O_RDONLY | flags), "rb") as file:
                return _read(path, file.fileno(), file.read(2 * SECRET_BYTES + 2))
        with open(descriptor, "wb") as file:
            secret = secrets.token_bytes(SECRET_BYTES)
            file.write(secret.hex().encode() + b"\n")
            return Keys(secret)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: name another file for the keys") from error


def _read(path: str, descriptor: int, text: bytes) -> Keys:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StorageError(f"{path}: others may know these keys: remove the file, and new ones are made")
    try:
        secret = bytes.fromhex(text.decode())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise StorageError(f"{path}: this file has no keys: name another one, or remove it")
    return Keys(secret)
