"""The dissector of a protocol that is described by a file."""

from __future__ import annotations

from functools import partial
from importlib import resources
from typing import TYPE_CHECKING

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.assembly import MakeTable, python_part
from kiebitz.dissectors.game.table import SimpleTable
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.protocol_file.codecs import codec_of, framer_of
from kiebitz.dissectors.protocol_file.game.plan import Plan
from kiebitz.dissectors.protocol_file.game.presentation import FilePresentation
from kiebitz.dissectors.protocol_file.game.table import FileTable
from kiebitz.dissectors.protocol_file.grammar import grammar_of
from kiebitz.dissectors.protocol_file.line_fields import LineFieldsFramer, line_extents
from kiebitz.dissectors.protocol_file.packaged import packaged_file
from kiebitz.dissectors.protocol_file.patterns import one_budget
from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.websocket.encapsulation import WebSocketEncapsulation

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.conformance import Conformance


class FileDissector(Dissector):
    """A protocol as a file describes it; `specification` is the file's content.

    The file of a `package` may name a table in Python.
    """

    def __init__(self, specification: Specification, package: str = "") -> None:
        self.specification = specification
        plan = Plan(specification)
        grammar = grammar_of(plan)
        identity = specification.identity
        make_table: MakeTable = partial(FileTable, plan, grammar)
        if specification.table is not None:
            make_table = python_part(specification.table, package)
            if isinstance(make_table, type) and issubclass(make_table, SimpleTable) and not make_table.rules:
                make_table.rules = grammar.rules
        self.file_presentation = FilePresentation(specification, plan, grammar, package)
        codec = codec_of(specification, grammar, package)
        framer = framer_of(specification.framing, specification.transport, specification, codec)
        if extents := line_extents(specification, codec, grammar):
            framer = partial(LineFieldsFramer, extents=extents)
        super().__init__(
            grammar=grammar,
            transport=specification.transport,
            codec=codec,
            framer=framer,
            table=make_table,
            default_ports=specification.ports,
            together=specification.together,
            presentation=self.file_presentation,
            encapsulation=WebSocketEncapsulation() if specification.framing.kind == "websocket" else None,
            identity=Identity(
                grammar,
                login_messages=identity.logins if identity is not None else (),
                same_player=identity.same_player if identity is not None else "connection",
                sees_own_dissection=True,
            ),
            conformance=self._conformance,
            package=package,
        )

    def _conformance(self) -> Conformance:
        # Most commands do without.
        from kiebitz.dissectors.protocol_file.conformance import conformance_of

        names = dict.fromkeys(message.name for message in self.specification.messages)
        return conformance_of(self.specification, names, self.package)


def dissector_from(specification: Specification) -> FileDissector:
    """Return the dissector for a protocol file."""
    with one_budget():
        return FileDissector(specification)


def packaged_protocol(package: str, file: str) -> FileDissector:
    """Return the dissector for a protocol file in a package; the file may name a table in Python there.

    Raises:
        ProtocolFileError: The file is invalid.
    """
    text = resources.files(package).joinpath(file).read_text("utf-8")
    with one_budget():
        return FileDissector(read(text, file, lambda protocol: PythonParts(package)).specification, package)


def parts_of(dissector: Dissector | None) -> PythonParts | None:
    """Return the parts in Python that a copy of a package's file may name, None for nothing."""
    if dissector is None or not dissector.package:
        return None
    if isinstance(dissector, FileDissector):
        found = dissector.specification
    else:
        found = packaged_file(dissector.package).specification
    named = {"codec": found.codec or "", "table": found.table or "", "view": found.view or ""}
    return PythonParts(dissector.package, dissector.grammar.python_types, named)
