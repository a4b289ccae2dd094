"""The registry of protocols: the built-in ones, with one line each here, and those of plug-ins.

A plug-in is an installed package with an entry point in the group `kiebitz.dissectors`. The entry point has
the name of the protocol, and refers to its `Dissector`. An unusable plug-in is skipped, and reported in
`problems`; nothing is printed here.

Protocols are loaded lazily, because loading is slow and most sessions use only one.
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
"""The entry points of Kiebitz's own protocols."""

ENTRY_POINTS = "kiebitz.dissectors"


class Installed(NamedTuple):
    """The protocols by name, built-in ones first.

    `origins` maps each plug-in's protocol to its package, such as `kiebitz-knobeln 1.0`; `problems` has a
    sentence for each skipped plug-in: its name, the reason, and the remedy.
    """

    dissectors: dict[str, Dissector]
    origins: dict[str, str]
    problems: tuple[str, ...]


class _Unusable(Exception):
    """The reason why a plug-in cannot be used."""


def __getattr__(name: str) -> tuple[Dissector, ...]:
    """Return `BUILT_IN`, loaded on first access."""
    if name != "BUILT_IN":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(map(_built_in, _BUILT_IN))


@cache
def installed() -> Installed:
    """Return all protocols; plug-ins are searched for on the first call."""
    # Imported here because it is slow: a tenth of the run time of most commands.
    from importlib.metadata import entry_points

    dissectors = {protocol: _built_in(protocol) for protocol in _BUILT_IN}
    origins: dict[str, str] = {}
    problems: list[str] = []
    # Sorted, so that of two plug-ins for one protocol the same one is always skipped.
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
    """Return the dissector of a protocol, or None. For a built-in protocol no plug-in is loaded."""
    if protocol is None:
        return None
    return _built_in(protocol) if protocol in _BUILT_IN else installed().dissectors.get(protocol)


def not_installed(protocol: str) -> str:
    """Return the message for an unknown protocol."""
    return f"there is no protocol {protocol} here; if a plug-in brings it, install that with pip"


@cache
def _built_in(protocol: str) -> Dissector:
    dissector: Dissector = resolve_name(_BUILT_IN[protocol])
    return dissector


def _load(offer: EntryPoint) -> Dissector:
    """Return the object of an entry point. Raises _Unusable."""
    try:
        loaded = offer.load()
    # Third-party code may fail in any way; even SystemExit must not end Kiebitz.
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise _Unusable(f"{offer.value} cannot be loaded ({said})") from error
    if not isinstance(loaded, Dissector):
        raise _Unusable(f"{offer.value} is not a Dissector")
    if loaded.protocol != offer.name:
        raise _Unusable(f"it offers {offer.name}, but {offer.value} is {loaded.protocol}")
    return loaded
