// Keeps the page's files, so that it works without a network; the files and their digest are filled in.

const VERSION = "{version}";
const FILES = [];

addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(VERSION)
      .then((cache) => cache.addAll(FILES))
      .then(() => skipWaiting()),
  );
});

addEventListener("activate", (event) => {
  const drop = (names) => Promise.all(names.filter((name) => name !== VERSION).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(drop));
});

addEventListener("fetch", (event) => {
  const kept = caches.match(event.request, { ignoreSearch: true });
  event.respondWith(kept.then((response) => response ?? fetch(event.request)));
});
