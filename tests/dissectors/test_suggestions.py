from __future__ import annotations

import pytest
from command import ROOT
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.suggestions import did_you_mean, suggestion_in, with_suggestion

WORDS = st.text(st.characters(exclude_characters='"?'), min_size=1)


@given(st.text(), WORDS)
def test_messages_are_readable(problem: str, meant: str) -> None:
    text = with_suggestion(f'"{problem}" is not known', meant)
    assert suggestion_in("malformed", text) == meant
    assert suggestion_in("malformed", with_suggestion(f'"{problem}" is not known', f'"{meant}"')) == meant


@given(st.text())
def test_a_placeholder_for_sent_values(sent: str) -> None:
    text = f'"{sent}: {did_you_mean("me")}" is not known'
    assert with_suggestion(text, None) == text
    assert suggestion_in("malformed", text) is None
    assert suggestion_in("rule", with_suggestion("it is not allowed", "me")) is None


@pytest.mark.parametrize(
    ("protocol", "direction", "frame", "meant"),
    [
        ("maexchen", "c2s", b"REGSTER;alice", "REGISTER"),
        ("maexchen", "c2s", b"REGISTER_SPECTATR;alice", "REGISTER_SPECTATOR"),
        ("catan", "c2s", b'{"Halo":{"Version":"x"}}\n', "Hallo"),
        ("okey", "c2s", b"LOGN a b\r\n", "LOGO"),
        ("schafkopf", "c2s", b"!SPIELR\n", "!SPIELSTDU"),
        ("schafkopf", "c2s", b"nothing\n", None),
    ],
)
def test_a_diagnostic_has_it(protocol: str, direction: Direction, frame: bytes, meant: str | None) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    (violation,) = dissector.codec.decode(frame, direction).violations
    assert violation.suggestion == meant


def test_only_one_module_words_it() -> None:
    said = [
        str(page.relative_to(ROOT))
        for room in ("cli", "dissectors", "proxy", "storage")
        for page in (ROOT / room).rglob("*.py")
        if "did you mean" in page.read_text()
    ]
    assert said == ["dissectors/suggestions.py"]
