"""Measurement of growth by the number of steps, which does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def steps_of(function: Callable[[], object]) -> int:
    """Return the number of calls in a function; each element of a generator counts as one."""
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return steps


def growth_of(function_of: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as many steps three further `size`s take as the first three, about 1 if linear.

    `function_of` prepares a function for a size.
    """
    one, four, seven = (steps_of(function_of(size * times)) for times in (1, 4, 7))
    return (seven - four) / (four - one)
