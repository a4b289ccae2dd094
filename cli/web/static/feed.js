// What comes while a session is recorded: server-sent events, and a new connection where one is lost.

const SHORTEST_MS = 500;
const LONGEST_MS = 5000;
const LOST = "connection lost, trying again";
/** So long nothing may come at all, before it is asked whether the connection is one: a computer may have slept. */
const SILENCE_MS = 60_000;

/**
 * Hears what happens at a table after an event: all of it, and nothing twice.
 *
 * `events` is called with what came, `growth`, `status` and `held` with what the server says of the session, and `lost`
 * with a sentence when the connection is lost or refused, and with null when it is open.
 */
export class Feed {
  #address;
  #told;
  #after;
  #table;
  #stream = null;
  #retry = 0;
  #silence = 0;
  #waits = SHORTEST_MS;
  #isClosed = false;

  /**
   * @param {(after: number|null) => string} address of the stream after an event
   * @param {{table: number|null, after: number|null}} from
   * @param {{events: Function, growth: Function, status: Function, held: Function, lost: Function}} told
   */
  constructor(address, { table, after }, told) {
    this.#address = address;
    this.#told = told;
    this.#table = table;
    this.#after = after;
    document.addEventListener("visibilitychange", this.#look);
    addEventListener("online", this.#again);
    this.#look();
  }

  /** Hear nothing any more. */
  close() {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#look);
    removeEventListener("online", this.#again);
    this.#hangUp();
  }

  /** A tab that nobody sees hears nothing; it is told everything when somebody comes back. */
  #look = () => {
    if (document.hidden) this.#hangUp();
    else if (this.#stream === null) this.#again();
  };

  #again = () => {
    this.#hangUp();
    if (this.#isClosed || document.hidden) return;
    const stream = new EventSource(this.#address(this.#after));
    this.#stream = stream;
    stream.onopen = () => {
      this.#waits = SHORTEST_MS;
      this.#heard();
      this.#told.lost(null);
    };
    stream.onmessage = (event) => this.#take(JSON.parse(event.data));
    for (const name of ["growth", "status", "held"]) {
      stream.addEventListener(name, (event) => {
        this.#heard();
        this.#told[name](JSON.parse(event.data));
      });
    }
    stream.addEventListener("ping", () => this.#heard());
    // The browser would try again by itself, but not after each kind of failure, and after a time of its own.
    stream.onerror = () => this.#lose(stream);
    this.#heard();
  };

  #take(data) {
    this.#heard();
    if (data.table === this.#table && this.#after !== null) {
      data.events = data.events.filter((event) => event.seq > this.#after);
    }
    if (data.table === this.#table && data.events.length) this.#after = data.events.at(-1).seq;
    this.#told.events(data);
  }

  #lose(stream) {
    // The browser itself would try again after a failure of the network, but not after an answer with an error status.
    const isRefused = stream.readyState === EventSource.CLOSED;
    this.#hangUp();
    if (this.#isClosed || document.hidden) return;
    this.#told.lost(LOST);
    if (isRefused) this.#explain(stream.url);
    // At random, so that pages that are refused together do not try again together.
    this.#retry = setTimeout(this.#again, this.#waits * (0.5 + Math.random() / 2));
    this.#waits = Math.min(this.#waits * 2, LONGEST_MS);
  }

  /** Pass on why the server refuses the stream, which an EventSource does not say. */
  async #explain(url) {
    const request = new AbortController();
    try {
      const answer = await fetch(url, { cache: "no-store", signal: request.signal });
      const reason = answer.ok ? null : (await answer.json()).error;
      if (reason && !this.#isClosed && this.#stream === null) this.#told.lost(`not live, trying again: ${reason}`);
    } catch {
      // The connection is lost by now, which has been passed on.
    }
    // There may be room for a stream by now.
    request.abort();
  }

  #heard() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(this.#again, SILENCE_MS);
  }

  #hangUp() {
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#stream?.close();
    this.#stream = null;
  }
}
