"""Tokens: each way of quoting reads what it writes, and finds each character again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter, Tokenizer

WORDS = PaddedQuotes(pads=(" ", "%"))

TOKENIZERS = {
    "padded": WORDS,
    "words": Splitter(" ", '"', " \t"),
    "delimited": Splitter(";", "'"),
    "long delimiter": Splitter("::", '"'),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@given(st.lists(st.text("ab \\\"';:%\tü", max_size=6), min_size=1, max_size=5))
def test_tokens_are_read_as_they_were_written(name: str, texts: list[str]) -> None:
    tokenizer: Tokenizer = TOKENIZERS[name]
    text = tokenizer.joined(texts)
    tokens = tokenizer.tokens(text)
    assert tokenizer.texts(text) == [token.text for token in tokens] == texts
    for token in tokens:
        places = tokenizer.places(text, token)
        assert "".join(text[end - 1] for _, end in places) == token.text
        assert [at for at in places if not token.start <= at[0] < at[1] <= token.end] == []


TEXTS = [
    ('Hallo "Leute", wie gehts?', r'"Hallo \"Leute\", wie gehts?⁋"'),
    ('\\"', r'"\\"⁋"'),
    ("ends with backslash\\", '"ends with backslash\\⁋"'),
    ("C:\\Users\\boran\\", "C:\\Users\\boran\\"),
    ("", '"⁋"'),
    ("%", "%"),
    (" ", '" ⁋"'),
    ("a\tb", "a\tb"),
]


@pytest.mark.parametrize("pad", WORDS.pads)
@pytest.mark.parametrize(("text", "written"), TEXTS)
def test_a_token_is_written_and_read(text: str, written: str, pad: str) -> None:
    assert WORDS.quoted(text, pad) == written.replace("⁋", pad)
    assert WORDS.texts(f"x {WORDS.quoted(text, pad)} y") == ["x", text, "y"]


texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(texts, max_size=5), st.sampled_from(WORDS.pads))
def test_a_list_is_read_as_it_was_written_however_deep(tokens: list[str], pad: str) -> None:
    assert WORDS.texts(WORDS.joined(tokens, pad)) == tokens
    nested = WORDS.joined([WORDS.joined(tokens, pad), "x"], pad)
    assert WORDS.texts(WORDS.texts(nested)[0]) == tokens


@given(st.text(' "\\%ab', max_size=30))
def test_any_text_is_cut_as_servers_cut_it(text: str) -> None:
    assert WORDS.texts(text) == cut_char_by_char(text)


def cut_char_by_char(text: str) -> list[str]:
    tokens: list[str] = []
    token, inside, was, escaped = "", False, False, False
    for at, char in enumerate(f"{text} "):
        if escaped:
            token, escaped = f'{token}"', False
        elif inside and char == "\\" and text[at + 1 : at + 2] == '"':
            escaped = True
        elif char == '"':
            was = was or inside
            inside = not inside
        elif char == " " and not inside:
            if token:
                tokens.append(token[:-1] if was and token[-1] in WORDS.pads else token)
                token, was = "", False
        else:
            token += char
    return tokens


@given(st.lists(texts.filter(bool), min_size=1, max_size=4), st.sampled_from(WORDS.pads))
def test_each_character_of_a_token_is_found_in_the_line(tokens: list[str], pad: str) -> None:
    line = WORDS.joined(tokens, pad)
    for token in WORDS.tokens(line):
        places = WORDS.places(line, token)
        assert "".join(line[end - 1] for _, end in places) == token.text
