from __future__ import annotations

import pytest
from browser import Look
from command import CAPTURES, TINY
from served_pages import serving
from strength import GAMES

BROKEN = b'protocol = "dice"\nport = 4321\n[messages]\nROLL = "c: faces=interger"\n'

DROP = """([name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const dropped = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
    document.body.dispatchEvent(dropped);
}"""


def test_chosen_and_dropped_files_are_opened_by_the_server(look: Look) -> None:
    with serving(TINY) as server:
        sight = look(server.address, width=390, height=844)
        sight.one("#opener-button").click()
        assert sight.overflow() == 0
        assert not sight.violations()
        sight.expect("status of 400|console error: Failed to load")
        sight.tell(DROP, ["dice.toml", BROKEN.decode()])
        sight.until(lambda: "interger" in sight.text("#opener-problem"), "the mistake is shown")
        assert sight.text("#opener-problem").splitlines()[0].startswith("dice.toml:4:18: error")
        sight.tell(DROP, ["dice.toml", BROKEN.decode().replace("interger", "integer")])
        sight.until(lambda: sight.text("#opener-protocols") == "in use: dice", "the protocol is used")
        sight.page.set_input_files("#opener-file", [CAPTURES / GAMES["schafkopf"]])
        sight.until(lambda: sight.text("#title") == "Schafkopf", "the session is shown")
        assert "session=2" in sight.address
        assert not sight.is_seen("#opener")
        assert sight.count > 10
        sight.settle()
        sight.leave()


@pytest.mark.full
def test_spectators_have_no_choice_of_files(look: Look) -> None:
    with serving(TINY, "--spectator-delay", "1") as server:
        sight = look(f"http://127.0.0.1:{server.port}/")
        assert not sight.is_seen("#opener-button")
        sight.tell(DROP, ["dice.toml", BROKEN.decode()])
        sight.rest()
        assert not [url for url in sight.asked if "api/files" in url]
