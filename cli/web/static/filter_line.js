// The filter input: completes names, and marks errors below.

import { byId, element, write } from "./elements.js";
import { Part } from "./part.js";

/** Delay between a key and the evaluation of the filter. */
const PAUSE_MS = 250;
const MOST_NAMES = 50;

/** An ARIA combobox, visible while the user edits the filter. */
export class FilterLine extends Part {
  #form = byId("filter-line");
  #input = byId("filter");
  #names = byId("filter-names");
  #timer = 0;
  #chosen = -1;
  #words = [];
  #from = 0;
  /** The text for which completions are being requested. */
  #completing = null;

  constructor(context) {
    super(context);
    if (this.source.isFile)
      this.#input.placeholder = "words, such as alice rolls   Enter applies, Esc clears";
    this.#input.addEventListener("input", () => this.#edited());
    this.#input.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#input.addEventListener("blur", () => this.#list([]));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep();
    });
    byId("filter-drop").addEventListener("click", () => this.#drop());
    byId("filter-shown").addEventListener("click", () => this.open());
    // A mouse click must not take the focus from the input, which would close the list.
    this.#names.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const place = [...this.#names.children].indexOf(event.target.closest("[role=option]"));
      if (place >= 0) this.#complete(place);
    });
  }

  /** Show the line with a filter, by default the current one. */
  open(text = this.view.now.filter) {
    this.#form.hidden = false;
    this.#input.value = text;
    this.#input.focus();
    this.#input.setSelectionRange(text.length, text.length);
    this.#showError(null);
    if (text !== this.view.now.filter) this.#edited();
  }

  #edited() {
    clearTimeout(this.#timer);
    this.#showError(null);
    this.#timer = setTimeout(() => {
      this.#ask();
      this.#try(false);
    }, PAUSE_MS);
  }

  /** Apply the text if it is a filter; return whether it is. While one types, an error is a hint only. */
  async #try(isFinal) {
    clearTimeout(this.#timer);
    const text = this.#input.value.trim();
    try {
      if (text) await this.source.checkFilter(text);
    } catch (error) {
      if (text === this.#input.value.trim()) this.#showError(error, isFinal);
      return false;
    }
    if (text !== this.#input.value.trim()) return false;
    this.view.update({ filter: text, notice: "" });
    return true;
  }

  async #keep() {
    if (await this.#try(true)) this.#close();
  }

  #drop() {
    this.view.update({ filter: "", notice: "" });
    this.#close();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#list([]);
    this.#form.hidden = true;
    byId("panels").querySelector(".pane:not([hidden]) [tabindex='0']")?.focus({ preventScroll: true });
  }

  /** Mark the position of an error, and show its message; null clears it. */
  #showError(error, isFinal = false) {
    const box = byId("filter-error");
    box.hidden = error === null;
    box.classList.toggle("is-hint", !isFinal);
    byId("filter-sentence").setAttribute("role", isFinal ? "alert" : "note");
    this.#input.setAttribute("aria-invalid", String(error !== null && isFinal));
    if (error === null) return;
    const caret = byId("filter-caret");
    caret.hidden = error.position === null;
    if (!caret.hidden) {
      // The server's positions do not include leading blanks.
      const lead = this.#input.value.length - this.#input.value.trimStart().length;
      const before = [...this.#input.value].slice(0, lead + error.position).join("");
      write(caret, `${before.replace(/./gsu, " ")}${"^".repeat(Math.max(error.length, 1))}`);
      const scroll = () => caret.style.setProperty("transform", `translateX(${-this.#input.scrollLeft}px)`);
      scroll();
    }
    write(byId("filter-sentence"), error.message);
  }

  // Completion of names and values.

  async #ask() {
    const end = this.#input.selectionStart ?? this.#input.value.length;
    const text = this.#input.value.slice(0, end);
    this.#completing = text;
    try {
      const { from, words } = await this.source.complete(text);
      if (this.#completing !== text || document.activeElement !== this.#input) return;
      this.#from = [...text].slice(0, from).join("").length;
      const begun = text.slice(this.#from);
      this.#list(words.filter((word) => word !== begun).slice(0, MOST_NAMES));
    } catch {
      // Editing works without completion, too.
      this.#list([]);
    }
  }

  #list(words) {
    this.#words = words;
    this.#chosen = -1;
    this.#names.hidden = words.length === 0;
    this.#input.setAttribute("aria-expanded", String(words.length > 0));
    this.#names.replaceChildren(
      ...words.map((word, place) =>
        element("li", { role: "option", id: `filter-name-${place}`, "aria-selected": "false" }, word),
      ),
    );
    this.#choose(-1);
  }

  #choose(place) {
    this.#chosen = place;
    for (const [number, option] of [...this.#names.children].entries())
      option.setAttribute("aria-selected", String(number === place));
    if (place < 0) this.#input.removeAttribute("aria-activedescendant");
    else this.#input.setAttribute("aria-activedescendant", `filter-name-${place}`);
    this.#names.children[place]?.scrollIntoView({ block: "nearest" });
  }

  #complete(place) {
    const end = this.#input.selectionStart ?? this.#input.value.length;
    const before = this.#input.value.slice(0, this.#from) + this.#words[place];
    this.#input.value = before + this.#input.value.slice(end);
    this.#input.setSelectionRange(before.length, before.length);
    this.#list([]);
    this.#edited();
  }

  #handleKey(event) {
    const count = this.#words.length;
    if (event.key === "Escape") {
      event.preventDefault();
      if (count) this.#list([]);
      else this.#drop();
    } else if (event.key === "Tab" && count && !event.shiftKey) {
      event.preventDefault();
      this.#complete(Math.max(this.#chosen, 0));
    } else if (event.key === "Enter" && this.#chosen >= 0) {
      event.preventDefault();
      this.#complete(this.#chosen);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
      event.preventDefault();
      this.#choose(
        (this.#chosen + (event.key === "ArrowDown" ? 1 : this.#chosen < 0 ? 0 : -1) + count) % count,
      );
    }
  }
}
