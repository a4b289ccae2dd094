// The entry point of the page of a server, or of a page written as one file.

import { byId } from "./elements.js";
import { showPage } from "./page.js";
import { FileSource } from "./source_file.js";
import { ServerSource } from "./source_server.js";
import { initTheme } from "./theme.js";

initTheme(byId("theme"));

const data = document.getElementById("kiebitz-data");
showPage(data === null ? new ServerSource() : await FileSource.from(data));
