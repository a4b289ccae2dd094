// The entry point of the page without a server: shows the files that the user opens or drops on it.

import { byId, element, write } from "./elements.js";
import { recallFiles, rememberFiles } from "./file_store.js";
import { showPage } from "./page.js";
import { WorkerSource } from "./source_worker.js";
import { initTheme } from "./theme.js";

const root = document.documentElement;
const say = (words) => write(byId("opener-state"), words);
const source = new WorkerSource(say);
/** The view and the model once a file is open. */
let page = null;

function showOpener(isShown) {
  root.classList.toggle("is-opening", isShown);
}

function showProblem(text) {
  const problem = byId("opener-problem");
  problem.hidden = text === "";
  problem.textContent = text;
  if (text !== "") showOpener(true);
}

/** Run what takes a while, with its progress, a way to stop, and its error in sight. */
async function attempt(work) {
  const running = byId("opener-running");
  showProblem("");
  running.hidden = false;
  try {
    return await work();
  } catch (error) {
    showProblem(error.message);
    return null;
  } finally {
    running.hidden = true;
    say("");
  }
}

function open(files, example = null) {
  return attempt(async () => {
    let session = null;
    for (const file of files) {
      if (file.name.endsWith(".toml")) write(byId("opener-protocols"), inUse(await source.addProtocol(file)));
      else session = await source.add(file);
    }
    await rememberFiles(source.files);
    if (session === null) return;
    if (example !== null) history.replaceState(null, "", `?example=${encodeURIComponent(example)}${location.hash}`);
    root.classList.remove("is-empty");
    showOpener(false);
    byId("opener-save").hidden = false;
    if (page === null) page = showPage(source);
    if (page.view.now.session !== session || example === null)
      page.model.open({ ...page.view.now, session, table: null, at: null, as: null, message: null });
  });
}

const inUse = (protocols) => `in use: ${protocols.join(", ")}`;

async function openExample(name) {
  const response = await fetch(`examples/${encodeURIComponent(name)}`);
  await open([new File([await response.blob()], name)], name);
}

async function showExamples() {
  const examples = await (await fetch("examples.json")).json();
  byId("opener-examples").replaceChildren(
    ...Object.entries(examples).map(([name, title]) =>
      element("button", { type: "button", onclick: () => openExample(name) }, title),
    ),
  );
  const wanted = new URLSearchParams(location.search).get("example");
  const kept = await recallFiles();
  if (Object.hasOwn(examples, wanted) && !kept.some((file) => file.name === wanted)) await openExample(wanted);
  else await open(kept);
}

async function save() {
  const form = byId("opener-form").value;
  const data = await attempt(() => source.export(page.view.now.session, form, byId("opener-anonymous").checked));
  if (data === null) return;
  const address = URL.createObjectURL(new Blob([data]));
  element("a", { href: address, download: `kiebitz.${form}` }).click();
  URL.revokeObjectURL(address);
}

initTheme(byId("theme"));
navigator.serviceWorker?.register(new URL("service_worker.js", import.meta.url));
byId("theme").before(
  element("button", { type: "button", id: "opener-button", onclick: () => showOpener(!root.classList.contains("is-opening")) }, "Files"),
);
byId("opener-file").addEventListener("change", ({ target }) => open([...target.files]));
byId("opener-stop").addEventListener("click", () => source.stop());
byId("opener-use").addEventListener("click", () =>
  open([new File([byId("opener-protocol").value], "protocol.toml")]),
);
byId("opener-save").addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  open([...event.dataTransfer.files]);
});
showExamples();
