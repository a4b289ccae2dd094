// The keys, as bound and as shown in the help.

import { byId, element } from "./elements.js";
import { keep, recall } from "./theme.js";

/** Elements in which keys are text. */
const TYPED_IN = "input:not([type=range]), textarea, select, [contenteditable]";
/** Elements that handle Space and Enter themselves; a tab is shown as soon as it has the focus. */
const PRESSED = "button:not([role=tab]), a[href], summary, [role=option], [role=listbox]";
const LETTERS_KEPT_AS = "kiebitz-letter-keys";

/**
 * @typedef {object} Key
 * @property {string[]} keys values of `KeyboardEvent.key`; with a prefix `Shift+` if that is required
 * @property {string} shown name in the help
 * @property {string} does description in the help
 * @property {() => void} act
 * @property {boolean} [isForHome] whether it works on the home page, too
 */

/**
 * Return all keys with their actions.
 *
 * @param {Record<string, Function>} acts
 * @returns {Key[]}
 */
export function keysOf(acts) {
  const key = (keys, shown, does, act) => ({ keys: keys.split(" "), shown, does, act });
  return [
    { ...key("", "Space", "play or pause", acts.play), keys: [" "] },
    key("ArrowLeft", "←", "previous event; with Shift, ten back", () => acts.step(-1)),
    key("ArrowRight", "→", "next event; with Shift, ten on", () => acts.step(1)),
    key("Shift+ArrowLeft", "", "", () => acts.step(-10)),
    key("Shift+ArrowRight", "", "", () => acts.step(10)),
    key("PageUp", "PgUp", "start of this or the previous game", () => acts.game(-1)),
    key("PageDown", "PgDn", "next game", () => acts.game(1)),
    key("Home", "Home", "first event", acts.begin),
    key("End", "End", "last event; follows a live recording", acts.end),
    key("+ =", "+", "faster", () => acts.speed(true)),
    key("- _", "-", "slower", () => acts.speed(false)),
    key("s S", "s", "one event a second, or as recorded", acts.pace),
    key("n", "n", "next error; without errors, next warning", () => acts.error(1)),
    key("N", "N", "previous error", () => acts.error(-1)),
    key("/", "/", "filter events and messages", acts.filter),
    key("t T", "t", "all tables side by side; Enter enlarges one", acts.tables),
    { ...key("o O", "o", "all sessions, live ones first", acts.home), isForHome: true },
    key("a A", "a", "choose whose view is shown", acts.player),
    key("b B", "b", "turn the board: the next player's seat at the bottom, or first", acts.turnBoard),
    key(
      "1 2 3 4 5 6 7 8 9",
      "1…9",
      "events, messages, message, diagnostics, streams, state, sequence, statistics, held",
      acts.pane,
    ),
    key("[", "[ ]", "previous or next pane", () => acts.turn(-1)),
    key("]", "", "", () => acts.turn(1)),
    key("ArrowUp", "↑ ↓", "select a line of the pane", acts.list),
    key("ArrowDown", "", "", acts.list),
    key("Enter", "Enter", "open the message of the line", acts.list),
    key("h H", "h", "held: Enter forwards, e edits, d drops, r answers, g forwards all", acts.held),
    key("e E", "", "", () => acts.byHand("change")),
    key("d D", "", "", () => acts.byHand("drop")),
    key("r R", "", "", () => acts.byHand("answer")),
    key("g G", "", "", () => acts.byHand("let-all-go")),
    key("m M", "m", "mark the message or event with a note; all marks", acts.mark),
    key("y Y", "y", "copy a reference such as #31, and its link", acts.copy),
    { ...key("p P", "p", "projector: only the tables and the latest sentences", acts.projector), isForHome: true },
    { ...key("Escape", "Esc", "leave this mode", acts.leave), isForHome: true },
    { ...key("?", "?", "all keys", acts.help), isForHome: true },
  ];
}

/** The choice of keys that are single characters: speech input and tremor press them unintended (WCAG 2.1.4). */
export const letterKeys = {
  areOn: recall(LETTERS_KEPT_AS) !== "off",
  turn(areOn) {
    this.areOn = areOn;
    keep(LETTERS_KEPT_AS, areOn ? undefined : "off");
  },
};

/**
 * Listen for keys on the whole page.
 *
 * @param {Key[]} keys
 * @param {() => boolean} isHome whether the home page is shown
 */
export function listenForKeys(keys, isHome) {
  const byName = new Map(keys.flatMap((key) => key.keys.map((name) => [name, key])));
  addEventListener("keydown", (event) => {
    const { target } = event;
    const isElsewhere =
      event.defaultPrevented || event.isComposing || event.ctrlKey || event.altKey || event.metaKey;
    if (isElsewhere || target.closest?.(TYPED_IN) || document.querySelector("dialog[open]")) return;
    if ((event.key === " " || event.key === "Enter") && target.closest?.(PRESSED)) return;
    const isNamed = event.key.length > 1;
    if (!isNamed && event.key !== " " && !letterKeys.areOn) return;
    const key = byName.get(event.shiftKey && isNamed ? `Shift+${event.key}` : event.key);
    if (key === undefined || (isHome() && !key.isForHome)) return;
    // Unused keys scroll the page as usual.
    if (key.act(event) !== false) event.preventDefault();
  });
}

/** @param {import("./keys.js").Key[]} keys */
export function showHelp(keys, isFile) {
  const rows = keys
    .filter(({ does }) => does)
    .map(({ shown, does }) =>
      element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, shown)), element("td", {}, does)),
    );
  const filter = isFile
    ? "In this file the filter searches for words: a line must contain all of them."
    : 'The filter line accepts display filters, such as actor == "alice" && kind == "rolled".';
  const turn = ({ target }) => letterKeys.turn(target.checked);
  const choice = element("input", { type: "checkbox", checked: letterKeys.areOn, onchange: turn });
  byId("help-body").replaceChildren(
    element("label", { class: "help-choice" }, choice, " Letters, digits and signs are keys"),
    element("table", {}, element("tbody", {}, ...rows)),
    element("p", {}, filter),
  );
  byId("help").showModal();
}
