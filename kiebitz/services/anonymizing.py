"""Pseudonyms and anonymizers for sessions that are to be anonymized."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
    from kiebitz.dissectors.inspection.inspector import DecodeAs


def stand_ins_if(is_anonymized: bool) -> Pseudonyms | None:
    """Stand-ins for what is to be anonymized; None where nothing is."""
    if not is_anonymized:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
    from kiebitz.dissectors.registry import installed

    return Pseudonyms(installed().dissectors.values())


def anonymizer_if(pseudonyms: Pseudonyms | None, forced: DecodeAs) -> Anonymizer | None:
    """What puts stand-ins into the items of a session; None where there are none."""
    if pseudonyms is None:
        return None
    # Loaded only where it is needed.
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.registry import installed

    return Anonymizer(installed().dissectors.values(), forced, pseudonyms)
