"""Every protocol's tables of single messages, malformed ones too."""

from __future__ import annotations

import catan_cases
import cgml_cases
import maexchen_cases
import okey_cases
import pytest
import schafkopf_cases
from cases import Case
from cgml_broken import BROKEN

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN

CASES: dict[Dissector, list[Case]] = {
    MAEXCHEN: [*maexchen_cases.SOUND, *maexchen_cases.LOOSE, *maexchen_cases.MALFORMED],
    SCHAFKOPF: [*schafkopf_cases.SOUND, *schafkopf_cases.LOOSE, *schafkopf_cases.MALFORMED],
    CATAN: [*catan_cases.SOUND, *catan_cases.DIALECTS, *catan_cases.LOOSE, *catan_cases.MALFORMED],
    OKEY: [*okey_cases.SEED, *okey_cases.HEAD, *okey_cases.LOOSE, *okey_cases.MALFORMED],
    CGML: [*cgml_cases.SOUND, *cgml_cases.LOOSE, *BROKEN],
}

each_protocol = pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
