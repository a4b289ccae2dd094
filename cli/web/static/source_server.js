// The data source of a page from a server.

import { Refused } from "./source.js";

const UNREACHABLE = "the server cannot be reached";
/** Headers that another site cannot send without permission. */
const ACTION_HEADERS = { "content-type": "application/json", "kiebitz-hands": "1" };

/** Requests `api/…`; the methods are those of `import("./source.js").Source`. */
export class ServerSource {
  isFile = false;
  leftOut = null;
  session = 1;
  /** The key in the page's own address, sent with every request. */
  #key = new URLSearchParams(location.search).get("key");
  /** The last summary of all sessions, and its entity tag. */
  #home = null;
  #homeTag = null;

  sessions() {
    // Not of one session only.
    return this.#fetch("sessions", { session: null });
  }

  /** Return the summary of all sessions, the last one if it is unchanged. */
  async home() {
    const headers = this.#homeTag === null ? {} : { "if-none-match": this.#homeTag };
    const kept = this.#home;
    const keep = (response) => {
      this.#homeTag = response.headers.get("etag");
      return response.status === 304 ? kept : null;
    };
    this.#home = await this.#fetch("home", { session: null }, { headers }, keep);
    return this.#home;
  }

  /** Return the URL of a board as an SVG document. */
  boardAddress(session, table, at) {
    return this.#address(`tables/${table}/picture.svg`, { session: session === 1 ? null : session, at });
  }

  tables() {
    return this.#fetch("tables");
  }

  timeline(table, as) {
    return this.#fetch(`tables/${table}/timeline`, { as });
  }

  events(table, as, params) {
    return this.#fetch(`tables/${table}/events`, { as, limit: 200, ...params });
  }

  state(table, as, at) {
    return this.#fetch(`tables/${table}/state`, { as, at });
  }

  picture(table, as, at) {
    return this.#fetch(`tables/${table}/picture`, { as, at });
  }

  async fragments(table, as, at, names) {
    // If many are missing, their names would make too long an address: then all are requested.
    const few = names.length <= 80 ? names.join(",") : null;
    return (await this.#fetch(`tables/${table}/fragments`, { as, at, names: few })).fragments;
  }

  messages(as, params) {
    return this.#fetch("messages", { as, limit: 100, ...params });
  }

  sequence(table, as, params) {
    return this.#fetch(`tables/${table}/sequence`, { as, limit: 100, ...params });
  }

  message(as, number) {
    return this.#fetch(`messages/${number}`, { as });
  }

  diagnostics(as, params) {
    return this.#fetch("diagnostics", { as, limit: 100, ...params });
  }

  streams(as) {
    return this.#fetch("streams", { as });
  }

  complete(text) {
    return this.#fetch("complete", { text });
  }

  async checkFilter(filter) {
    const body = await this.#fetch("check-filter", { filter });
    if (body.error) throw new Refused(body.error, { status: 400, ...body });
  }

  /** Return the held messages of the relay that records the session. */
  held() {
    return this.#fetch("held");
  }

  /** Act on held messages. */
  act(deed) {
    return this.#fetch("held", {}, { method: "POST", headers: ACTION_HEADERS, body: JSON.stringify(deed) });
  }

  /** Return the URL of the event stream, from now on or after an event. */
  liveAddress(table, as, after) {
    return this.#address("live", { table, as, after });
  }

  #address(path, params = {}) {
    const query = new URLSearchParams();
    const all = { session: this.session === 1 ? null : this.session, ...params, key: this.#key };
    for (const [name, value] of Object.entries(all)) {
      if (value !== null && value !== undefined && (value !== "" || name === "as" || name === "text"))
        query.set(name, value);
    }
    const text = query.toString();
    return `api/${path}${text ? `?${text}` : ""}`;
  }

  async #fetch(path, params, options = {}, keep = () => null) {
    let response, body;
    try {
      response = await fetch(this.#address(path, params), {
        credentials: "same-origin",
        cache: "no-store",
        ...options,
      });
      body = keep(response) ?? (await response.json());
    } catch {
      if (response !== undefined && !response.ok)
        throw new Refused(`the server answers ${response.status}`, response);
      throw new Refused(UNREACHABLE);
    }
    // An invalid filter is no failed request: its error comes in a successful response.
    if ((!response.ok && response.status !== 304) || typeof body.error === "string")
      throw new Refused(body.error ?? `the server answers ${response.status}`, {
        status: response.status,
        ...body,
      });
    return body;
  }
}
