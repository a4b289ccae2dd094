"""Every protocol that Kiebitz knows: its own, of which a new one is a line here, and those of plug-ins.

A plug-in is an installed package with an entry point in the group `kiebitz.dissectors`. The entry point is
named like the protocol, and leads to the one object that a protocol's package exports. A plug-in that cannot
be used is left out, and a sentence in `problems` says so: nothing is printed here.

A protocol is loaded when it is asked for: each takes its time, and a session mostly speaks only one.
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from kiebitz.dissectors.dissector import Dissector

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    BUILT_IN: tuple[Dissector, ...]
    """Kiebitz's own protocols."""

_BUILT_IN = {
    "maexchen": "kiebitz.dissectors.protocols.maexchen.dissector:MAEXCHEN",
    "schafkopf": "kiebitz.dissectors.protocols.schafkopf.dissector:SCHAFKOPF",
    "catan": "kiebitz.dissectors.protocols.catan.dissector:CATAN",
    "okey": "kiebitz.dissectors.protocols.okey.dissector:OKEY",
    "cgml": "kiebitz.dissectors.protocols.cgml.dissector:CGML",
}
"""Where Kiebitz's own protocols are, as an entry point says it."""

ENTRY_POINTS = "kiebitz.dissectors"


class Installed(NamedTuple):
    """All protocols, by name, those that are built in first.

    `origins` tells of each plug-in's protocol which package it comes from, such as `kiebitz-knobeln 1.0`;
    `problems` has a sentence for each plug-in that is left out: which, why, and what to do.
    """

    dissectors: dict[str, Dissector]
    origins: dict[str, str]
    problems: tuple[str, ...]


class _Unusable(Exception):
    """Why a plug-in cannot be used."""


def __getattr__(name: str) -> tuple[Dissector, ...]:
    """`BUILT_IN`, when it is first asked for."""
    if name != "BUILT_IN":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(map(_built_in, _BUILT_IN))


@cache
def installed() -> Installed:
    """What is built in and what plug-ins bring. They are looked for when this is first asked."""
    # It takes its time to load: a tenth of what most commands take in all.
    from importlib.metadata import entry_points

    dissectors = {protocol: _built_in(protocol) for protocol in _BUILT_IN}
    origins: dict[str, str] = {}
    problems: list[str] = []
    # In an order of their own: of two for one protocol it is always the same that is left out.
    for offer in sorted(entry_points(group=ENTRY_POINTS), key=lambda offer: (offer.name, offer.value)):
        assert offer.dist is not None, "only an entry point made by hand has no distribution"
        package = offer.dist.name
        origin = f"{package} {offer.dist.version}"
        try:
            if offer.name in dissectors:
                owner = origins.get(offer.name, "Kiebitz itself")
                raise _Unusable(f"there is a protocol {offer.name} already, from {owner}")
            dissectors[offer.name] = _load(offer)
            origins[offer.name] = origin
        except _Unusable as reason:
            problems.append(
                f"the plug-in {origin} is left out: {reason}; update it, or remove it with"
                f" pip uninstall {package}"
            )
    return Installed(dissectors, origins, tuple(problems))


def dissector_of(protocol: str | None) -> Dissector | None:
    """The dissector of a protocol, None if there is none. Of one that is built in no plug-in is asked."""
    if protocol is None:
        return None
    return _built_in(protocol) if protocol in _BUILT_IN else installed().dissectors.get(protocol)


def not_installed(protocol: str) -> str:
    """What is to be said of a protocol that is not here, and how to get it."""
    return f"there is no protocol {protocol} here; if a plug-in brings it, install that with pip"


@cache
def _built_in(protocol: str) -> Dissector:
    dissector: Dissector = resolve_name(_BUILT_IN[protocol])
    return dissector


def _load(offer: EntryPoint) -> Dissector:
    """The object that an entry point leads to. Raises _Unusable."""
    try:
        loaded = offer.load()
    # Foreign code may fail in any way, and a script that ends itself must not end Kiebitz.
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise _Unusable(f"{offer.value} cannot be loaded ({said})") from error
    if not isinstance(loaded, Dissector):
        raise _Unusable(f"{offer.value} is no Dissector")
    if loaded.protocol != offer.name:
        raise _Unusable(f"it offers {offer.name}, but {offer.value} is {loaded.protocol}")
    return loaded
