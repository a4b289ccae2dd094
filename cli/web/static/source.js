// The interface of the page's data sources: a server (`source_server.js`) or the page itself (`source_file.js`).

/** @typedef {import("./source_api.js").ApiSource} Source `source_server.js` also has those of a server alone */

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
