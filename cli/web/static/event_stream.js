// Updates of a live session as server-sent events, with reconnection.

const SHORTEST_MS = 500;
const LONGEST_MS = 5000;
const LOST = "connection lost, trying again";
/** Silence after which the connection is renewed: the computer may have slept. */
const SILENCE_MS = 60_000;

/**
 * Receives the events of a table after an event, each once.
 *
 * The handler `events` receives new events, `lost` a sentence when the connection is lost or refused, and null when it
 * is open. The other handlers receive the server's messages of their names.
 */
export class EventStream {
  #address;
  #handlers;
  #after;
  #table;
  #stream = null;
  #retry = 0;
  #silence = 0;
  #waits = SHORTEST_MS;
  #isClosed = false;

  /**
   * @param {(after: number|null) => string} address returns the URL of the stream after an event
   * @param {{table: number|null, after: number|null}} from
   * @param {Record<string, Function>} handlers
   */
  constructor(address, { table, after }, handlers) {
    this.#address = address;
    this.#handlers = handlers;
    this.#table = table;
    this.#after = after;
    document.addEventListener("visibilitychange", this.#followVisibility);
    addEventListener("online", this.#connect);
    this.#followVisibility();
  }

  /** Close the stream. */
  close() {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#followVisibility);
    removeEventListener("online", this.#connect);
    this.#disconnect();
  }

  /** Disconnect while the tab is hidden; all missed events arrive when it is visible again. */
  #followVisibility = () => {
    if (document.hidden) this.#disconnect();
    else if (this.#stream === null) this.#connect();
  };

  #connect = () => {
    this.#disconnect();
    if (this.#isClosed || document.hidden) return;
    const stream = new EventSource(this.#address(this.#after));
    this.#stream = stream;
    stream.onopen = () => {
      this.#waits = SHORTEST_MS;
      this.#resetSilence();
      this.#handlers.lost(null);
    };
    stream.onmessage = (event) => this.#take(JSON.parse(event.data));
    for (const [name, handle] of Object.entries(this.#handlers)) {
      if (name === "events" || name === "lost") continue;
      stream.addEventListener(name, (event) => {
        this.#resetSilence();
        handle(JSON.parse(event.data));
      });
    }
    stream.addEventListener("ping", () => this.#resetSilence());
    // The browser's own reconnection does not cover all failures, and has a delay of its own.
    stream.onerror = () => this.#reconnect(stream);
    this.#resetSilence();
  };

  #take(data) {
    this.#resetSilence();
    if (data.table === this.#table && this.#after !== null) {
      data.events = data.events.filter((event) => event.seq > this.#after);
    }
    if (data.table === this.#table && data.events.length) this.#after = data.events.at(-1).seq;
    this.#handlers.events(data);
  }

  #reconnect(stream) {
    // The browser would reconnect after a network failure, but not after a response with an error status.
    const isRefused = stream.readyState === EventSource.CLOSED;
    this.#disconnect();
    if (this.#isClosed || document.hidden) return;
    this.#handlers.lost(LOST);
    if (isRefused) this.#explain(stream.url);
    // Randomized, so that pages refused together do not retry together.
    this.#retry = setTimeout(this.#connect, this.#waits * (0.5 + Math.random() / 2));
    this.#waits = Math.min(this.#waits * 2, LONGEST_MS);
  }

  /** Report why the server refuses the stream, which an EventSource does not reveal. */
  async #explain(url) {
    const request = new AbortController();
    try {
      const answer = await fetch(url, { cache: "no-store", signal: request.signal });
      const reason = answer.ok ? null : (await answer.json()).error;
      if (reason && !this.#isClosed && this.#stream === null) this.#handlers.lost(`not live, trying again: ${reason}`);
    } catch {
      // The lost connection has been reported already.
    }
    // The request may have opened a stream, if there is room for it by now.
    request.abort();
  }

  #resetSilence() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(this.#connect, SILENCE_MS);
  }

  #disconnect() {
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#stream?.close();
    this.#stream = null;
  }
}
