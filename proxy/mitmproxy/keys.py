"""Protection of mitmproxy's private keys on disk: they must belong to this user alone.

mitmproxy itself makes WireGuard's keys readable to all users, and trusts any file in its folder.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from kiebitz.proxy.relay.endpoints import Notice, RelayError
from kiebitz.proxy.system.safe_files import create_file

_PRIVATE = ("mitmproxy-ca.pem", "mitmproxy-ca.p12")
"""The files in mitmproxy's folder that contain a private key."""

_FILE_PREFIX = "mitmproxy-"
"""Prefix of the names of all files that mitmproxy creates there."""

_ADVICE = "Choose a folder of your own with --set confdir=FOLDER."


def secure_keys(
    folder: Path,
    wireguard: Sequence[Path],
    generate: Callable[[], str],
    on_notice: Notice,
    *,
    is_dedicated: bool,
) -> None:
    """Ensure that mitmproxy's keys are this user's and private.

    Missing files are created with keys from `generate`, except that of the authority, which mitmproxy
    creates. Permissions that let others read keys are fixed.

    Args:
        folder: mitmproxy's folder.
        wireguard: Files with WireGuard keys.
        generate: Returns a new WireGuard key.
        on_notice: Callback for fixed permissions.
        is_dedicated: True if only mitmproxy uses the folder; only then are an existing folder's permissions
            changed.

    Raises:
        RelayError: a file or folder belongs to another user.
    """
    try:
        _secure_folder(folder, is_dedicated)
        for name in _PRIVATE:
            _secure_file(folder / name, on_notice)
        for path in wireguard:
            if not _secure_file(path, on_notice):
                _write_wireguard_keys(path, generate)
    except OSError as error:
        raise RelayError(
            f"Keys cannot be kept in {error.filename or folder}: {error.strerror}. {_ADVICE}"
        ) from error


def _secure_folder(folder: Path, is_dedicated: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        there = folder.stat()
        if _is_foreign(folder.lstat()) or _is_foreign(there):
            raise RelayError(
                f"{folder} belongs to another user, who could read mitmproxy's keys. {_ADVICE}"
            ) from None
        if is_dedicated and there.st_mode & 0o077:
            folder.chmod(0o700)
        elif there.st_mode & stat.S_IWOTH:
            raise RelayError(
                f"{folder} is writable by all users, who could put keys there. {_ADVICE}"
            ) from None
    for entry in os.scandir(folder):
        if entry.name.startswith(_FILE_PREFIX) and _is_foreign(entry.stat(follow_symlinks=False)):
            raise RelayError(
                f"{entry.path} belongs to another user: remove it, or choose a folder with "
                "--set confdir=FOLDER."
            )


def _secure_file(path: Path, on_notice: Notice) -> bool:
    """Make an existing key file private; return False if there is none. Raises RelayError and OSError."""
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    if _is_foreign(named):
        raise _foreign_error(path)
    # Do not block on a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            raise RelayError(f"{path} is not a regular file, as key files must be.")
        if _is_foreign(there):
            raise _foreign_error(path)
        if there.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
            on_notice(
                f"keys in {path}",
                f"The permissions of {path} let other users of this machine read its private keys; they have "
                "been corrected. If they may have been read, delete the file: new keys are then created.",
            )
    finally:
        os.close(descriptor)
    return True


def _foreign_error(path: Path) -> RelayError:
    return RelayError(f"{path} belongs to another user, who may know its keys: remove it, or choose another.")


def _write_wireguard_keys(path: Path, generate: Callable[[], str]) -> None:
    """Write the keys of a WireGuard server and its peer in mitmproxy's format. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps({"server_key": generate(), "client_key": generate()}, indent=4)
    descriptor = create_file(path)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
    except BaseException:
        path.unlink()
        raise


def _is_foreign(there: os.stat_result) -> bool:
    return there.st_uid != os.geteuid()
