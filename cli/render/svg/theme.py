"""Standalone SVG documents, and colours that follow the reader's light or dark theme.

They load no fonts or other files. All other colours, as of a card or a hex, are fixed.

A shape has such a colour by its class, as in `shape(parent, "rect", class_="k-card k-s-line")`; classes
beginning with `k-s-` colour the stroke, the others the fill.
"""

from __future__ import annotations

from xml.etree import ElementTree

from kiebitz.cli.render.svg.svg_canvas import FONT, NAMESPACE, Drawing, Element, label, rect, shape

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
    light, dark = (
        "\n".join(
            f"{selector} .k-{name} {{ fill: {pair[place]} }}"
            f" {selector} .k-s-{name} {{ stroke: {pair[place]} }}"
            for name, pair in COLOURS.items()
        )
        for place in (0, 1)
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def page_style() -> str:
    """Return a style sheet for a page with drawings, which also has each colour as a variable `--k-…`.

    It follows the system's theme unless the root element has `data-theme` (light, dark); paper is light.
    """
    light, dark = (
        " ".join(f"--k-{name}: {pair[place]};" for name, pair in COLOURS.items()) for place in (0, 1)
    )
    rules = "\n".join(
        # Elements shown by `use` have no ancestors that a selector could match.
        f".k-{name} {{ fill: var(--k-{name}) }} .k-s-{name} {{ stroke: var(--k-{name}) }}"
        for name in COLOURS
    )
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media screen {\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=light] {{ color-scheme: light; {light} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
        "}\n"
        f"{rules}\n"
    )


_EDGE = 30
_BAND = 64
"""Height of the title above, and of the caption below."""


def document(drawing: Drawing, title: str = "", caption: str = "") -> bytes:
    """Return a drawing as UTF-8, between a title and a caption if there are any; both are not escaped yet.

    Fragments are written out where they are shown, as not every viewer supports `use`.
    """
    band = _BAND if title or caption else 0
    width, height = drawing.width, drawing.height + 2 * band
    root = svg(width, height)
    rect(root, 0, 0, width, height, class_="k-paper")
    room = width - 2 * _EDGE
    if band:
        label(root, (_EDGE, 44), title, 30, "bold k-ink", room)
        label(root, (_EDGE, height - 22), caption, 30, "k-ink", room)
    for piece in drawing.pieces:
        placed = shape(root, "g", transform=f"translate({piece.x:g} {piece.y + band:g})")
        placed.append(ElementTree.fromstring(drawing.fragments[piece.name]))
    document: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return document


def svg(width: float, height: float) -> Element:
    """Return an empty document with the colours of drawings."""
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": NAMESPACE,
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "font-family": FONT,
        },
    )
    ElementTree.SubElement(root, "style").text = style()
    return root
