"""What another user of this machine leaves where ours writes: files, links, pipes and folders of theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

STRANGER = 65_534
"""The user id of nobody."""


def _skip_unless_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("files of another user take root to make them")


def folder_for_all(path: Path) -> Path:
    """Return a folder like /tmp, in which everybody makes files and removes only their own."""
    _skip_unless_root()
    path.mkdir()
    path.chmod(0o1777)
    return path


def strange(path: Path) -> Path:
    """What is there is another user's from now on; a link itself, not what it leads to."""
    _skip_unless_root()
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


def planted(path: Path, make: Callable[[Path], object]) -> Path:
    """What `make` makes at a path is another user's."""
    make(path)
    return strange(path)
