// The entry point of the page without a server: shows the files that the user opens or drops on it.

import { byId, element } from "./elements.js";
import { recallFiles, rememberFiles } from "./file_store.js";
import { Opener } from "./opener.js";
import { WorkerSource } from "./source_worker.js";
import { initTheme } from "./theme.js";

initTheme(byId("theme"));
const source = new WorkerSource();
const opener = new Opener(source, null, async () => {
  byId("opener-save").hidden = source.files.every((file) => file.name.endsWith(".toml"));
  await rememberFiles(source.files);
});

async function openExample(name) {
  const response = await fetch(`examples/${encodeURIComponent(name)}`);
  history.replaceState(null, "", `?example=${encodeURIComponent(name)}${location.hash}`);
  await opener.open([new File([await response.blob()], name)], true);
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
  else await opener.open(kept, true);
}

async function save() {
  const form = byId("opener-form").value;
  const { session } = opener.page.view.now;
  const data = await opener.attempt(() => source.export(session, form, byId("opener-anonymous").checked));
  if (data === null) return;
  const address = URL.createObjectURL(new Blob([data]));
  element("a", { href: address, download: `kiebitz.${form}` }).click();
  URL.revokeObjectURL(address);
}

navigator.serviceWorker?.register(new URL("service_worker.js", import.meta.url));
byId("opener-save").addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
showExamples();
