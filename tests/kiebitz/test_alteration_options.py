"""Options of the relay that cannot be followed: each is refused with a sentence, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import kiebitz
from tables import commands_of

WHICH = "write [2nd], [first 2], [every 3rd], [20%] or [20%, seed 7]"
HOW = "write loss 5%, delay 80ms±20ms, reorder 2%, double 1%, rate 64kbit/s, cut 10%, reset 1%, seed 7"
ASK = "use msg, dir, stream, who, client, server, time, a field, or state.FIELD"
DICE = "expected two dice 1 to 6, higher first, such as 5,3"

NAMED = {"WHICH": WHICH, "HOW": HOW, "ASK": ASK, "DICE": DICE}

REFUSED = commands_of("""
udp --drop 'msg == "ROLED"'
    => --drop: no message of any protocol can match msg == "ROLED"; did you mean ROLLED?
udp --duplicate 'msg == ROLLED'
    => expected a value (text in quotes, a number, true or false); text must be quoted: "ROLLED"
udp --hold '' => --hold: give a filter; udp or tcp selects all messages
udp --drop 'msg == "ROLLED" [0th]' => --drop: [0th] is not a selector: WHICH
udp --drop 'msg == "ROLLED" [2]' => --drop: [2] is not a selector: WHICH
udp --drop 'msg == "ROLLED" [20%, sed 7]' => --drop: [20%, sed 7] is not a selector: WHICH
udp --hold 'number == 3' => --hold: number is not known while a message is forwarded; ASK
udp --drop 'dcie == 3' => no field "dcie"; did you mean "dice"?
udp --drop 'msg == "ROLLED" and dir == "c2s"'
    => --drop: no message of any protocol can match msg == "ROLLED" and dir == "c2s"
udp --change 'msg == "ROLLED"' dice=7,7 => --change: dice=7,7 does not fit: a die does not show 7; DICE
udp --change 'msg == "ROLLED"' dcie=2,1 => --change: ROLLED has no field dcie; did you mean dice?
udp --change 'msg == "ROLLED"' dice => --change: dice is not of the form FIELD=VALUE, such as dice=5,4
udp --change 'msg == "ROLLED"' => Option '--change' requires 2 arguments.
udp --insert 'msg == "ROLLED"' 'ROLED dice=2,1'
    => --insert: maexchen has no message ROLED; did you mean ROLLED?
udp --insert 'msg == "ROLLED"' 'ROLLED dice=2,1' => --insert: ROLLED needs a value for token, too
udp --insert 'msg == "ROLLED"' '' => --insert: write the message's name first: 'NAME FIELD=VALUE …'
tcp --insert 'msg == "LOGI"' 'ROLLED dice=2,1 token=x'
    => --insert: okey has no message ROLLED; kiebitz protocols okey has them all
udp --insert 'msg == "ROLLED"' 'ROLED dice=2,1' --force
    => --insert: maexchen has no message ROLED; did you mean ROLLED?
udp --delay 'msg == "ROLLED"' 5 => --delay: '5' is not a duration: write 500ms, 2s or 500ms±100ms
udp --delay 'msg == "ROLLED"' '500ms, order'
    => --delay: 'order' is unknown here: write 500ms, or '500ms, reorder'
udp --delay 'msg == "ROLLED"' 4000s => --delay: '4000s' is longer than an hour
udp --impair 'los 5%' => --impair: 'los 5%' is not an impairment: HOW
udp --impair 'loss 500%' => --impair: 'loss 500%' is not a percentage: write loss 5%
udp --impair 'loss 5%, loss 6%' => --impair: loss is given twice
udp --impair 'seed 7' => --impair: a seed alone has no effect: HOW
udp --impair 'rate 0kbit/s' => --impair: 'rate 0kbit/s' is not a rate: write rate 64kbit/s
udp --impair 'delay 1' => --impair: '1' is not a duration: write 500ms, 2s or 500ms±100ms
udp --impair 'loss 5%, cut 5%' => --impair: cut applies to TCP, not to UDP
tcp --impair 'loss 5%' => --impair: loss applies to UDP, not to TCP
tcp --impair 'delay 1s, reorder 5%' => --impair: reorder applies to UDP, not to TCP
udp --force => --force requires an option that alters messages
udp --held-at-exit drop => --held-at-exit requires an option that alters messages
udp --held-at-exit keep => Invalid value for '--held-at-exit': 'keep' is not one of 'forward', 'drop'.
""")


@pytest.mark.parametrize(("transport", "options", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_each_error_is_a_sentence(tmp_path: Path, transport: str, options: list[str], sentence: str) -> None:
    database = tmp_path / "game.db"
    mode = f"reverse:{transport}://127.0.0.1:1@2"
    done = kiebitz("relay", "-m", mode, "-w", str(database), *options)
    assert done.status == 2
    expected = re.sub("|".join(NAMED), lambda name: NAMED[name[0]], sentence)
    assert done.err.splitlines()[0] == f"kiebitz: {expected}"
    assert not [*tmp_path.iterdir()]
