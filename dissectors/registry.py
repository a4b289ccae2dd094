"""The registry of protocols: the built-in ones, with one line each here, plug-ins, and protocol files.

A plug-in is an installed package with an entry point in the group `kiebitz.dissectors`. The entry point has
the name of the protocol, and refers to its `Dissector`. An unusable plug-in is skipped, and reported in
`problems`; nothing is printed here.

The texts of protocol files are added at run time: those that the user names, and the copies in databases. A
file that the user names precedes a copy. Built-in protocols and plug-ins precede copies, and cannot be
replaced by a file. `using_copies` limits the copies to those of one database, so that several with different
texts of one protocol can be read side by side.

Protocols are loaded lazily, because loading is slow and most sessions use only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pkgutil import resolve_name
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError

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

FileSource = Literal["given", "configured", "copied"]

_SOURCES: tuple[FileSource, ...] = ("given", "configured", "copied")
"""The sources of protocol files; of two for one protocol, the first one is used."""


class Installed(NamedTuple):
    """The protocols by name, built-in ones first.

    `origins` maps each plug-in's protocol to its package, such as `kiebitz-knobeln 1.0`, and that of a file
    to its path. `problems` has a sentence for each skipped plug-in or file: its name, the reason, and the
    remedy.
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


class ProtocolFile(msgspec.Struct, frozen=True):
    """A protocol file that was added at run time.

    Attributes:
        protocol: The name of its protocol.
        text: Its content; empty for a dissector that was made otherwise.
        origin: The path of the file, or of the database that contains a copy.
        source: The file was named on the command line or in a program (`given`), in the configuration file
            (`configured`), or the text comes from a database (`copied`). The first precedes the others.
    """

    protocol: str
    text: str
    origin: str
    source: FileSource = "given"


class ProtocolClashError(KiebitzError):
    """Two protocols with one name."""

    is_usage = True


class _Compiled(msgspec.Struct, weakref=True):
    """The dissector of a text, which is made on first use, or the reason why it cannot be."""

    dissector: Dissector | None = None
    problem: str | None = None
    making: Lock = msgspec.field(default_factory=Lock)
    """Held while the dissector is made, so that of several threads one makes it."""


class _Added(msgspec.Struct):
    """A protocol file, and what is made of its text."""

    file: ProtocolFile
    compiled: _Compiled

    @property
    def problem(self) -> str | None:
        """A sentence about a text that turned out to be unusable."""
        if self.compiled.problem is None:
            return None
        return (
            f"{self.file.origin}: its protocol file {self.file.protocol} cannot be used:"
            f" {self.compiled.problem}; events are shown as stored: give another file with -P"
        )


Copies = dict[str, _Added]
"""Protocol files by protocol."""

_named: Copies = {}
"""The files that the user has named."""

_copies: ContextVar[Copies] = ContextVar("copies", default={})  # noqa: B039  # one for the whole process
"""The copies in databases."""

_by_text: WeakValueDictionary[tuple[str, str], _Compiled] = WeakValueDictionary()
"""The compiled copies in use, by protocol and text: many databases contain the same text."""


@contextmanager
def using_copies(copies: Copies) -> Iterator[None]:
    """Use these copies instead of those of the whole process, and add further ones to them."""
    before = _copies.set(copies)
    try:
        yield
    finally:
        _copies.reset(before)


def _added() -> Copies:
    """Return the files in use: of two for a protocol, the one that the user has named."""
    return _copies.get() | _named


def installed() -> Installed:
    """Return all protocols; plug-ins are searched for on the first call."""
    found = plugins()
    added = _added()
    if not added:
        return found
    dissectors, origins, problems = {**found.dissectors}, {**found.origins}, [*found.problems]
    by_source = sorted(added.items(), key=lambda named: _SOURCES.index(named[1].file.source))
    for protocol, one in by_source:
        if protocol in dissectors:
            continue
        if (dissector := _made(one)) is not None:
            dissectors[protocol] = dissector
            origins[protocol] = one.file.origin
        elif one.problem is not None:
            problems.append(one.problem)
    return Installed(dissectors, origins, tuple(problems))


def known_problems() -> tuple[str, ...]:
    """Return the problems of the plug-ins and protocol files that were used so far; nothing is loaded."""
    of_plugins = plugins().problems if plugins.cache_info().currsize else ()
    return (*of_plugins, *(added.problem for added in _added().values() if added.problem is not None))


