"""Every protocol that Kiebitz knows; a new one is a line here."""

from __future__ import annotations

from dissectors.dissector import Dissector
from dissectors.maexchen.dissector import MAEXCHEN

DISSECTORS: tuple[Dissector, ...] = (MAEXCHEN,)

BY_PROTOCOL: dict[str, Dissector] = {dissector.protocol: dissector for dissector in DISSECTORS}
