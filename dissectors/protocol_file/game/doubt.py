"""Doubt about the values of a table's state, as a message of unknown content may have changed them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kiebitz.dissectors.protocol_file.expressions import Pattern

MAX_CERTAIN = 1000
"""Maximum number of paths that are known to be certain again."""


class PathDoubt:
    """The values in doubt: those at the paths of `patterns`, unless they were put since."""

    def __init__(self) -> None:
        self._patterns: dict[Pattern, None] = {}
        self._certain: dict[tuple[str, ...], None] = {}

    def __bool__(self) -> bool:
        """Return True if any value is in doubt."""
        return bool(self._patterns)

    def begin(self, patterns: Collection[Pattern]) -> None:
        """Doubt the values at these paths."""
        self._patterns.update(dict.fromkeys(patterns))
        for path in [path for path in self._certain if any(_meets(path, other) for other in patterns)]:
            del self._certain[path]

    def end(self, path: Sequence[str]) -> None:
        """Note that the value at a path is certain, with all values in it."""
        if not self._patterns:
            return
        end = len(path)
        for pattern in [other for other in self._patterns if other[:end] == tuple(path)]:
            del self._patterns[pattern]
        if any(_meets(path, pattern) for pattern in self._patterns):
            self._certain[tuple(path)] = None
            if len(self._certain) > MAX_CERTAIN:
                del self._certain[next(iter(self._certain))]

    def keep(self, first_steps: Collection[str]) -> None:
        """Keep only the doubt about values below these first steps of a path."""
        self._patterns = {pattern: None for pattern in self._patterns if pattern[0] in first_steps}
        self._certain = {path: None for path in self._certain if path[0] in first_steps}

    def covers(self, path: Sequence[str]) -> bool:
        """Return True if the value at a path, or a value in it, is in doubt."""
        return any(_meets(path, pattern) for pattern in self._patterns) and not any(
            tuple(path[:end]) in self._certain for end in range(1, len(path) + 1)
        )


class UnfinishedMessage:
    """The same doubt while a message of the other side is arriving, which may change `patterns`."""

    def __init__(self, doubt: PathDoubt, patterns: Collection[Pattern]) -> None:
        self._doubt = doubt
        self._patterns = patterns

    def covers(self, path: Sequence[str]) -> bool:
        """Return True if the value at a path, or a value in it, is in doubt."""
        return any(_meets(path, pattern) for pattern in self._patterns) or self._doubt.covers(path)


def _meets(path: Sequence[str], pattern: Pattern) -> bool:
    """Return True if a path and a pattern lead to the same value, or one to a part of the other's."""
    return all(step is None or step == key for key, step in zip(path, pattern, strict=False))
