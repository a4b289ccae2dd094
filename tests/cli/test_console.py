from __future__ import annotations

import pytest

from kiebitz.services.wording import counted


@pytest.mark.parametrize(
    ("count", "what", "told"),
    [
        (0, ("case",), "0 cases"),
        (1, ("case",), "1 case"),
        (2, ("case",), "2 cases"),
        (2000, ("case",), "2,000 cases"),
        (1, ("other copy", "other copies"), "1 other copy"),
        (2, ("other copy", "other copies"), "2 other copies"),
    ],
)
def test_things_are_counted_in_words(count: int, what: tuple[str, ...], told: str) -> None:
    assert counted(count, *what) == told
