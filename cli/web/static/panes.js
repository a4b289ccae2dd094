// The panes as ARIA tabs, of which one is visible.

import { byId, element } from "./elements.js";
import { differs } from "./view_state.js";

/** Layout with the panes beside the table, as in style.css. In others the arrow keys scroll the page. */
const BESIDE_TABLE = matchMedia("(min-width: 1200px) and (orientation: landscape)");

/** Shows the pane that the view state names. */
export class Panes {
  #view;
  #panes;
  #tabs = new Map();
  #shown = null;

  /**
   * @param {import("./view_state.js").ViewState} view
   * @param {import("./pane.js").Pane[]} panes
   */
  constructor(view, panes) {
    this.#view = view;
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
          onclick: () => this.show(pane.name),
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
    view.listen((now, before) => {
      if (differs(now, before, "pane", "live", "as", "data")) this.#update();
      this.#draw();
    });
    this.#update();
  }

  /** Return whether there is a pane of a name, which may be hidden now. */
  has(name) {
    return this.#panes.some((pane) => pane.name === name);
  }

  /** The visible pane. */
  get pane() {
    return this.#available.find(({ name }) => name === this.#view.now.pane) ?? this.#panes[0];
  }

  /** The panes available now. */
  get #available() {
    return this.#panes.filter(({ isAvailable }) => isAvailable);
  }

  /** Handle a key in the list of the pane if all of it is visible; return whether it did anything. */
  press(event) {
    return BESIDE_TABLE.matches && (this.pane.press(event));
  }

  /** Show the pane of a name or an index; return it, or null if it is not available. */
  show(which) {
    const pane = this.#panes[which] ?? this.#panes.find(({ name }) => name === which);
    if (!this.#available.includes(pane)) return null;
    this.#view.update({ pane: pane.name });
    return pane;
  }

  /** Show the next or previous pane. */
  next(by) {
    const available = this.#available;
    this.show(available[(available.indexOf(this.pane) + by + available.length) % available.length].name);
  }

  #update() {
    const available = this.#available;
    const isLeft = this.#shown !== this.pane && byId("panels").contains(document.activeElement);
    for (const pane of this.#panes) {
      const { tab, panel } = this.#tabs.get(pane.name);
      const isShown = pane === this.pane;
      tab.hidden = !available.includes(pane);
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      panel.hidden = !isShown;
      if (isShown && this.#shown !== pane) scrollTabIntoView(tab);
    }
    this.#shown = this.pane;
    // A hidden pane would lose the focus.
    if (isLeft) this.#tabs.get(this.pane.name).tab.focus();
  }

  #draw() {
    if (!document.hidden && !this.#view.now.projector) this.pane.draw();
  }

  /** The arrow keys move between tabs. */
  #key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.next(by);
    this.#tabs.get(this.pane.name).tab.focus();
  }
}

/** Scroll the row of tabs, but not the page. */
function scrollTabIntoView(tab) {
  const row = tab.parentElement;
  const [left, right] = [tab.offsetLeft - row.offsetLeft, tab.offsetLeft - row.offsetLeft + tab.offsetWidth];
  if (left < row.scrollLeft || right > row.scrollLeft + row.clientWidth) row.scrollLeft = left - 40;
}
