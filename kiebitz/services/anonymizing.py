"""Factories of pseudonyms and anonymizers, which load their modules only if needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
    from kiebitz.dissectors.inspection.inspector import DecodeAs


def pseudonyms_if(is_anonymized: bool) -> Pseudonyms | None:
    """Return new pseudonyms for all protocols; None without anonymization."""
    if not is_anonymized:
        return None
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
    from kiebitz.dissectors.registry import installed

    return Pseudonyms(installed().dissectors.values())


def anonymizer_if(pseudonyms: Pseudonyms | None, forced: DecodeAs) -> Anonymizer | None:
    """Return an anonymizer with these pseudonyms; None without them."""
    if pseudonyms is None:
        return None
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
    from kiebitz.dissectors.registry import installed

    return Anonymizer(installed().dissectors.values(), forced, pseudonyms)
