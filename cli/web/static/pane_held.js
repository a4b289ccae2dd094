// The pane of what a relay holds: each message with how long it waits, and what can be done to it.

import { element, write } from "./elements.js";
import { answerHeld, editHeld } from "./held_dialog.js";
import { HELD_TICK_MS, waitedWords } from "./held_strip.js";

const HELD_DEEDS = [
  ["let-go", "Let go", "Enter"],
  ["change", "Edit", "e"],
  ["drop", "Drop", "d"],
  ["answer", "Answer", "r"],
  ["let-all-go", "Let all go", "g"],
];

/** Lists what waits. */
export class HeldPane {
  name = "held";
  title = "Held";
  root;
  #where;
  #watched;
  #held;
  #list = element("div", { role: "listbox", "aria-label": "Held messages", tabindex: 0, class: "list-rows" });
  #buttons = new Map();
  #rows = new Map();
  /** The number of the message that is chosen, and of the one to which something was just done. */
  #chosen = null;
  #own = null;
  #timer = 0;

  /** What all panes are given: see `panes.js`. */
  constructor({ where, watched, held }) {
    this.#where = where;
    this.#watched = watched;
    this.#held = held;
    for (const [deed, words, key] of HELD_DEEDS) {
      this.#buttons.set(
        deed,
        element("button", { type: "button", title: `${words} (${key})`, onclick: () => this.act(deed) }, words),
      );
    }
    this.root = element(
      "div",
      { class: "pane-body" },
      element("div", { class: "held-deeds", role: "group", "aria-label": "What to do" }, ...this.#buttons.values()),
      element("div", { class: "list" }, this.#list),
    );
    this.#list.addEventListener("click", ({ target }) => {
      const row = target.closest("[role=option]");
      if (row) this.#choose(Number(row.dataset.key));
    });
    this.#list.addEventListener("keydown", (event) => {
      if (this.press(event)) event.preventDefault();
    });
    held.listen(() => this.#take());
    this.#take();
  }

  /** Whether there is a relay that can hold. */
  get isThere() {
    return this.#held.isThere;
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.number ?? null;
  }

  /** Let keys go through it. */
  focus() {
    // It is laid out only after its tab was turned to.
    requestAnimationFrame(() => {
      this.#list.focus({ preventScroll: true });
      this.root.scrollIntoView({ block: "nearest" });
    });
  }

  /** It shows itself when something changes. */
  draw() {}

  /** Do what a key does in the list; whether it does anything. */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      const numbers = [...this.#rows.keys()];
      const place = Math.max(0, Math.min(numbers.indexOf(this.#chosen) + by, numbers.length - 1));
      this.#choose(numbers[place] ?? null);
    } else if (event.key === "Enter") this.act("let-go");
    else return false;
    return true;
  }

  /** Do something to the message that is chosen. */
  act(deed) {
    const message = this.#held.messages.find(({ number }) => number === this.#chosen);
    if (!this.#held.mayAct) this.#note("this page only shows what is held");
    else if (deed === "let-all-go") this.#do({ do: deed }, "all that waited was let go");
    else if (message === undefined)
      this.#note(this.#rows.size ? "choose the message that it is done to" : "nothing waits");
    else if (deed === "change") editHeld(this.#held, message, (said) => this.#done(message, said));
    else if (deed === "answer") answerHeld(this.#held, message, (said) => this.#note(said));
    else this.#do({ do: deed, number: message.number }, `${message.name} was ${deed === "drop" ? "dropped" : "let go"}`);
  }

  async #do(deed, said) {
    this.#own = deed.number ?? null;
    try {
      await this.#held.act(deed);
      this.#note(said);
    } catch (error) {
      this.#own = null;
      this.#note(error.message);
    }
  }

  #done(message, said) {
    this.#own = message.number;
    this.#note(said);
    this.#take();
  }

  #note(notice) {
    this.#where.go({ notice });
  }

  /** Nobody is to act on another message because the one that they chose is gone. */
  #take() {
    const { messages, mayAct, more } = this.#held;
    const before = [...this.#rows.keys()];
    const numbers = messages.map(({ number }) => number);
    if (!before.length) this.#chosen = numbers[0] ?? null;
    else if (!numbers.includes(this.#chosen)) {
      const place = before.indexOf(this.#chosen);
      this.#chosen = this.#chosen !== null && this.#chosen === this.#own ? (numbers[place] ?? numbers.at(-1) ?? null) : null;
    }
    const rows = new Map();
    for (const message of messages) rows.set(message.number, this.#rows.get(message.number) ?? heldRow(message));
    this.#rows = rows;
    const rest = more ? [element("p", { class: "nothing" }, `and ${more} more`)] : [];
    const shown = [...[...rows.values()].map(({ root }) => root), ...rest];
    this.#list.replaceChildren(...(shown.length ? shown : [element("p", { class: "nothing" }, "nothing waits")]));
    for (const button of this.#buttons.values()) button.disabled = !mayAct || !messages.length;
    this.#choose(this.#chosen);
    clearInterval(this.#timer);
    this.#tick();
    if (messages.length) this.#timer = setInterval(() => this.#tick(), HELD_TICK_MS);
  }

  #choose(number) {
    this.#chosen = number;
    for (const [key, { root }] of this.#rows) {
      root.setAttribute("aria-selected", String(key === number));
      root.classList.toggle("is-here", key === number);
    }
    const chosen = this.#rows.get(number)?.root;
    if (chosen) {
      this.#list.setAttribute("aria-activedescendant", chosen.id);
      if (chosen.offsetParent !== null) chosen.scrollIntoView({ block: "nearest" });
    } else this.#list.removeAttribute("aria-activedescendant");
  }

  #tick() {
    for (const message of this.#held.messages) {
      const { root, time, late } = this.#rows.get(message.number);
      const isOverdue = this.#held.isOverdue(message);
      write(time, waitedWords(this.#held, message));
      write(late, isOverdue ? message.patience : "");
      root.classList.toggle("is-late", isOverdue);
    }
  }
}

function heldRow(message) {
  const time = element("span", { class: "row-time" });
  const late = element("b", { class: "held-late" });
  const root = element(
    "div",
    { role: "option", id: `held-${message.number}`, "data-key": message.number, class: "row", title: message.rule },
    time,
    element(
      "span",
      { class: "row-text" },
      element("b", {}, message.name),
      element("span", { class: "row-who" }, ` ${message.sender} → ${message.receiver} `),
      late,
      element("span", { class: "row-more" }, message.words),
    ),
  );
  return { root, time, late };
}
