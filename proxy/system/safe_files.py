"""Files and folders that are opened without following a link or waiting for a pipe.

Folders may be shared with other users, who may put links, pipes or other files in place of ours.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_folder(path: str | Path, within: int | None = None) -> int:
    """Open a folder that is not a link, below the open folder `within` if given. Raises OSError."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFE, dir_fd=within)


def open_file(path: str, within: int | None = None) -> int:
    """Open a regular file for reading that is not a link, below the open folder `within` if given.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | _SAFE, dir_fd=within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "this is not a regular file")
    return descriptor


def create_file(path: str | Path, within: int | None = None, mode: int = 0o600) -> int:
    """Open a new file for writing, below the open folder `within` if given. Raises OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, mode, dir_fd=within)


def replace_file(name: str, data: bytes, folder: int, new: str) -> None:
    """Replace a file in an open folder at once; `new` is its name while it is written. Raises OSError."""
    # A process that was killed may have left an incomplete file.
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600, dir_fd=folder), "wb"
    ) as file:
        file.write(data)
    os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
