"""The frame of a report as an HTML page, which needs no network and no scripts."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from kiebitz.cli.render.svg.theme import page_style
from kiebitz.dissectors.escaping import printable


def escaped(text: str) -> str:
    """Return a text, which may come from a peer, for a page."""
    return escape(printable(text))


def page_head(title: str, package: str, sheet: str, more_policy: str = "") -> str:
    """Return a page up to the start of its body.

    Args:
        title: Its title, not escaped yet.
        package: The package with its own style sheet; the colours are those of the drawings.
        sheet: The file of that style sheet.
        more_policy: Addition to the content security policy, which allows no requests.
    """
    style = files("kiebitz.cli.render").joinpath("report.css").read_text()
    own = files(package).joinpath(sheet).read_text()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"
        f'{more_policy}">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{page_style()}{style}{own}</style>\n</head>\n<body>\n"
    )
