// The pane with the held messages of a relay, their waiting times, and the actions on them.

import { element, write } from "./elements.js";
import { answerHeld, editHeld } from "./held_dialog.js";
import { HELD_TICK_MS, formatWaited } from "./held_messages.js";
import { List } from "./list.js";
import { ListPane } from "./pane.js";

const HELD_DEEDS = [
  ["let-go", "Forward", "Enter"],
  ["change", "Edit", "e"],
  ["drop", "Drop", "d"],
  ["answer", "Answer", "r"],
  ["let-all-go", "Forward all", "g"],
];

/** The list of held messages, with a button for each action. */
export class HeldPane extends ListPane {
  #buttons = new Map();
  #rest = element("p", { class: "nothing", hidden: true });
  /** The changing elements of each row, by the number of its message. */
  #times = new Map();
  /** Numbers of the listed messages, of the selected one, and of the one that the user has just acted on. */
  #numbers = [];
  #chosen = null;
  #lastActed = null;
  #timer = 0;

  constructor(context) {
    super("held", "Held", context);
    for (const [deed, words, key] of HELD_DEEDS) {
      const about = { type: "button", title: `${words} (${key})`, onclick: () => this.act(deed) };
      this.#buttons.set(deed, element("button", about, words));
    }
    const { held } = this;
    this.list = new List({
      label: "Held messages",
      id: "held",
      paged: {
        get items() {
          return held.messages;
        },
        isFirst: true,
        isLast: true,
        isLoaded: true,
      },
      rowOf: (message) => this.#row(message),
      keyOf: ({ number }) => number,
      nothing: "no held messages",
      opened: ({ number }) => this.#choose(number),
      entered: () => this.act("let-go"),
      isFollowed: true,
    });
    const deeds = element("div", { class: "held-deeds", role: "group", "aria-label": "Actions" }, ...this.#buttons.values());
    this.root.append(deeds, this.list.root, this.#rest);
    held.listen(() => this.#update());
    this.#update();
  }

  get isAvailable() {
    return this.held.isAvailable;
  }

  /** Focus the list. */
  focus() {
    // The list is laid out only after its tab was selected.
    requestAnimationFrame(() => {
      this.root.querySelector("[role=listbox]").focus({ preventScroll: true });
      this.root.scrollIntoView({ block: "nearest" });
    });
  }

  /** Nothing to do: the pane updates itself when held messages change. */
  draw() {}

  /** Act on the selected message. */
  act(deed) {
    const message = this.held.messages.find(({ number }) => number === this.#chosen);
    if (!this.held.mayAct) this.#notify("this page is read-only");
    else if (deed === "let-all-go") this.#do({ do: deed }, "all held messages were forwarded");
    else if (message === undefined)
      this.#notify(this.#numbers.length ? "select a message first" : "no held messages");
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
    const before = this.#numbers;
    const numbers = messages.map(({ number }) => number);
    if (!before.length) this.#chosen = numbers[0] ?? null;
    else if (!numbers.includes(this.#chosen)) {
      const place = before.indexOf(this.#chosen);
      this.#chosen = this.#chosen !== null && this.#chosen === this.#lastActed ? (numbers[place] ?? numbers.at(-1) ?? null) : null;
    }
    this.#numbers = numbers;
    this.#rest.hidden = !more;
    write(this.#rest, `and ${more} more`);
    this.list.draw();
    for (const button of this.#buttons.values()) button.disabled = !mayAct || !messages.length;
    this.#choose(this.#chosen);
    clearInterval(this.#timer);
    this.#tick();
    if (messages.length) this.#timer = setInterval(() => this.#tick(), HELD_TICK_MS);
  }

  #choose(number) {
    this.#chosen = number;
    this.list.mark(number);
  }

  #tick() {
    for (const message of this.held.messages) {
      const { time, late } = this.#times.get(message.number);
      const isOverdue = this.held.isOverdue(message);
      write(time, formatWaited(this.held, message));
      write(late, isOverdue ? message.patience : "");
      time.parentElement.classList.toggle("is-late", isOverdue);
    }
  }

  #row({ number, name, sender, receiver, words, rule }) {
    const time = element("span", { class: "row-time" });
    const late = element("b", { class: "held-late" });
    this.#times.set(number, { time, late });
    const who = element("span", { class: "row-who" }, ` ${sender} → ${receiver} `);
    const more = element("span", { class: "row-more" }, words);
    return [time, element("span", { class: "row-text", title: rule }, element("b", {}, name), who, late, more)];
  }
}
