// Start the page of this document, or show the reader why it cannot start.

import { start } from "./app.js";
import { el } from "./elements.js";

// more(app) is called with the page of every mechanism that is opened.
export function open(more = (_app) => {}) {
  const shown = (app) => {
    Object.assign(window, { kinetree: app }); // for the console, and for tests
    more(app);
  };
  start(document.getElementById("app"), document.getElementById("data").textContent, shown).catch((error) => {
    document
      .getElementById("app")
      .replaceChildren(
        el("p", {
          class: "message",
          text: `The page cannot start: ${error.message}. Use a current version of Chrome, Edge, Firefox or Safari.`,
        }),
      );
    throw error;
  });
}
