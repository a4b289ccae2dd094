// Pictures of tables at moments: asked for, kept for a while, and complete with their fragments.

const MOST_PICTURES = 64;

/** Gives pictures all of whose fragments are here. */
export class Pictures {
  #source;
  #fragments;
  #kept = new Map();

  /**
   * @param {import("./source.js").Source} source
   * @param {import("./fragments.js").Fragments} fragments
   */
  constructor(source, fragments) {
    this.#source = source;
    this.#fragments = fragments;
  }

  /**
   * The picture of a table after an event.
   *
   * @param {{table: number, as: string|null, at: number}} moment
   * @returns {Promise<object>}
   */
  async at({ table, as, at }) {
    const key = this.#key(table, as, at);
    let asked = this.#kept.get(key);
    if (asked === undefined) {
      asked = this.#source.picture(table, as, at);
      this.#keep(key, asked);
      asked.catch(() => this.#kept.delete(key));
    }
    const picture = await asked;
    const lacking = this.#fragments.lackedBy(picture);
    if (lacking.length) this.#fragments.take(await this.#source.fragments(table, as, picture.seq, lacking));
    return picture;
  }

  /** Keep a picture that came by itself, with the fragments that came with it. */
  take(as, picture) {
    this.#fragments.take(picture.fragments ?? {});
    this.#keep(this.#key(picture.table, as, picture.seq), Promise.resolve(picture));
  }

  #key(table, as, at) {
    return JSON.stringify([this.#source.session, table, as, at]);
  }

  #keep(key, asked) {
    this.#kept.delete(key);
    this.#kept.set(key, asked);
    if (this.#kept.size > MOST_PICTURES) this.#kept.delete(this.#kept.keys().next().value);
  }
}
