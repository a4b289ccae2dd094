// The panes, of which one is seen: tabs, as ARIA has them.

import { byId, element } from "./elements.js";
import { differs } from "./where.js";

/** Where the panes stand beside the table; elsewhere the arrow keys scroll the page. As in style.css. */
const BESIDE_TABLE = matchMedia("(min-width: 1200px) and (orientation: landscape)");

/**
 * Shows the pane that `where` names. A pane has a `name`, a `title`, a `root`, a `reference` for `y`, and `draw`;
 * `press` where keys go through its lines, `isThere` where it may be missing.
 */
export class Panes {
  #where;
  #panes;
  #tabs = new Map();
  #seen = null;

  /**
   * @param {import("./where.js").Where} where
   * @param {object[]} panes
   */
  constructor(where, panes) {
    this.#where = where;
    this.#panes = panes;
    const tabs = byId("tabs");
    for (const [place, pane] of panes.entries()) {
      const tab = element(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${pane.name}`,
          "aria-controls": `pane-${pane.name}`,
          title: `${pane.title} (${place + 1})`,
          onclick: () => this.turnTo(pane.name),
        },
        pane.title,
      );
      const panel = element(
        "div",
        { role: "tabpanel", id: `pane-${pane.name}`, "aria-labelledby": tab.id, class: "pane", hidden: true },
        pane.root,
      );
      tabs.append(tab);
      byId("panels").append(panel);
      this.#tabs.set(pane.name, { tab, panel });
    }
    tabs.addEventListener("keydown", (event) => this.#key(event));
    where.listen((now, before) => {
      if (differs(now, before, "pane", "live", "as", "data")) this.#turn();
      this.#draw();
    });
    this.#turn();
  }

  /** The pane that is seen. */
  get pane() {
    return this.#there.find(({ name }) => name === this.#where.now.pane) ?? this.#panes[0];
  }

  /** Those that there are now. */
  get #there() {
    return this.#panes.filter(({ isThere }) => isThere ?? true);
  }

  /** Let a key go through the lines of the pane, where all of it is in sight; whether it did anything. */
  press(event) {
    return BESIDE_TABLE.matches && (this.pane.press?.(event) ?? false);
  }

  /** The pane of this name, or at this place among them. */
  turnTo(which) {
    const pane = this.#panes[which] ?? this.#panes.find(({ name }) => name === which);
    if (pane && this.#there.includes(pane)) this.#where.go({ pane: pane.name });
  }

  /** The next pane, or the one before. */
  turn(by) {
    const there = this.#there;
    this.turnTo(there[(there.indexOf(this.pane) + by + there.length) % there.length].name);
  }

  #turn() {
    const there = this.#there;
    for (const pane of this.#panes) {
      const { tab, panel } = this.#tabs.get(pane.name);
      const isSeen = pane === this.pane;
      tab.hidden = !there.includes(pane);
      tab.setAttribute("aria-selected", String(isSeen));
      tab.tabIndex = isSeen ? 0 : -1;
      panel.hidden = !isSeen;
      if (isSeen && this.#seen !== pane) bringTabIntoSight(tab);
    }
    this.#seen = this.pane;
  }

  #draw() {
    if (!document.hidden && !this.#where.now.projector) this.pane.draw();
  }

  /** In the row of tabs the arrow keys turn from one to the other. */
  #key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.turn(by);
    this.#tabs.get(this.pane.name).tab.focus();
  }
}

/** The row of tabs alone is scrolled, not the page. */
function bringTabIntoSight(tab) {
  const row = tab.parentElement;
  const [left, right] = [tab.offsetLeft - row.offsetLeft, tab.offsetLeft - row.offsetLeft + tab.offsetWidth];
  if (left < row.scrollLeft || right > row.scrollLeft + row.clientWidth) row.scrollLeft = left - 40;
}
