"""The colours that follow the reader, light or dark. All else, as a card or a hex, keeps its own.

A shape has such a colour by its class, as in `shape(parent, "rect", class_="k-card k-s-line")`; classes
that begin with `k-s-` colour the stroke, the others the fill.
"""

from __future__ import annotations

COLOURS: dict[str, tuple[str, str]] = {
    "ink": ("#1c1c1c", "#f2efe6"),
    "faint": ("#5c5c5c", "#b4b0a6"),
    "paper": ("#fbf9f3", "#15171a"),
    "card": ("#ffffff", "#24272c"),
    "line": ("#c4bfb0", "#4a4f57"),
    "felt": ("#d9ead8", "#1d3a2b"),
    "turn": ("#0b63c5", "#7ab8ff"),
    "alarm": ("#b00020", "#ff8a80"),
}
"""By name: in light and in dark. `turn` marks who is to move, which no colour alone does."""


def style(selector: str = "svg") -> str:
    """A style sheet for drawings below a selector, which goes by what the reader's machine prefers."""
    light, dark = (_rules(selector, place) for place in (0, 1))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def page_style() -> str:
    """A style sheet for a page and its drawings, which has each colour as `--k-…` for itself, too.

    It goes by what the reader's machine prefers, unless the root of the page says `data-theme` (light, dark).
    """
    light, dark = (_values(place) for place in (0, 1))
    rules = "\n".join(
        # What a `use` shows has nothing around it that a selector could name.
        f".k-{name} {{ fill: var(--k-{name}) }} .k-s-{name} {{ stroke: var(--k-{name}) }}"
        for name in COLOURS
    )
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=light] {{ color-scheme: light; {light} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
        f"{rules}\n"
    )


def _values(place: int) -> str:
    return " ".join(f"--k-{name}: {pair[place]};" for name, pair in COLOURS.items())


def _rules(selector: str, place: int) -> str:
    return "\n".join(
        f"{selector} .k-{name} {{ fill: {pair[place]} }} {selector} .k-s-{name} {{ stroke: {pair[place]} }}"
        for name, pair in COLOURS.items()
    )
