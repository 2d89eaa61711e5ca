// Documents: what a tab shows - mechanism, pose, settings of all modes, charts, view and time - kept in the storage of
// the browser, so that a reload, Back, a closed tab or a studio that was started again brings it back.
//
//   { id, title, at: [ms], name: of the mechanism, source, call, first, state, structures, history }
//
// The entry of the tab's history has the id. `source` is the address of a mechanism in the studio, `call` the action
// that makes it where it has none. `first` marks the mechanism with which the studio was started. `state` is a link
// with all fields of the store (link.js), `history` what undo and redo go back to (store.js).

import { stateOf } from "./link.js";
import { tomlText } from "./model_files.js";
import { server } from "./server.js";

const KEY = "kinetree-document:";
const DELAY = 300; // [ms] from a change until it is kept
const MOST = 20; // documents
const LARGEST = 2e6; // characters of one: browsers keep some five million of all
const LOST = "The browser cannot keep this document: save it (s) before you close or reload the page.";

/** @typedef {{ id: string, title: string, at: number, name: string, source: string, call: ?object, state: string,
 *   structures: ?object, history: string, first: boolean, page: string }} Document */

// The kept documents, the newest first.
/** @returns {Document[]} */
export function keptDocuments() {
  let keys = [];
  try {
    keys = Array.from({ length: localStorage.length }, (_, k) => localStorage.key(k));
  } catch {
    return []; // no storage: a page inside of another one, say
  }
  const kept = keys.filter((key) => key?.startsWith(KEY)).map(readDocument);
  return kept.filter((one) => one !== null).sort((a, b) => b.at - a.at);
}

// The document of an entry of the storage; null where another tab has removed it, or where it cannot be read.
/** @returns {?Document} */
function readDocument(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

/** @returns {?Document} */
export function findDocument(id) {
  return keptDocuments().find((one) => one.id === id) || null;
}

// The call that makes the mechanism of a document again, where the page of its address does not show it.
export const callFor = (kept, data) =>
  kept.call && !(kept.first && data.source === kept.source && data.model.name === kept.name) ? kept.call : null;

// The document that this page shows again: that of the entry of its history, or of its address (the studio's entrance).
export function documentOfPage() {
  const named = /[#&]document=([\w-]+)/.exec(location.hash)?.[1];
  const found = findDocument(named || history.state?.document);
  if (!found || found.page !== (server ? "" : location.pathname)) return null;
  return found;
}

/**
 * Keep what a page shows from now on. Returns { stop() }: keep it for the last time.
 * given.document: the id of a document that is shown again; given.structures: the same document with other bodies.
 * @param {import("./app.js").App} app
 * @param {{ document?: string, structures?: object }} [given]
 */
export function keepDocument(app, given = {}) {
  const { session, store, data } = app;
  const id = given.document || (given.structures && session.document) || newId();
  session.document = id;
  if (!mark(id, server && session.opened ? server.addressOf(data.source) : addressNow())) return { stop() {} };
  let [timer, last] = [0, ""];
  const keep = () => {
    clearTimeout(timer);
    timer = 0;
    const now = contentOf(app);
    const text = JSON.stringify(now);
    if (text === last) return;
    last = text;
    if (!write({ id, title: data.title, at: Date.now(), page: server ? "" : location.pathname, ...now }))
      app.say(LOST, { calm: true });
  };
  const later = () => (timer ||= setTimeout(keep, DELAY));
  const ended = new AbortController();
  store.on(["*"], (_, by) => by !== "player" && later());
  for (const name of ["click", "pointerup", "wheel", "keyup"])
    document.addEventListener(name, later, { signal: ended.signal, passive: true });
  window.addEventListener("pagehide", keep, { signal: ended.signal });
  document.addEventListener("visibilitychange", () => document.hidden && keep(), { signal: ended.signal });
  keep();
  const stop = () => {
    if (!ended.signal.aborted) keep(); // later the session is that of another one
    ended.abort();
  };
  return { stop };
}

const newId = () => Array.from(crypto.getRandomValues(new Uint32Array(2)), (x) => x.toString(36)).join("-");

// The address of this entry of the history, without the token of the studio and the id of a document.
function addressNow() {
  const here = server ? server.addressOf(new URLSearchParams(location.search).get("open")) : location.pathname;
  return here + (/[#&]document=/.test(location.hash) ? "" : location.hash);
}

// Write the id into the history: into its present entry, or into a new one if that is another document's.
function mark(id, address) {
  const isSame = !history.state?.document || id === history.state.document;
  try {
    history[isSame ? "replaceState" : "pushState"]({ document: id }, "", address);
    return true;
  } catch {
    return false; // a page inside of another one has no address of its own
  }
}

function contentOf(app) {
  const { data, session } = app;
  const structures = session.structures?.past.length || session.structures?.future.length ? session.structures : null;
  return {
    name: data.model.name,
    source: data.source || "",
    call: callOf(app),
    state: stateOf(app, { whole: true }),
    first: !session.opened,
    structures: structures && JSON.stringify(structures).length < LARGEST / 4 ? structures : null,
    history: app.store.historyText(LARGEST / 8),
  };
}

// How Python makes the mechanism again; null where its address does.
function callOf(app) {
  const { data, session } = app;
  if (!server || (data.source && !session.made)) return null;
  if (session.made && JSON.stringify(session.made).length < LARGEST / 2) return session.made;
  if (!data.kernel?.editable) return null;
  const content = btoa(String.fromCharCode(...new TextEncoder().encode(tomlText(app)))); // without its meshes
  return { action: "open_file", args: { uploads: [{ name: "mechanism.toml", content }], name: "mechanism.toml" } };
}

// Whether the document was kept; the oldest ones make room for it.
function write(made) {
  const text = JSON.stringify(made);
  if (text.length > LARGEST) return false;
  const others = keptDocuments().filter((one) => one.id !== made.id);
  try {
    for (const old of others.splice(MOST - 1)) localStorage.removeItem(KEY + old.id);
    for (;;) {
      try {
        localStorage.setItem(KEY + made.id, text);
        return true;
      } catch (error) {
        if (!others.length) throw error;
        localStorage.removeItem(KEY + others.pop().id);
      }
    }
  } catch {
    return false;
  }
}
