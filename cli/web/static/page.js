// The parts of the page: creates them for a data source, and binds keys and buttons.

import { Address, parseHash } from "./address.js";
import { Announcer } from "./announcer.js";
import { TimelineBar } from "./timeline_bar.js";
import { Chart } from "./chart.js";
import { Header } from "./header.js";
import { copyReference, openShare } from "./share.js";
import { byId } from "./elements.js";
import { FilterLine } from "./filter_line.js";
import { shorten } from "./format.js";
import { Fragments, Pictures } from "./fragments.js";
import { HomePage } from "./home.js";
import { HeldMessages, HeldStrip } from "./held_messages.js";
import { keysOf, listenForKeys, showHelp } from "./keys.js";
import { openMark } from "./marks.js";
import { Navigation } from "./navigation.js";
import { EventsPane } from "./pane_events.js";
import { DiagnosticsPane } from "./pane_diagnostics.js";
import { HeldPane } from "./pane_held.js";
import { MessagePane } from "./pane_message.js";
import { MessagesPane } from "./pane_messages.js";
import { SequencePane } from "./pane_sequence.js";
import { StatePane } from "./pane_state.js";
import { StatisticsPane } from "./pane_statistics.js";
import { StreamsPane } from "./pane_streams.js";
import { Panes } from "./panes.js";
import { Playback } from "./playback.js";
import { Stage, initProjector } from "./stage.js";
import { TableGrid } from "./table_grid.js";
import { initStatusLine } from "./status_line.js";
import { SessionModel } from "./session_model.js";
import { AT_FIRST, PUBLIC, ViewState } from "./view_state.js";

/**
 * Show what a data source has.
 *
 * @param {import("./source.js").Source} source
 */
export function showPage(source) {
  const view = new ViewState();
  const announcer = new Announcer(byId("said"));
  const context = { source, view, announcer, fragments: new Fragments(byId("fragments")) };
  context.pictures = new Pictures(context);
  const model = (context.model = new SessionModel(context));
  const navigation = (context.navigation = new Navigation(context));
  const filterLine = (context.filterLine = new FilterLine(context));
  const held = (context.held = new HeldMessages(context));
  const header = new Header(context);
  new Stage(context);
  new TimelineBar(context);
  new Chart(context);
  new Playback(context);
  initStatusLine(context);
  initProjector(view);
  new HomePage(context);
  new TableGrid(context);
  const heldPane = new HeldPane(context);
  const panes = new Panes(view, [
    new EventsPane(context),
    new MessagesPane(context),
    new MessagePane(context),
    new DiagnosticsPane(context),
    new StreamsPane(context),
    new StatePane(context),
    new SequencePane(context),
    new StatisticsPane(context),
    heldPane,
  ]);
  new HeldStrip(context, () => showHeld());

  function showHeld() {
    if (!held.isAvailable) {
      view.update({ notice: "no relay holds messages here: start one with kiebitz relay --hold" });
      return;
    }
    view.update({ projector: false, several: false });
    panes.show("held");
    heldPane.focus();
  }

  const acts = {
    play: () => navigation.play(),
    step: (by) => navigation.step(by),
    game: (by) => navigation.game(by),
    begin: () => navigation.begin(),
    end: () => navigation.end(),
    speed: (isFaster) => navigation.speed(isFaster),
    pace: () => navigation.pace(),
    error: (by) => navigation.error(by),
    filter: () => filterLine.open(),
    tables: () =>
      view.update(
        model.tables.length > 1 || Object.keys(model.games).length > 1 ? { several: !view.now.several } : { notice: "there is only one table" },
      ),
    home: () =>
      model.hasHome ? model.open({ ...view.now, home: true }) : view.update({ notice: "there is only one session" }),
    player: () => header.choosePlayer(),
    turnBoard: () => {
      const { as, seat } = view.now;
      const seats = [null, ...model.players];
      if (source.isFile || (as !== null && as !== PUBLIC) || seats.length < 2)
        view.update({ notice: source.isFile ? "the boards of a file cannot be turned" : "this board has its own seat first" });
      else view.update({ seat: seats[(seats.indexOf(seat) + 1) % seats.length] });
    },
    pane: (event) => announcer.say(panes.show(Number(event.key) - 1)?.title ?? "there is no such list here"),
    turn: (by) => {
      panes.next(by);
      announcer.say(panes.pane.title);
    },
    list: (event) => panes.press(event),
    held: showHeld,
    byHand: (deed) => (panes.pane === heldPane ? heldPane.act(deed) : false),
    mark: () => openMark(context, panes.pane.kind, panes.pane.reference),
    copy: () => copyReference(context, panes.pane.reference),
    projector: () => view.update({ projector: !view.now.projector }),
    leave: () =>
      view.now.projector || view.now.several ? view.update({ projector: false, several: false }) : false,
    help: () => showHelp(keys, source.isFile),
  };
  const keys = keysOf(acts);
  listenForKeys(keys, () => view.now.home);

  const buttons = {
    first: acts.begin,
    previous: () => acts.step(-1),
    play: acts.play,
    next: () => acts.step(1),
    last: acts.end,
    slower: () => acts.speed(false),
    faster: () => acts.speed(true),
    speed: acts.pace,
    "previous-error": () => acts.error(-1),
    "next-error": () => acts.error(1),
    live: acts.end,
    "filter-button": acts.filter,
    "home-button": acts.home,
    "tables-button": acts.tables,
    "copy-button": () => openShare(context, panes.pane.reference),
    "projector-button": acts.projector,
    "help-button": acts.help,
  };
  for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener("click", () => act());
  byId("skip").addEventListener("click", (event) => {
    // The fragment of the address holds the view state, so the link only moves the focus.
    event.preventDefault();
    byId("tabs").querySelector("[aria-selected=true]").focus();
  });

  /** Parse an address, whose pane must be one. */
  function placeOf(hash) {
    const state = parseHash(hash);
    if (panes.has(state.pane)) return state;
    return { ...state, pane: AT_FIRST.pane, wrong: [...state.wrong, `there is no list ${shorten(state.pane, 30)}`] };
  }

  new Address(view, (hash) => model.open({ ...view.now, ...placeOf(hash), playing: false }));
  document.addEventListener("visibilitychange", () => view.notifyData());
  const begun = placeOf(location.hash);
  model.open({ ...view.now, ...begun, home: location.hash === "" ? null : begun.home });
  return { view, model };
}
