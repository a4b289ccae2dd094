// The requests of a data source that answers like a server: its API's paths and parameters.

import { Refused } from "./source.js";

/** Requests `api/…`; the methods are those of `import("./source.js").Source`. */
export class ApiSource {
  isFile = false;
  leftOut = null;
  session = 1;

  /**
   * Request a path and return the record; each kind of source has its own way.
   *
   * @param {string} path
   * @param {object} [params] null, undefined and most empty values are left out
   * @returns {Promise<object>}
   */
  async ask(path, params) {
    throw new Refused(`${path} cannot be requested`, params);
  }

  sessions() {
    // Not of one session only.
    return this.ask("sessions", { session: null });
  }

  tables() {
    return this.ask("tables");
  }

  timeline(table, as) {
    return this.ask(`tables/${table}/timeline`, { as });
  }

  events(table, as, params) {
    return this.ask(`tables/${table}/events`, { as, limit: 200, ...params });
  }

  state(table, as, at) {
    return this.ask(`tables/${table}/state`, { as, at });
  }

  picture(table, as, at, game, seat) {
    return this.ask(`tables/${table}/picture`, { as, at, game, seat });
  }

  async fragments(table, as, at, names, game, seat) {
    // If many are missing, their names would make too long an address: then all are requested.
    const few = names.length <= 80 ? names.join(",") : null;
    return (await this.ask(`tables/${table}/fragments`, { as, at, names: few, game, seat })).fragments;
  }

  messages(as, params) {
    return this.ask("messages", { as, limit: 100, ...params });
  }

  sequence(table, as, params) {
    return this.ask(`tables/${table}/sequence`, { as, limit: 100, ...params });
  }

  message(as, number) {
    return this.ask(`messages/${number}`, { as });
  }

  diagnostics(as, params) {
    return this.ask("diagnostics", { as, limit: 100, ...params });
  }

  streams(as) {
    return this.ask("streams", { as });
  }

  marks(as) {
    return this.ask("marks", { as });
  }

  statistics(table, as, filter) {
    return this.ask(`tables/${table}/statistics`, { as, filter });
  }

  matches(table, as, filter) {
    return this.ask(`tables/${table}/matches`, { as, filter });
  }

  complete(text) {
    return this.ask("complete", { text });
  }

  async checkFilter(filter) {
    const body = await this.ask("check-filter", { filter });
    if (body.error) throw new Refused(body.error, { status: 400, ...body });
  }

  /** Return a path with its parameters. */
  address(path, params = {}) {
    const query = new URLSearchParams();
    const all = { session: this.session === 1 ? null : this.session, ...params };
    for (const [name, value] of Object.entries(all)) {
      if (value !== null && value !== undefined && (value !== "" || name === "as" || name === "text"))
        query.set(name, value);
    }
    const text = query.toString();
    return `api/${path}${text ? `?${text}` : ""}`;
  }
}

/** Return a response's record. Raises Refused for one with an error. */
export function accepted(body, isSuccess, status) {
  // An invalid filter is no failed request: its error comes in a successful response.
  if (!isSuccess || typeof body.error === "string")
    throw new Refused(body.error ?? `the server answers ${status}`, { status, ...body });
  return body;
}
