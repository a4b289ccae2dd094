// The entry point of the page of a server, or of a page written as one file.

import { byId } from "./elements.js";
import { Opener } from "./opener.js";
import { showPage } from "./page.js";
import { FileSource } from "./source_file.js";
import { ServerSource } from "./source_server.js";
import { initTheme } from "./theme.js";

initTheme(byId("theme"));

const data = document.getElementById("kiebitz-data");
const source = data === null ? new ServerSource() : await FileSource.from(data);
const page = showPage(source);
if (!source.isFile) new Opener(source, page);
