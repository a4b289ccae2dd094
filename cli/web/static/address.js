// The state of the view in the address, behind `#`, as in `#table=1&at=477&as=alice`. Defaults are left out.

import { shorten } from "./format.js";
import { AT_FIRST, differs } from "./view_state.js";

const WRITTEN_AFTER_MS = 400;
/** Maximum length of a part of an address in a sentence. */
const MOST_SHOWN = 30;
const NUMBERS = ["session", "table", "game", "at", "message"];
const TEXTS = ["as", "seat", "filter", "pane"];
const FLAGS = ["several", "projector", "home"];
/** Changes of these add a step to the browser's history. */
const STEPS = ["session", "table", "game", "as", "message", "several", "home"];

/**
 * Parse an address; what it leaves out has its default. `group` is the name of a session; `wrong` are sentences about
 * what cannot be meant.
 *
 * @param {string} hash
 * @returns {Partial<import("./view_state.js").State>}
 */
export function parseHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { wrong: [] };
  for (const name of [...NUMBERS, ...TEXTS, ...FLAGS]) state[name] = AT_FIRST[name];
  for (const [name, value] of params) {
    if (NUMBERS.includes(name)) {
      if (/^\d{1,15}$/.test(value)) state[name] = Number(value);
      else state.wrong.push(`${name} is a number, not ${shorten(value, MOST_SHOWN)}`);
    } else if (![...TEXTS, ...FLAGS, "group"].includes(name))
      state.wrong.push(`an address has no ${shorten(name, MOST_SHOWN)}`);
  }
  for (const name of TEXTS) if (params.has(name)) state[name] = params.get(name);
  // A link by a session's name, as on the sheet of a class.
  if (params.has("group")) state.group = params.get("group");
  for (const name of FLAGS) state[name] = params.get(name) === "1";
  return state;
}

/**
 * Return the part of the address from `#` on; empty for the default state.
 *
 * @param {import("./view_state.js").State} state
 */
export function formatHash(state) {
  const params = new URLSearchParams();
  for (const name of [...NUMBERS, ...TEXTS]) if (state[name] !== AT_FIRST[name]) params.set(name, state[name]);
  for (const name of FLAGS) if (state[name]) params.set(name, "1");
  const text = params.toString();
  return text ? `#${text}` : "";
}

/**
 * Return the full address of a state.
 *
 * @param {import("./view_state.js").State} state
 */
export function linkTo(state) {
  return location.href.replace(/#.*/s, "") + formatHash(state);
}

/** Keeps the browser's address and the view state in sync. */
export class Address {
  #view;
  #timer = 0;
  #written = null;

  /**
   * @param {import("./view_state.js").ViewState} view
   * @param {(hash: string) => void} follow receives a new address
   */
  constructor(view, follow) {
    this.#view = view;
    view.listen((now, before) => this.#changed(now, before));
    const read = () => {
      // A link within the page, such as to its panes, has no state.
      if (location.hash && !location.hash.includes("=")) return;
      if (location.hash === this.#written) return;
      clearTimeout(this.#timer);
      this.#written = location.hash;
      follow(location.hash);
    };
    addEventListener("hashchange", read);
    addEventListener("popstate", read);
  }

  #changed(now, before) {
    // The address is written when playback stops.
    clearTimeout(this.#timer);
    if (now.playing) return;
    this.#timer = setTimeout(() => this.#write(), differs(now, before, ...STEPS) ? 0 : WRITTEN_AFTER_MS);
  }

  #write() {
    const hash = formatHash(this.#view.now);
    const before = parseHash(this.#written ?? location.hash);
    if (hash === (this.#written ?? location.hash)) return;
    const isStep = this.#written !== null && STEPS.some((name) => before[name] !== parseHash(hash)[name]);
    this.#written = hash;
    try {
      // An empty relative address would keep the current fragment, so it is the path.
      history[isStep ? "pushState" : "replaceState"](null, "", hash || location.pathname + location.search);
    } catch {
      // Some browsers refuse it for files, or after too many changes; the next change may succeed.
      this.#written = null;
    }
  }
}
