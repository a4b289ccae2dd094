"""Settings and checks of all tests: a uniform environment, a time limit, and no processes left behind."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import time
from collections.abc import Generator
from typing import Any

import cleanup
import descendants
import pytest
import strength
from hypothesis import settings

from kiebitz.cli.terminal import emoji

pytest_plugins = ["browser", "forgotten_files", "taps_and_nats"]
"""Modules with fixtures that several test modules use."""

GRACE_S = 60
"""Seconds after its timeout at which a test that cannot be interrupted is ended with its whole process."""

FAREWELL_S = 20
"""Seconds that a process may take to end after its peer has."""

SETTLED = (
    *("CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTHONWARNINGS"),
    "PYTHONDONTWRITEBYTECODE",
    *emoji.SURROUNDINGS,
)
"""Environment variables that change the output of programs, or that disable the cache of compiled modules."""

_limited: tuple[float, float] = (0, 0)
"""The ceiling of the test for which this process's end was last put off, and when."""

_stderr = -1

_crashes: list[str] = []
"""Reports of the workers that ended by force."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="everything, as `make test-all` does")


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    full = config.getoption("--full")
    strength.choose(full)
    # No test is timed. All else stays as it was: for CI, hypothesis makes up the same cases each time.
    few = settings(deadline=None, max_examples=strength.times(settings().max_examples))
    settings.register_profile("kiebitz", parent=few)
    settings.load_profile("kiebitz")
    # After pytest's own last garbage collection, which would go through all tests; but before Python ends:
    # DuckDB reports its objects that remain then, which frozen ones would.
    config.add_cleanup(gc.unfreeze)
    # Not yet the one that is captured.
    _stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    descendants.adopt()
    _settle()


def _settle() -> None:
    """Start the tests' programs alike, whatever this one was started by."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            # It is still ignored here, but started programs do not inherit that.
            signal.signal(number, lambda *_: None)
    for name in SETTLED:
        os.environ.pop(name, None)
    # No configuration of the user.
    os.environ["KIEBITZ_CONFIG"] = os.devnull
    os.umask(0o022)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected items, all of which stay, from garbage collection.

    Otherwise it takes a third of the time of collecting, and runs again in each test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Collect no test that `make test` leaves out: each process would make thousands, to leave them out."""
    config = collector.config
    if config.getoption("--full") or any("::" in argument for argument in config.args):
        return None
    return [] if strength.is_left_out(obj) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full = config.getoption("--full")
    for item in items:
        if item.get_closest_marker("soak") is None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(strength.CEILING_S[full]))
    if not full:
        left_out = strength.left_out(items)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    _limit(item)
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    _limit(item)
    with cleanup.test_scope():
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    _limit(item)
    yield
    present = descendants.children()
    descendants.staying.intersection_update(present if nextitem is not None else ())
    if present <= descendants.staying:
        return
    left = descendants.left_behind(descendants.staying, FAREWELL_S)
    if left:
        pytest.fail(f"it left processes behind, which are ended now:\n{chr(10).join(left)}", pytrace=False)


def _limit(item: pytest.Item) -> None:
    """End this process, and say where it was, once a test neither ends nor can be ended by pytest-timeout.

    That raises an exception in the main thread, which is of no use while that runs no Python.
    """
    global _limited
    ceiling = item.get_closest_marker("timeout")
    if ceiling is not None and ceiling.args:
        now = time.monotonic()
        if _limited[0] == ceiling.args[0] and now - _limited[1] < GRACE_S / 2:
            # Each time a thread ends and another begins. On a busy machine that takes longer than most tests.
            return
        _limited = (ceiling.args[0], now)
        faulthandler.dump_traceback_later(ceiling.args[0] + GRACE_S, file=_stderr, exit=True)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    before = descendants.children()
    try:
        return (yield)
    finally:
        descendants.staying.update(descendants.children() - before)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended; if it was by force, what it left is this process's now."""
    if error is not None:
        # A signal is a negative number. xdist does not report it.
        _crashes.append(
            f"{node.gateway.id}: its process ended with status {node.gateway._io.popen.wait(GRACE_S)}"
        )
    descendants.left_behind(set(), 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for crash in _crashes:
        terminalreporter.write_line(crash)
    if not config.getoption("--full"):
        terminalreporter.write_line("Of what is repeated only a few: pytest --full runs all.")


def pytest_sessionfinish() -> None:
    cleanup.close_all()


def pytest_unconfigure(config: pytest.Config) -> None:
    faulthandler.cancel_dump_traceback_later()
    # A thread that a test left behind would keep Python from ending. A worker waits for the others.
    if not hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(GRACE_S, file=_stderr, exit=True)
