// The data from the server that the page came from.

import { Refused } from "./source.js";

const GONE = "the server cannot be reached";
/** What no other site can say without being allowed to. */
const HANDS = { "content-type": "application/json", "kiebitz-hands": "1" };

/** Asks `api/…`; `import("./source.js").Source` says what each question gives. */
export class ServerSource {
  isFile = false;
  leftOut = null;
  session = 1;
  /** The key of the page's own address, which every question carries. */
  #key = new URLSearchParams(location.search).get("key");

  sessions() {
    // All of them: whichever is looked at.
    return this.#ask("sessions", { session: null });
  }

  tables() {
    return this.#ask("tables");
  }

  timeline(table, as) {
    return this.#ask(`tables/${table}/timeline`, { as });
  }

  events(table, as, asked) {
    return this.#ask(`tables/${table}/events`, { as, limit: 200, ...asked });
  }

  state(table, as, at) {
    return this.#ask(`tables/${table}/state`, { as, at });
  }

  picture(table, as, at) {
    return this.#ask(`tables/${table}/picture`, { as, at });
  }

  async fragments(table, as, at, names) {
    // Where most are lacking, their names would make a long address: then all are asked for.
    const few = names.length <= 80 ? names.join(",") : null;
    return (await this.#ask(`tables/${table}/fragments`, { as, at, names: few })).fragments;
  }

  messages(as, asked) {
    return this.#ask("messages", { as, limit: 100, ...asked });
  }

  message(as, number) {
    return this.#ask(`messages/${number}`, { as });
  }

  diagnostics(as, asked) {
    return this.#ask("diagnostics", { as, limit: 100, ...asked });
  }

  streams(as) {
    return this.#ask("streams", { as });
  }

  complete(text) {
    return this.#ask("complete", { text });
  }

  async checkFilter(filter) {
    const said = await this.#ask("check-filter", { filter });
    if (said.error) throw new Refused(said.error, { status: 400, ...said });
  }

  /** What a relay holds that records the session. */
  held() {
    return this.#ask("held");
  }

  /** Have something done to what is held. */
  act(deed) {
    return this.#ask("held", {}, { method: "POST", headers: HANDS, body: JSON.stringify(deed) });
  }

  /** The address of what comes from now on, or after an event. */
  liveAddress(table, as, after) {
    return this.#address("live", { table, as, after });
  }

  #address(path, asked = {}) {
    const query = new URLSearchParams();
    const all = { session: this.session === 1 ? null : this.session, ...asked, key: this.#key };
    for (const [name, value] of Object.entries(all)) {
      if (value !== null && value !== undefined && (value !== "" || name === "as" || name === "text"))
        query.set(name, value);
    }
    const text = query.toString();
    return `api/${path}${text ? `?${text}` : ""}`;
  }

  async #ask(path, asked, how = {}) {
    let answer, said;
    try {
      answer = await fetch(this.#address(path, asked), {
        credentials: "same-origin",
        cache: "no-store",
        ...how,
      });
      said = await answer.json();
    } catch {
      if (answer !== undefined && !answer.ok)
        throw new Refused(`the server answers ${answer.status}`, answer);
      throw new Refused(GONE);
    }
    // A filter that is none is no failure of the connection: it may be said in a good answer.
    if (!answer.ok || typeof said.error === "string")
      throw new Refused(said.error ?? `the server answers ${answer.status}`, {
        status: answer.status,
        ...said,
      });
    return said;
  }
}
