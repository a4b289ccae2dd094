"""Every protocol that Kiebitz knows: its own, of which a new one is a line here, and those of plug-ins.

A plug-in is an installed package with an entry point in the group `kiebitz.dissectors`. The entry point is
named like the protocol, and leads to the one object that a protocol's package exports. A plug-in that cannot
be used is left out, and a sentence in `problems` says so: nothing is printed here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from kiebitz.dissectors.catan.dissector import CATAN
from kiebitz.dissectors.cgml.dissector import CGML
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.okey.dissector import OKEY
from kiebitz.dissectors.schafkopf.dissector import SCHAFKOPF

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN: tuple[Dissector, ...] = (MAEXCHEN, SCHAFKOPF, CATAN, OKEY, CGML)

ENTRY_POINTS = "kiebitz.dissectors"

_BUILT_IN = {dissector.protocol: dissector for dissector in BUILT_IN}


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


@cache
def installed() -> Installed:
    """What is built in and what plug-ins bring. They are looked for when this is first asked."""
    # It takes its time to load: a tenth of what most commands take in all.
    from importlib.metadata import entry_points

    dissectors = dict(_BUILT_IN)
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


def dissector_of(protocol: str) -> Dissector | None:
    """The dissector of a protocol, None if there is none. Of one that is built in no plug-in is asked."""
    return _BUILT_IN.get(protocol) or installed().dissectors.get(protocol)


def not_installed(protocol: str) -> str:
    """What is to be said of a protocol that is not here, and how to get it."""
    return f"there is no protocol {protocol} here; if a plug-in brings it, install that with pip"


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
