// The data source of a page without a server: Kiebitz runs in a worker of this page, on files that the user opens.

import { Refused } from "./source.js";
import { ApiSource, accepted } from "./source_api.js";

/** Time after which a worker that does not end a request itself is ended; another one opens the files again. */
const LONGEST_MS = 30_000;
const ENDED = `cancelled after ${LONGEST_MS / 1000} s; the files are read again`;

/** Asks the worker; files are added to those that it has. */
export class WorkerSource extends ApiSource {
  /** The opened files, protocol files among them, in their order. */
  files = [];
  #worker = null;
  #waiting = new Map();
  #asked = 0;
  /** @type {(words: string) => void} */
  onProgress = () => {};

  constructor() {
    super();
    this.#start();
  }

  /**
   * Open a capture or a database and return the number of its session.
   *
   * @param {File} file
   */
  async add(file) {
    const { session } = await this.#send({ open: file });
    this.files.push(file);
    return session;
  }

  /**
   * Use a protocol file for what is opened from now on, and return the names of its protocols.
   *
   * @param {File} file
   */
  async addProtocol(file) {
    const { protocols } = await this.#send({ protocol: file });
    this.files.push(file);
    return protocols;
  }

  /**
   * Return a session in a format of `kiebitz export`.
   *
   * @param {number} session
   * @param {string} form
   * @param {boolean} isAnonymized
   * @returns {Promise<Uint8Array>}
   */
  async export(session, form, isAnonymized) {
    return (await this.#send({ export: { session, form, isAnonymized } })).data;
  }

  /** End what is being done, by another worker that reads the files again. */
  stop() {
    this.#restart("stopped");
  }

  async ask(path, params) {
    const { status, body } = await this.#send({ ask: this.address(path, params) });
    return accepted(JSON.parse(new TextDecoder().decode(body)), status < 400, status);
  }

  #start() {
    // A worker from an address would not have the page's policy, which keeps it from sending anything elsewhere.
    const script = `import ${JSON.stringify(new URL("worker.js", import.meta.url))};`;
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.#worker = new Worker(address, { type: "module" });
    URL.revokeObjectURL(address);
    this.#worker.onmessage = ({ data: { id, ...answer } }) => {
      if (answer.progress !== undefined) this.onProgress(answer.progress);
      else if (answer.begun) this.#waiting.get(id).timer = setTimeout(() => this.#restart(ENDED), LONGEST_MS);
      else this.#settle(id, answer);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      for (const id of this.#waiting.keys()) this.#settle(id, { error: event.message || "the page's worker failed" });
    };
  }

  #send(request) {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, timer: 0 });
      this.#worker.postMessage({ id, ...request });
    });
  }

  #settle(id, answer) {
    const { resolve, reject, timer } = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(timer);
    if (answer.error === undefined) resolve(answer);
    else reject(new Refused(answer.error, { status: 500 }));
  }

  /** End the worker, with all that was asked of it, and open the files again in another one. */
  #restart(reason) {
    this.#worker.terminate();
    for (const id of [...this.#waiting.keys()]) this.#settle(id, { error: reason });
    this.#start();
    for (const file of this.files)
      this.#send(file.name.endsWith(".toml") ? { protocol: file } : { open: file }).catch(() => null);
  }
}