def dissector_of(protocol: str | None) -> Dissector | None:
    """Return the dissector of a protocol, or None. For a built-in protocol no plug-in is loaded."""
    if protocol is None:
        return None
    if protocol in _BUILT_IN:
        return _built_in(protocol)
    plugin = plugins().dissectors.get(protocol)
    if plugin is not None:
        return plugin
    added = _named.get(protocol) or _copies.get().get(protocol)
    return None if added is None else _made(added)


def add(dissector: Dissector, origin: str, text: str = "") -> None:
    """Add a protocol at run time: `origin` is its file, `text` the file's content.

    Raises:
        ProtocolClashError: There is another protocol of this name.
    """
    add_file(ProtocolFile(dissector.protocol, text, origin), dissector)


def add_file(file: ProtocolFile, dissector: Dissector | None = None, *, replaces: bool = False) -> None:
    """Add a protocol file; without its dissector, that is made on first use.

    A file that precedes another of the same name replaces it; the same text is added once. If it
    `replaces`, another text from the same source is replaced, too.

    Raises:
        ProtocolClashError: There is another protocol of this name, from a plug-in or from such a file.
    """
    name = file.protocol
    if file.source != "copied" and name in plugins().dissectors:
        owner = plugins().origins.get(name, "Kiebitz itself")
        raise ProtocolClashError(
            f"{file.origin}: there is a protocol {name} already, from {owner}: choose another name"
        )
    files = _copies.get() if file.source == "copied" else _named
    before = files.get(name)
    if before is not None:
        rank, other = _SOURCES.index(file.source), _SOURCES.index(before.file.source)
        if rank > other:
            return
        is_same = bool(file.text) and file.text == before.file.text
        if is_same:
            if rank < other:
                before.file = file
            return
        if rank == other and not replaces and (file.text or dissector is not before.compiled.dissector):
            advice = "give one of them with -P" if file.source == "copied" else "give one of them"
            raise ProtocolClashError(
                f"{before.file.origin} and {file.origin} describe the protocol {name} differently: {advice}"
            )
    if dissector is None:
        compiled = _by_text.setdefault((name, file.text), _Compiled())
    else:
        compiled = _Compiled(dissector)
    files[name] = _Added(file, compiled)


def remove_files(protocols: Iterable[str]) -> None:
    """Forget the protocol files of these protocols."""
    for protocol in protocols:
        _named.pop(protocol, None)
        _copies.get().pop(protocol, None)


def protocol_files() -> tuple[ProtocolFile, ...]:
    """Return the texts that were added, for another process and for databases."""
    return tuple(added.file for added in _added().values() if added.file.text)


def file_of(protocol: str) -> ProtocolFile | None:
    """Return the protocol file in use for a protocol; None if it has none."""
    added = _named.get(protocol) or _copies.get().get(protocol)
    if added is None or not added.file.text or protocol in _BUILT_IN or protocol in plugins().dissectors:
        return None
    return added.file


def dissector_of_text(text: str, name: str) -> Dissector:
    """Return the dissector of a protocol file's text; `name` is the file. Raises ProtocolFileError."""
    # Few sessions use a protocol file.
    from kiebitz.dissectors.protocol_file.dissector import dissector_from
    from kiebitz.dissectors.protocol_file.reading.reader import read_specification

    return dissector_from(read_specification(text, name))


def _made(added: _Added) -> Dissector | None:
    """Return the dissector of an added file; None if its text is unusable, with the problem noted."""
    file, compiled = added.file, added.compiled
    with compiled.making:
        if compiled.dissector is None and compiled.problem is None:
            try:
                dissector = dissector_of_text(file.text, file.protocol)
                if dissector.protocol != file.protocol:
                    raise _Unusable(f"it describes {dissector.protocol}")
                compiled.dissector = dissector
            # A database may come from anyone: no text in it may end a command.
            except Exception as error:
                compiled.problem = " ".join(str(error).split())
    return compiled.dissector


def not_installed(protocol: str) -> str:
    """Return the message for an unknown protocol."""
    return f"there is no protocol {protocol} here: give its file with -P, or install its plug-in with pip"


@cache
def plugins() -> Installed:
    """Return the built-in protocols and those of plug-ins."""
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
