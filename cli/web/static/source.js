// The interface of the page's data sources: a server (`source_server.js`) or the page itself (`source_file.js`).

/**
 * @typedef {object} Source
 * @property {boolean} isFile
 * @property {string|null} leftOut a sentence about data that are not included
 * @property {number} session number of the current session
 * @property {() => Promise<object>} sessions
 * @property {() => Promise<object>} home all sessions; server only
 * @property {(session: number, table: object, as: string|null, shape: string) => string} boardAddress of a table of the home page; server only
 * @property {() => Promise<object>} tables
 * @property {(table: number, as: string|null) => Promise<object>} timeline
 * @property {(table: number, as: string|null, params: object) => Promise<object>} events
 * @property {(table: number, as: string|null, at: number) => Promise<object>} state
 * @property {(table: number, as: string|null, at: number) => Promise<object>} picture
 * @property {(table: number, as: string|null, at: number, names: string[]) => Promise<object>} fragments
 * @property {(as: string|null, params: object) => Promise<object>} messages
 * @property {(table: number, as: string|null, params: object) => Promise<object>} sequence
 * @property {(as: string|null, id: number) => Promise<object>} message
 * @property {(as: string|null, params: object) => Promise<object>} diagnostics
 * @property {(as: string|null) => Promise<object>} streams
 * @property {(as: string|null) => Promise<object>} marks
 * @property {(mark: object) => Promise<object>} [setMark] server only
 * @property {(table: number, as: string|null, filter: string) => Promise<object>} statistics
 * @property {() => Promise<object>} held held messages; server only
 * @property {(deed: object) => Promise<object>} act server only
 * @property {(text: string) => Promise<{from: number, words: string[]}>} complete
 * @property {(filter: string) => Promise<object>} checkFilter
 */

/** A request that failed or was refused; the message is shown to the user. */
export class Refused extends Error {
  /**
   * @param {string} sentence
   * @param {{status?: number, position?: number, length?: number, slips?: object}} [about] position of an error in a
   *   filter, in characters; messages about invalid values by field
   */
  constructor(sentence, { status = 0, position = null, length = 1, slips = {} } = {}) {
    super(sentence);
    this.status = status;
    this.position = position;
    this.length = length;
    this.slips = slips;
  }

  /** Whether there was no response. */
  get isUnreachable() {
    return this.status === 0;
  }
}
