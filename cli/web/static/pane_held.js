// The pane with the held messages of a relay, their waiting times, and the actions on them.

import { element, write } from "./elements.js";
import { answerHeld, editHeld } from "./held_dialog.js";
import { HELD_TICK_MS, formatWaited } from "./held_strip.js";
import { Pane } from "./pane.js";

const HELD_DEEDS = [
  ["let-go", "Forward", "Enter"],
  ["change", "Edit", "e"],
  ["drop", "Drop", "d"],
  ["answer", "Answer", "r"],
  ["let-all-go", "Forward all", "g"],
];

/** The list of held messages, with a button for each action. */
export class HeldPane extends Pane {
  #list = element("div", { role: "listbox", "aria-label": "Held messages", tabindex: 0, class: "list-rows" });
  #buttons = new Map();
  #rows = new Map();
  /** Numbers of the selected message, and of the one that the user has just acted on. */
  #chosen = null;
  #lastActed = null;
  #timer = 0;

  constructor(context) {
    super("held", "Held", element("div", { class: "pane-body" }), context);
    for (const [deed, words, key] of HELD_DEEDS) {
      this.#buttons.set(
        deed,
        element("button", { type: "button", title: `${words} (${key})`, onclick: () => this.act(deed) }, words),
      );
    }
    this.root.append(
      element("div", { class: "held-deeds", role: "group", "aria-label": "Actions" }, ...this.#buttons.values()),
      element("div", { class: "list" }, this.#list),
    );
    this.#list.addEventListener("click", ({ target }) => {
      const row = target.closest("[role=option]");
      if (row) this.#choose(Number(row.dataset.key));
    });
    this.#list.addEventListener("keydown", (event) => {
      if (this.press(event)) event.preventDefault();
    });
    this.held.listen(() => this.#update());
    this.#update();
  }

  get isAvailable() {
    return this.held.isAvailable;
  }

  /** Focus the list. */
  focus() {
    // The list is laid out only after its tab was selected.
    requestAnimationFrame(() => {
      this.#list.focus({ preventScroll: true });
      this.root.scrollIntoView({ block: "nearest" });
    });
  }

  /** Nothing to do: the pane updates itself when held messages change. */
  draw() {}

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

  /** Act on the selected message. */
  act(deed) {
    const message = this.held.messages.find(({ number }) => number === this.#chosen);
    if (!this.held.mayAct) this.#notify("this page is read-only");
    else if (deed === "let-all-go") this.#do({ do: deed }, "all held messages were forwarded");
    else if (message === undefined)
      this.#notify(this.#rows.size ? "select a message first" : "no held messages");
    else if (deed === "change") editHeld(this.held, message, (notice) => this.#done(message, notice));
    else if (deed === "answer") answerHeld(this.held, message, (notice) => this.#notify(notice));
    else this.#do({ do: deed, number: message.number }, `${message.name} was ${deed === "drop" ? "dropped" : "forwarded"}`);
  }

  async #do(deed, notice) {
    this.#lastActed = deed.number ?? null;
    try {
      await this.held.act(deed);
      this.#notify(notice);
    } catch (error) {
      this.#lastActed = null;
      this.#notify(error.message);
    }
  }

  #done(message, notice) {
    this.#lastActed = message.number;
    this.#notify(notice);
    this.#update();
  }

  #notify(notice) {
    this.view.update({ notice });
  }

  /** Show the new list. The selection moves to another message only after the user's own action. */
  #update() {
    const { messages, mayAct, more } = this.held;
    const before = [...this.#rows.keys()];
    const numbers = messages.map(({ number }) => number);
    if (!before.length) this.#chosen = numbers[0] ?? null;
    else if (!numbers.includes(this.#chosen)) {
      const place = before.indexOf(this.#chosen);
      this.#chosen = this.#chosen !== null && this.#chosen === this.#lastActed ? (numbers[place] ?? numbers.at(-1) ?? null) : null;
    }
    const rows = new Map();
    for (const message of messages) rows.set(message.number, this.#rows.get(message.number) ?? heldRow(message));
    this.#rows = rows;
    const rest = more ? [element("p", { class: "nothing" }, `and ${more} more`)] : [];
    const shown = [...[...rows.values()].map(({ root }) => root), ...rest];
    this.#list.replaceChildren(...(shown.length ? shown : [element("p", { class: "nothing" }, "no held messages")]));
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
    for (const message of this.held.messages) {
      const { root, time, late } = this.#rows.get(message.number);
      const isOverdue = this.held.isOverdue(message);
      write(time, formatWaited(this.held, message));
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
