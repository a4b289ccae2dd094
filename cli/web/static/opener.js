// The choice of files to open: captures, databases and protocol files, chosen or dropped on the page.

import { byId, element, write } from "./elements.js";
import { showPage } from "./page.js";

const classes = document.documentElement.classList;
const say = (words) => write(byId("opener-state"), words);

/** Opens files in a data source that takes them, with the progress, a way to stop, and errors in sight. */
export class Opener {
  /** The view and the model; null until there is something to show. */
  page;
  #source;
  #added;

  /**
   * @param {object} source has `add`, `addProtocol`, `stop`, and calls `onProgress`
   * @param {object|null} page of `showPage`; else the first file shows it
   * @param {() => Promise<void>} [added] is called after files were added
   */
  constructor(source, page, added = async () => {}) {
    this.#source = source;
    this.page = page;
    this.#added = added;
    source.onProgress = say;
    const toggle = () => this.show(!classes.contains("is-opening"));
    const button = element("button", { type: "button", id: "opener-button", onclick: toggle }, "Files");
    byId("theme").before(button);
    const isOpen = () => page === null || page.model.opens > 0;
    page?.view.listen(() => (button.hidden = !isOpen()));
    byId("opener-file").addEventListener("change", ({ target }) => this.open([...target.files]));
    byId("opener-stop").addEventListener("click", () => source.stop());
    byId("opener-use").addEventListener("click", () =>
      this.open([new File([byId("opener-protocol").value], "protocol.toml")]),
    );
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      if (isOpen()) this.open([...event.dataTransfer.files]);
    });
  }

  /** Show the choice of files instead of the session, or the session again. */
  show(isShown) {
    classes.toggle("is-opening", isShown);
  }

  /** Run what takes a while; its error is shown, and null returned. */
  async attempt(work) {
    const [running, problem] = [byId("opener-running"), byId("opener-problem")];
    problem.hidden = true;
    running.hidden = false;
    try {
      return await work();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
      this.show(true);
      return null;
    } finally {
      running.hidden = true;
      say("");
    }
  }

  /** Open files, and show the session of the last one; it may keep the position of the address. */
  open(files, keepsPosition = false) {
    return this.attempt(async () => {
      let session = null;
      for (const file of files) {
        say(`opening ${file.name}`);
        if (file.name.endsWith(".toml"))
          write(byId("opener-protocols"), `in use: ${(await this.#source.addProtocol(file)).join(", ")}`);
        else session = await this.#source.add(file);
      }
      await this.#added();
      if (session === null) return;
      classes.remove("is-empty");
      this.show(false);
      this.page ??= showPage(this.#source);
      const { view, model } = this.page;
      if (view.now.session !== session || !keepsPosition)
        model.open({ ...view.now, home: false, session, table: null, at: null, as: null, message: null });
    });
  }
}
