"""Colours that follow the reader's light or dark theme. All others, as of a card or a hex, are fixed.

A shape has such a colour by its class, as in `shape(parent, "rect", class_="k-card k-s-line")`; classes
beginning with `k-s-` colour the stroke, the others the fill.
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
"""Light and dark colour by name. `turn` marks the player to move, never by colour alone."""


def style(selector: str = "svg") -> str:
    """Return a style sheet for drawings below a selector, which follows the system's theme."""
    light, dark = (_rules(selector, place) for place in (0, 1))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def page_style() -> str:
    """Return a style sheet for a page with drawings, which also has each colour as a variable `--k-…`.

    It follows the system's theme unless the root element has `data-theme` (light, dark).
    """
    light, dark = (_values(place) for place in (0, 1))
    rules = "\n".join(
        # Elements shown by `use` have no ancestors that a selector could match.
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
