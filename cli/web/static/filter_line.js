// The line in which a filter is written: names are completed, and a slip is marked below.

import { byId, element, write } from "./elements.js";

/** So long after a key what is written is tried. */
const PAUSE_MS = 250;
const MOST_NAMES = 50;

/** A combobox, as ARIA has it; it is seen while it is written in. */
export class FilterLine {
  #source;
  #where;
  #form = byId("filter-line");
  #input = byId("filter");
  #names = byId("filter-names");
  #timer = 0;
  #chosen = -1;
  #words = [];
  #from = 0;
  /** What was written when the question was asked that is on its way. */
  #asked = null;

  /**
   * @param {import("./source.js").Source} source
   * @param {import("./where.js").Where} where
   */
  constructor(source, where) {
    this.#source = source;
    this.#where = where;
    if (source.isFile)
      this.#input.placeholder = "words to look for, as in: alice rolls   Enter keeps, Esc drops";
    this.#input.addEventListener("input", () => this.#written());
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#input.addEventListener("blur", () => this.#list([]));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep();
    });
    byId("filter-drop").addEventListener("click", () => this.#drop());
    byId("filter-shown").addEventListener("click", () => this.open());
    // The mouse must not take the focus from the line, or there would be nothing left to click on.
    this.#names.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const place = [...this.#names.children].indexOf(event.target.closest("[role=option]"));
      if (place >= 0) this.#complete(place);
    });
  }

  /** Show the line, with the filter that is kept or another one in it. */
  open(text = this.#where.now.filter) {
    this.#form.hidden = false;
    this.#input.value = text;
    this.#input.focus();
    this.#input.setSelectionRange(text.length, text.length);
    this.#tell(null);
    if (text !== this.#where.now.filter) this.#written();
  }

  #written() {
    clearTimeout(this.#timer);
    this.#tell(null);
    this.#timer = setTimeout(() => {
      this.#ask();
      this.#try();
    }, PAUSE_MS);
  }

  /** Let what is written filter, if it is a filter; whether it is. */
  async #try() {
    clearTimeout(this.#timer);
    const text = this.#input.value.trim();
    try {
      if (text) await this.#source.checkFilter(text);
    } catch (error) {
      if (text === this.#input.value.trim()) this.#tell(error);
      return false;
    }
    if (text !== this.#input.value.trim()) return false;
    this.#where.go({ filter: text, notice: "" });
    return true;
  }

  async #keep() {
    if (await this.#try()) this.#close();
  }

  #drop() {
    this.#where.go({ filter: "", notice: "" });
    this.#close();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#list([]);
    this.#form.hidden = true;
    byId("panels").querySelector(".pane:not([hidden]) [tabindex='0']")?.focus({ preventScroll: true });
  }

  /** Mark where the slip is, and say what it is. */
  #tell(error) {
    const slip = byId("filter-slip");
    slip.hidden = error === null;
    this.#input.setAttribute("aria-invalid", String(error !== null));
    if (error === null) return;
    const caret = byId("filter-caret");
    caret.hidden = error.position === null;
    if (error.position !== null) {
      // Of what was cut off at its left end the server counts nothing.
      const lead = this.#input.value.length - this.#input.value.trimStart().length;
      const before = [...this.#input.value].slice(0, lead + error.position).join("");
      write(caret, `${before.replace(/./gsu, " ")}${"^".repeat(Math.max(error.length, 1))}`);
      const scroll = () => caret.style.setProperty("transform", `translateX(${-this.#input.scrollLeft}px)`);
      scroll();
    }
    write(byId("filter-sentence"), error.message);
  }

  // Names.

  async #ask() {
    const end = this.#input.selectionStart ?? this.#input.value.length;
    const text = this.#input.value.slice(0, end);
    if (!/[\w.]$/.test(text)) {
      this.#list([]);
      return;
    }
    this.#asked = text;
    try {
      const { from, words } = await this.#source.complete(text);
      if (this.#asked !== text || document.activeElement !== this.#input) return;
      this.#from = [...text].slice(0, from).join("").length;
      const begun = text.slice(this.#from);
      this.#list(words.filter((word) => word !== begun).slice(0, MOST_NAMES));
    } catch {
      // Without names one writes them oneself.
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
    this.#written();
  }

  #key(event) {
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
