// A cache of pictures of tables, complete with their fragments.

import { Part } from "./part.js";

const MOST_PICTURES = 64;

/** Loads pictures and their fragments. */
export class Pictures extends Part {
  #cached = new Map();

  /**
   * Return the picture of a table after an event.
   *
   * @param {{table: number, as: string|null, at: number, game?: number|null}} moment
   * @returns {Promise<object>}
   */
  async at({ table, as, at, game = null }) {
    const key = this.#key(table, as, at, game);
    let pending = this.#cached.get(key);
    if (pending === undefined) {
      pending = this.source.picture(table, as, at, game);
      this.#cache(key, pending);
      pending.catch(() => this.#cached.delete(key));
    }
    const picture = await pending;
    const lacking = this.fragments.lackedBy(picture);
    if (lacking.length) this.fragments.take(await this.source.fragments(table, as, picture.seq, lacking, game));
    return picture;
  }

  /** Cache a picture pushed by the server, with its fragments. */
  take(as, picture) {
    this.fragments.take(picture.fragments ?? {});
    this.#cache(this.#key(picture.table, as, picture.seq, null), Promise.resolve(picture));
  }

  #key(table, as, at, game) {
    return JSON.stringify([this.source.session, table, as, at, game]);
  }

  #cache(key, pending) {
    this.#cached.delete(key);
    this.#cached.set(key, pending);
    if (this.#cached.size > MOST_PICTURES) this.#cached.delete(this.#cached.keys().next().value);
  }
}
