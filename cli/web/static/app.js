// The page: puts its parts together, and says what each key and each button does.

import { Address, placeOf } from "./address.js";
import { Announcer } from "./announcer.js";
import { startAppearance } from "./appearance.js";
import { Bar } from "./bar.js";
import { Chart } from "./chart.js";
import { Choosers } from "./choosers.js";
import { copyReference } from "./copying.js";
import { byId } from "./elements.js";
import { FilterLine } from "./filter_line.js";
import { Fragments } from "./fragments.js";
import { HeldStrip } from "./held_strip.js";
import { Held } from "./held.js";
import { showHelp } from "./help.js";
import { keysOf, listenForKeys } from "./keys.js";
import { Moves } from "./moves.js";
import { EventsPane } from "./pane_events.js";
import { FlawsPane } from "./pane_flaws.js";
import { HeldPane } from "./pane_held.js";
import { MessagePane } from "./pane_message.js";
import { MessagesPane } from "./pane_messages.js";
import { StatePane } from "./pane_state.js";
import { StreamsPane } from "./pane_streams.js";
import { Panes } from "./panes.js";
import { Pictures } from "./pictures.js";
import { Playing } from "./playing.js";
import { startProjector } from "./projector.js";
import { Several } from "./several.js";
import { FileSource } from "./source_file.js";
import { ServerSource } from "./source_server.js";
import { Stage } from "./stage.js";
import { startStatusLine } from "./status_line.js";
import { Watched } from "./watched.js";
import { Where } from "./where.js";

startAppearance(byId("theme"));

const data = document.getElementById("kiebitz-data");
const source = data === null ? new ServerSource() : await FileSource.from(data);
const where = new Where();
const fragments = new Fragments(byId("fragments"));
const pictures = new Pictures(source, fragments);
const watched = new Watched(source, where, pictures);
const moves = new Moves(where, watched, source);
const announcer = new Announcer(byId("said"));
const filterLine = new FilterLine(source, where);
const choosers = new Choosers(where, watched, moves, source);
new Stage(where, watched, pictures, fragments, announcer);
new Bar(where, watched, moves);
new Chart(where, watched, moves);
new Playing(where, watched, pictures);
startStatusLine(where, watched, announcer);
startProjector(where);

const held = new Held(source, where, watched, announcer);
const given = { source, where, watched, moves, pictures, filterLine, held };
new Several(given, fragments);
const heldPane = new HeldPane(given);
const panes = new Panes(where, [
  new EventsPane(given),
  new MessagesPane(given),
  new MessagePane(given),
  new FlawsPane(given),
  new StreamsPane(given),
  new StatePane(given),
  heldPane,
]);
new HeldStrip(where, held, () => showHeld());

function showHeld() {
  if (!held.isThere) {
    where.go({ notice: "nothing is held here: kiebitz relay --hold does it, while it records this session" });
    return;
  }
  where.go({ projector: false, several: false });
  panes.turnTo("held");
  heldPane.focus();
}

const acts = {
  play: () => moves.play(),
  step: (by) => moves.step(by),
  game: (by) => moves.game(by),
  begin: () => moves.begin(),
  end: () => moves.end(),
  pace: (isFaster) => moves.pace(isFaster),
  error: (by) => moves.error(by),
  filter: () => filterLine.open(),
  tables: () =>
    where.go(
      watched.tables.length > 1 ? { several: !where.now.several } : { notice: "there is one table only" },
    ),
  player: () => choosers.choosePlayer(),
  pane: (event) => panes.turnTo(Number(event.key) - 1),
  turn: (by) => panes.turn(by),
  list: (event) => panes.press(event),
  held: showHeld,
  byHand: (deed) => (panes.pane === heldPane ? heldPane.act(deed) : false),
  copy: () =>
    copyReference(where, panes.pane.reference, { at: watched.timeline === null ? null : watched.seq }),
  projector: () => where.go({ projector: !where.now.projector }),
  leave: () =>
    where.now.projector || where.now.several ? where.go({ projector: false, several: false }) : false,
  help: () => showHelp(keys, source.isFile),
};
const keys = keysOf(acts);
listenForKeys(keys);

const buttons = {
  first: acts.begin,
  previous: () => acts.step(-1),
  play: acts.play,
  next: () => acts.step(1),
  last: acts.end,
  slower: () => acts.pace(false),
  faster: () => acts.pace(true),
  "previous-error": () => acts.error(-1),
  "next-error": () => acts.error(1),
  live: acts.end,
  "filter-button": acts.filter,
  "tables-button": acts.tables,
  "copy-button": acts.copy,
  "projector-button": acts.projector,
  "help-button": acts.help,
};
for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener("click", () => act());
byId("skip").addEventListener("click", (event) => {
  // The address is that of a moment; this link changes the focus, and nothing else.
  event.preventDefault();
  byId("tabs").querySelector("[aria-selected=true]").focus();
});

new Address(where, (place) => watched.open({ ...where.now, ...place, playing: false }));
document.addEventListener("visibilitychange", () => where.grow());
watched.open({ ...where.now, ...placeOf(location.hash) });
