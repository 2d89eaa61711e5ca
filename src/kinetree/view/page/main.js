// The entry of the page: start it, and tell the reader what is wrong where it cannot start.

import { start } from "./app.js";
import { el } from "./elements.js";

start(document.getElementById("app"), document.getElementById("data").textContent, (app) => { window.kinetree = app; }).catch(
  (error) => {
    document.getElementById("app").replaceChildren(el("p", { class: "message", text: `The page cannot start: ${error.message}. Use a current version of Chrome, Edge, Firefox or Safari.` }));
    throw error;
  },
);
