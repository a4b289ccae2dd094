"""Close the databases that a test has opened when it is over, as a command does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def test_scope() -> Iterator[None]:
    """For the time of a test: `open_session` and `closed_afterwards` close with it."""
    with click.Context(click.Command("test")):
        yield


_all = click.Context(click.Command("tests"))


@contextmanager
def kept_until_end() -> Iterator[None]:
    """Close what a test opens and later tests use, after the last test."""
    with _all.scope(cleanup=False):
        yield


def close_all() -> None:
    _all.close()


def call_at_end(end: Callable[[], object]) -> None:
    """Register a function to call after the last test."""
    _all.call_on_close(end)


def close_after_test(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return a connection that is closed when this test is over; that of a fixture, when all are."""
    (click.get_current_context(silent=True) or _all).call_on_close(connection.close)
    return connection
