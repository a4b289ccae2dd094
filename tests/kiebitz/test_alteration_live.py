"""Games altered on real sockets by the real command: what each side gets, what is recorded, who is blamed."""

from __future__ import annotations

from pathlib import Path

import pytest
from altering_relay import Case, assert_as_told, blamed, conversation, play_all

PLACES = {"maexchen": (8, 9), "schafkopf": (9, 7), "catan": (3, 9), "okey": (8, 7), "cgml": (8, 9)}


def _alike() -> list[Case]:
    cases = []
    for protocol, places in PLACES.items():
        for at in places:
            data = conversation(protocol)[at].data
            cases += [
                Case(protocol, at, "--drop", ()),
                Case(protocol, at, "--duplicate", (data, data)),
                Case(protocol, at, "--delay 20ms"),
            ]
    return cases


TOKEN = b"d1c7abfb-9ef3-4df1-a3f5-50e0e9b477e6"

SPOKEN = [
    Case("maexchen", 8, "--change dice=2,1", (b"ROLLED;2,1;" + TOKEN,)),
    Case("maexchen", 9, "--change dice=6,6", (b"ANNOUNCE;6,6;" + TOKEN,)),
    Case(
        "maexchen",
        7,
        "--insert 'ANNOUNCED name=carl dice=2,1'",
        (b"PLAYER ROLLS;carl", b"ANNOUNCED;carl;2,1"),
    ),
    Case("maexchen", 9, "--insert 'SEE token=x'", (b"ANNOUNCE;3,3;" + TOKEN, b"SEE;x")),
    Case("maexchen", 9, "--insert 'PLAYER ROLLS name=carl'", None, (b"PLAYER ROLLS;carl",)),
    Case("schafkopf", 4, "--change konto=500", (b"!KONTO\n500\n0\n!END\n",)),
    Case("schafkopf", 7, "--change klopft=JA", (b"!ERSTE3\nJA\n!END\n",)),
    Case("schafkopf", 4, "--insert 'DRAN dran=2'", (b"!KONTO\n1000\n0\n!END\n", b"!DRAN\n2\n!END\n")),
    Case(
        "schafkopf",
        7,
        "--insert 'SPIELSTDU modus=NICHTS'",
        (b"!ERSTE3\nNEIN\n!END\n", b"!SPIELSTDU\nNICHTS\n!END\n"),
    ),
    Case("schafkopf", 7, "--insert 'DRAN dran=2'", None, (b"!DRAN\n2\n!END\n",)),
    Case(
        "catan",
        5,
        "--change Spieler.Name=Jörg",
        (conversation("catan")[5].data.replace(b"Juergen", "Jörg".encode()),),
    ),
    Case(
        "catan",
        9,
        "--change 'Nachricht=\"Was ist rot?\"'",
        (b'{"Chatnachricht senden":{"Nachricht":"Was ist rot?"}}\n',),
    ),
    Case(
        "catan",
        3,
        "--insert 'Serverantwort Meldung=OK'",
        (b'{"Statusupdate":{"Spieler":{"Status":"Spiel starten","id":1}}}\n', b'{"Serverantwort":"OK"}\n'),
    ),
    Case("catan", 9, "--insert 'Würfeln'", (conversation("catan")[9].data, '{"Würfeln":{}}\n'.encode())),
    Case("catan", 9, "--insert 'Serverantwort Meldung=OK'", None, (b'{"Serverantwort":"OK"}\n',)),
    Case("okey", 2, "--change actualname=Fatma", (b"+LOGI Fatma\r\n",)),
    Case("okey", 7, "--change gamestatus=r", (b"LGAM r\r\n",)),
    Case("okey", 4, "--insert PING", (b"+LPLA Istref\r\n", b"PING\r\n")),
    Case("okey", 5, "--insert LPLA", (b"LLPL\r\n", b"LPLA\r\n")),
    Case("okey", 5, "--insert '+LPLA playerlist=Istref'", None, (b"+LPLA Istref\r\n",)),
    Case("cgml", 8, "--change licite=B7", (b'<licite type="ask">B7</licite>\r\n\r\n',)),
    Case("cgml", 9, "--change licite=NO", (b'<licite type="answer">NO</licite>\r\n\r\n',)),
    Case("cgml", 3, "--change 'card[0]=R07'", (conversation("cgml")[3].data.replace(b"B07", b"R07"),)),
    Case(
        "cgml",
        8,
        "--insert 'licite type=info playerid=1 licite=G'",
        (b'<licite type="ask">G</licite>\r\n\r\n', b'<licite type="info" playerid="1">G</licite>\r\n\r\n'),
    ),
    Case(
        "cgml",
        9,
        "--insert 'licite type=answer licite=NO'",
        (b'<licite type="answer">YES</licite>\r\n\r\n', b'<licite type="answer">NO</licite>\r\n\r\n'),
    ),
    Case(
        "cgml",
        9,
        "--insert 'dial type=cards from=desk to=talon card=[null,null]'",
        None,
        (conversation("cgml")[6].data,),
    ),
]

FORCED = [
    Case("maexchen", 8, "--change dice=7,7", (b"ROLLED;7,7;" + TOKEN,)),
    Case("maexchen", 9, "--change dice=six", (b"ANNOUNCE;six;" + TOKEN,)),
    Case("schafkopf", 4, "--change konto=viel", (b"!KONTO\nviel\n0\n!END\n",)),
    Case("schafkopf", 7, "--change klopft=VIELLEICHT", (b"!ERSTE3\nVIELLEICHT\n!END\n",)),
    Case("catan", 2, "--change id=eins", (b'{"Willkommen":{"id":eins}}\n',)),
    Case("catan", 4, "--change Farbe=7", (b'{"Spieler":{"Name":"Juergen","Farbe":"7"}}\n',)),
    Case("cgml", 3, "--change card[9]=XYZ", (conversation("cgml")[3].data.replace(b"B0Q", b"XYZ"),)),
    Case("cgml", 7, "--change playerid=zwei", (b'<licite type="info" playerid="zwei">G</licite>\r\n\r\n',)),
    Case("okey", 8, "--change gamestatus=zz", (b'+LGAM zz "%"\r\n',)),
    Case("okey", 7, "--change gamestatus=zz", (b"LGAM zz\r\n",)),
    Case("cgml", 8, "--change licite=ALLES", (b'<licite type="ask">ALLES</licite>\r\n\r\n',)),
    Case("cgml", 9, "--change licite=ALLES", (b'<licite type="answer">ALLES</licite>\r\n\r\n',)),
]


def test_each_action_in_each_direction(tmp_path: Path) -> None:
    cases = _alike() + SPOKEN
    database = tmp_path / "altered.db"
    lines = play_all(cases, database)
    assert_as_told(cases, lines, database)
    assert blamed(database) == []


@pytest.mark.full
def test_forced(tmp_path: Path) -> None:
    database = tmp_path / "altered.db"
    lines = play_all(FORCED, database, "--force")
    assert_as_told(FORCED, lines, database)
    assert blamed(database) == []
