"""Pseudonyms and anonymizers for sessions that are to be anonymized."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.anonymizing.pseudonyms import StandIns
    from kiebitz.dissectors.inspection.inspector import DecodeAs


def stand_ins_if(is_anonymized: bool) -> StandIns | None:
    """Stand-ins for what is to be anonymized; None where nothing is."""
    if not is_anonymized:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.pseudonyms import StandIns
    from kiebitz.dissectors.registry import installed

    return StandIns(installed().dissectors.values())


def anonymizer_if(stand_ins: StandIns | None, forced: DecodeAs) -> Anonymizer | None:
    """What puts stand-ins into the items of a session; None where there are none."""
    if stand_ins is None:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.registry import installed

    return Anonymizer(installed().dissectors.values(), forced, stand_ins)
