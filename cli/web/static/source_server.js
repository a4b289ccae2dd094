// The data source of a page from a server.

import { Refused } from "./source.js";
import { ApiSource, accepted } from "./source_api.js";

const UNREACHABLE = "the server cannot be reached";
/** Headers that another site cannot send without permission. */
const ACTION_HEADERS = { "content-type": "application/json", "kiebitz-hands": "1" };
const FILE_HEADERS = { ...ACTION_HEADERS, "content-type": "application/octet-stream" };

/** Requests `api/…` from the server. */
export class ServerSource extends ApiSource {
  /** The key in the page's own address, sent with every request. */
  #key = new URLSearchParams(location.search).get("key");

  /** The largest file in bytes that can be opened. */
  #largest = 0;
  #sending = new AbortController();

  async sessions() {
    const found = await super.sessions();
    this.#largest = found.opens;
    return found;
  }

  /** Open a capture or a database on the server until it ends, and return the number of its session. */
  async add(file) {
    return (await this.#send(file)).session;
  }

  /** Use a protocol file for what is opened from now on, and return the names of its protocols. */
  async addProtocol(file) {
    return (await this.#send(file)).protocols;
  }

  /** Stop sending a file. */
  stop() {
    this.#sending.abort();
  }

  #send(file) {
    if (file.size > this.#largest)
      throw new Refused(`${file.name} is too large to be opened here: use kiebitz serve ${file.name}`);
    this.#sending = new AbortController();
    const { signal } = this.#sending;
    return this.ask("files", { session: null, name: file.name }, { method: "POST", headers: FILE_HEADERS, body: file, signal });
  }

  /** Return the URL of the event stream of the home page. */
  homeAddress(as) {
    return this.address("home/live", { session: null, as });
  }

  /** Return the URL of a board as an SVG document. */
  boardAddress(session, { table, at, game }, as, shape) {
    const params = { session: session === 1 ? null : session, as, at, game, shape, bare: 1 };
    return this.address(`tables/${table.table}/picture.svg`, params);
  }

  /** Return the held messages of the relay that records the session. */
  held() {
    return this.ask("held");
  }

  /** Act on held messages. */
  act(deed) {
    return this.ask("held", {}, { method: "POST", headers: ACTION_HEADERS, body: JSON.stringify(deed) });
  }

  /** Mark a message or an event, and return all marks. */
  setMark(mark) {
    return this.ask("marks", {}, { method: "POST", headers: ACTION_HEADERS, body: JSON.stringify(mark) });
  }

  /** Return the URL of the event stream, from now on or after an event. */
  liveAddress(table, as, after) {
    return this.address("live", { table, as, after });
  }

  address(path, params) {
    return super.address(path, { ...params, key: this.#key });
  }

  async ask(path, params, options = {}) {
    let response, body;
    try {
      response = await fetch(this.address(path, params), {
        credentials: "same-origin",
        cache: "no-store",
        ...options,
      });
      body = await response.json();
    } catch {
      if (options.signal?.aborted) throw new Refused("stopped");
      if (response !== undefined && !response.ok)
        throw new Refused(`the server answers ${response.status}`, response);
      throw new Refused(UNREACHABLE);
    }
    return accepted(body, response.ok, response.status);
  }
}
