// The opened files, kept by the browser until others are opened, as far as it permits.

const NAME = "kiebitz";
const STORE = "files";

/** Keep these files instead of earlier ones; without a word if the browser does not permit it. */
export async function rememberFiles(files) {
  try {
    await inStore("readwrite", (store) => {
      store.clear();
      return store.put(files, 0);
    });
  } catch {
    // They are open until the page is left.
  }
}

/** Return the kept files. */
export async function recallFiles() {
  try {
    return (await inStore("readonly", (store) => store.get(0))) ?? [];
  } catch {
    return [];
  }
}

async function inStore(mode, act) {
  const opening = indexedDB.open(NAME, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await settled(opening);
  try {
    return await settled(act(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
