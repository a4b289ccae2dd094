"""Another user's files, links, pipes and folders at paths where Kiebitz writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

STRANGER = 65_534
"""The user id of `nobody`."""


def _skip_unless_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("files of another user take root to make them")


def folder_for_all(path: Path) -> Path:
    """Return a folder like /tmp, in which all users create files and remove only their own."""
    _skip_unless_root()
    path.mkdir()
    path.chmod(0o1777)
    return path


def give_to_stranger(path: Path) -> Path:
    """Give a path to another user; a link itself, not its target."""
    _skip_unless_root()
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


def create_as_stranger(path: Path, make: Callable[[Path], object]) -> Path:
    """Create something at a path with `make`, and give it to another user."""
    make(path)
    return give_to_stranger(path)
