// A moment's address: the part behind `#`, as in `#table=1&at=477&as=alice`. It has what is not as usual.

import { AT_FIRST, differs } from "./where.js";

const WRITTEN_AFTER_MS = 400;
const NUMBERS = ["session", "table", "at", "message"];
const TEXTS = ["as", "filter", "pane"];
const FLAGS = ["several", "projector"];
/** Who goes back by the browser's button wants to be where one of these was another. */
const STEPS = ["session", "table", "as", "message", "several"];

/**
 * What an address says; what it does not say is as at first.
 *
 * @param {string} hash
 * @returns {Partial<import("./where.js").Place>}
 */
export function placeOf(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const place = {};
  for (const name of [...NUMBERS, ...TEXTS, ...FLAGS]) place[name] = AT_FIRST[name];
  for (const name of NUMBERS)
    if (/^\d{1,15}$/.test(said.get(name) ?? "")) place[name] = Number(said.get(name));
  for (const name of TEXTS) if (said.has(name)) place[name] = said.get(name);
  for (const name of FLAGS) place[name] = said.get(name) === "1";
  return place;
}

/**
 * The address of a place, without what is before `#`; empty for the place of one who has just come.
 *
 * @param {import("./where.js").Place} place
 */
export function hashOf(place) {
  const said = new URLSearchParams();
  for (const name of [...NUMBERS, ...TEXTS]) if (place[name] !== AT_FIRST[name]) said.set(name, place[name]);
  for (const name of FLAGS) if (place[name]) said.set(name, "1");
  const text = said.toString();
  return text ? `#${text}` : "";
}

/**
 * The whole address of a place, to be given to somebody.
 *
 * @param {import("./where.js").Place} place
 */
export function linkOf(place) {
  return location.href.replace(/#.*/s, "") + hashOf(place);
}

/** Keeps the browser's address and the place the same, whichever of them changes. */
export class Address {
  #where;
  #timer = 0;
  #written = null;

  /**
   * @param {import("./where.js").Where} where
   * @param {(place: Partial<import("./where.js").Place>) => void} follow is called with what a new address says
   */
  constructor(where, follow) {
    this.#where = where;
    where.listen((now, before) => this.#changed(now, before));
    const read = () => {
      // A link inside of the page, to its panes, is no place.
      if (location.hash && !location.hash.includes("=")) return;
      if (location.hash === this.#written) return;
      clearTimeout(this.#timer);
      this.#written = location.hash;
      follow(placeOf(location.hash));
    };
    addEventListener("hashchange", read);
    addEventListener("popstate", read);
  }

  #changed(now, before) {
    // What plays has an address again when it stands still.
    clearTimeout(this.#timer);
    if (now.playing) return;
    this.#timer = setTimeout(() => this.#write(), differs(now, before, ...STEPS) ? 0 : WRITTEN_AFTER_MS);
  }

  #write() {
    const hash = hashOf(this.#where.now);
    const before = placeOf(this.#written ?? location.hash);
    if (hash === (this.#written ?? location.hash)) return;
    const isStep = this.#written !== null && STEPS.some((name) => before[name] !== placeOf(hash)[name]);
    this.#written = hash;
    try {
      // An empty address would be the page's without its place: the path says where that is.
      history[isStep ? "pushState" : "replaceState"](null, "", hash || location.pathname + location.search);
    } catch {
      // Some browsers refuse it for files, or for too many in a short time: the next one may be taken.
      this.#written = null;
    }
  }
}
