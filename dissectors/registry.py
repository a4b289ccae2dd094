"""Every protocol that Kiebitz knows; a new one is a line here."""

from __future__ import annotations

from dissectors.catan.dissector import CATAN
from dissectors.cgml.dissector import CGML
from dissectors.dissector import Dissector
from dissectors.maexchen.dissector import MAEXCHEN
from dissectors.okey.dissector import OKEY
from dissectors.schafkopf.dissector import SCHAFKOPF

DISSECTORS: tuple[Dissector, ...] = (MAEXCHEN, SCHAFKOPF, CATAN, OKEY, CGML)

BY_PROTOCOL: dict[str, Dissector] = {dissector.protocol: dissector for dissector in DISSECTORS}
