// Where the data come from: a server (`source_server.js`), or the page's own file (`source_file.js`).

/**
 * @typedef {object} Source
 * @property {boolean} isFile
 * @property {string|null} leftOut what is not in it, in a sentence
 * @property {number} session which of the sessions is asked
 * @property {() => Promise<object>} sessions
 * @property {() => Promise<object>} tables
 * @property {(table: number, as: string|null) => Promise<object>} timeline
 * @property {(table: number, as: string|null, asked: object) => Promise<object>} events
 * @property {(table: number, as: string|null, at: number) => Promise<object>} state
 * @property {(table: number, as: string|null, at: number) => Promise<object>} picture
 * @property {(table: number, as: string|null, at: number, names: string[]) => Promise<object>} fragments
 * @property {(as: string|null, asked: object) => Promise<object>} messages
 * @property {(as: string|null, id: number) => Promise<object>} message
 * @property {(as: string|null, asked: object) => Promise<object>} diagnostics
 * @property {(as: string|null) => Promise<object>} streams
 * @property {() => Promise<object>} held what a relay holds; not of a file
 * @property {(deed: object) => Promise<object>} act
 * @property {(text: string) => Promise<{from: number, words: string[]}>} complete
 * @property {(filter: string) => Promise<object>} checkFilter
 */

/** A question that was not answered; the message is a sentence for the reader. */
export class Refused extends Error {
  /**
   * @param {string} sentence
   * @param {{status?: number, position?: number, length?: number, slips?: object}} [about] where in a filter the
   *   slip is, in characters; or by field what does not fit
   */
  constructor(sentence, { status = 0, position = null, length = 1, slips = {} } = {}) {
    super(sentence);
    this.status = status;
    this.position = position;
    this.length = length;
    this.slips = slips;
  }

  /** Whether nobody was there to answer. */
  get isUnreachable() {
    return this.status === 0;
  }
}
