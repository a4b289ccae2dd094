from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.system.cpu_affinity import CoreSharing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process chooses its core")


@pytest.fixture
def cores() -> Iterator[list[int]]:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("there is one core only")
    two = sorted(before)[:2]
    os.sched_setaffinity(0, two)
    yield two
    os.sched_setaffinity(0, before)


def seen(sharing: CoreSharing, behind_s: float | None) -> int:
    sharing.update(None if behind_s is None else now_ns() - int(behind_s * 1e9))
    return len(os.sched_getaffinity(0))


def test_one_that_is_behind_steps_aside_until_it_has_caught_up(cores: list[int]) -> None:
    sharing = CoreSharing(os.getpid())
    assert [seen(sharing, behind_s) for behind_s in (0.0, 0.2, 0.4, 0.0, None)] == [2, 1, 1, 2, 2]


def test_it_takes_the_core_of_the_forwarder(cores: list[int]) -> None:
    # This process is its own forwarder, and runs on one core.
    sharing = CoreSharing(os.getpid())
    os.sched_setaffinity(0, cores[1:])
    seen(sharing, 0.2)
    assert os.sched_getaffinity(0) == {cores[1]}


def test_one_that_is_far_behind_hurries_until_it_has_caught_up(cores: list[int]) -> None:
    sharing = CoreSharing(os.getpid())
    assert [seen(sharing, behind_s) for behind_s in (0.2, 2.0, 0.2, 0.0, 0.2)] == [1, 2, 2, 2, 1]


def test_with_nothing_more_to_read_all_cores_are_its_own_again(cores: list[int]) -> None:
    sharing = CoreSharing(os.getpid())
    assert [seen(sharing, behind_s) for behind_s in (0.2, None)] == [1, 2]


def test_a_forwarder_that_is_gone_is_no_fault(cores: list[int]) -> None:
    assert seen(CoreSharing((1 << 22) + 1), 0.2) == 2


def test_where_there_are_not_two_cores_nothing_changes(cores: list[int]) -> None:
    os.sched_setaffinity(0, cores[:1])
    sharing = CoreSharing(os.getpid())
    os.sched_setaffinity(0, cores)
    assert seen(sharing, 0.2) == 2
