"""A fixture for tests that load protocol files in their own process, which runs other tests, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kiebitz.dissectors.registry import protocol_files, remove_files


@pytest.fixture
def protocol_files_forgotten() -> Iterator[None]:
    """Forget the protocol files that were loaded before the test, and in it."""
    remove_files([file.protocol for file in protocol_files()])
    yield
    remove_files([file.protocol for file in protocol_files()])
