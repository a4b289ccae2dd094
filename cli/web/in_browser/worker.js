// The worker of a page without a server: runs Kiebitz in Pyodide, and answers the page's requests.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const PROGRESS_EVERY_MS = 100;
const LONGEST_REQUEST_MS = 5000;
const SIGINT = 2;

const ready = begin();
let last = Promise.resolve();

// Requests are answered in order.
onmessage = ({ data }) => {
  last = last.then(() => answer(data));
};

async function begin() {
  say("loading Python");
  const base = new URL("pyodide/", import.meta.url).href;
  const [python, ...archives] = await Promise.all([
    loadPyodide({ indexURL: base }),
    ...["msgspec.whl", "kiebitz.zip"].map(async (name) => (await fetch(new URL(name, import.meta.url))).arrayBuffer()),
  ]);
  say("loading Kiebitz");
  for (const archive of archives) python.unpackArchive(archive, "zip", { extractDir: "/kiebitz" });
  python.runPython("import sys; sys.path.insert(0, '/kiebitz')");
  const sessions = python.runPython("from kiebitz.cli.web.local_sessions import LocalSessions; LocalSessions()");
  interruptSlowWork(python);
  say("");
  return { python, sessions };
}

/** When Python is to be interrupted: a search in one text, and a whole request. */
const ends = { search: Infinity, request: Infinity };

/** Let Python look at the clock where it looks for signals; that needs no memory shared with the page. */
function interruptSlowWork(python) {
  python.setInterruptBuffer({
    get 0() {
      if (performance.now() < Math.min(ends.search, ends.request)) return 0;
      ends.search = ends.request = Infinity;
      return SIGINT;
    },
    set 0(_value) {},
  });
  python.pyimport("kiebitz.dissectors.filters.expressions").Alarm.ring_after = (seconds) => {
    ends.search = seconds === 0 ? Infinity : performance.now() + seconds * 1000;
  };
}

async function answer({ id, open, ask, ...other }) {
  try {
    const { python, sessions } = await ready;
    // From now on its time is limited; a large file, and what is saved of it, may take its time.
    if (ask !== undefined) postMessage({ id, begun: true });
    if (ask !== undefined) postMessage({ id, ...asked(sessions, ask) });
    else if (open !== undefined) postMessage({ id, session: await opened(python, sessions, open) });
    else if (other.export !== undefined) postMessage({ id, data: exported(sessions, other.export) });
    else postMessage({ id, protocols: await added(sessions, other.protocol) });
  } catch (error) {
    postMessage({ id, error: sentence(error) });
  }
}

function exported(sessions, { session, form, isAnonymized }) {
  say("writing");
  const made = sessions.export(session, form, isAnonymized);
  const data = made.toJs();
  made.destroy();
  return data;
}

async function added(sessions, file) {
  const made = sessions.add_protocol(file.name, await file.text());
  const names = made.toJs();
  made.destroy();
  return names;
}

async function opened(python, sessions, file) {
  const { FS } = python;
  const folder = `/files/${crypto.randomUUID()}`;
  FS.mkdirTree(folder);
  const name = file.name.replaceAll("/", "_");
  // SQLite needs a database in memory; a capture is read from the file piece by piece.
  const isDatabase = (await file.slice(0, 15).text()) === "SQLite format 3";
  if (isDatabase) FS.writeFile(`${folder}/${name}`, new Uint8Array(await file.arrayBuffer()), { canOwn: true });
  else FS.mount(FS.filesystems.WORKERFS, { blobs: [{ name, data: file }] }, folder);
  let said = 0;
  try {
    return sessions.add(`${folder}/${name}`, (done, of) => {
      if (done !== of && performance.now() < said + PROGRESS_EVERY_MS) return;
      said = performance.now();
      if (done === of) say(`indexing ${file.name}`);
      else say(of ? `reading ${file.name}: ${Math.floor((100 * done) / of)} %` : `reading ${file.name}`);
    });
  } finally {
    if (!isDatabase) {
      FS.chdir("/");
      FS.unmount(folder);
    }
  }
}

function asked(sessions, address) {
  const { pathname, search } = new URL(address, "file:///");
  ends.request = performance.now() + LONGEST_REQUEST_MS;
  const found = sessions.answer(pathname, search.slice(1));
  ends.request = Infinity;
  const [status, bytes] = found.toJs();
  found.destroy();
  return { status, body: bytes };
}

/** Return the message of a Python error, which may have several lines, or that of another one. */
function sentence(error) {
  const lines = error.message.trim().split("\n");
  const last = lines.findLastIndex((line) => /^\w[\w.]*(?:Error|Exception|Interrupt)\b/.test(line));
  return lines.slice(Math.max(last, 0)).join("\n").replace(/^[\w.]+: /, "");
}

function say(progress) {
  postMessage({ progress });
}
