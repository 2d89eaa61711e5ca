// Another mechanism in the place of the present one, which Python makes. Its functions may take seconds: the page stays
// usable meanwhile, shows what it waits for, and can cancel it. Only one is made at a time.

import { el } from "./elements.js";
import { server } from "./server.js";

/**
 * Call an action that opens a mechanism, and show it: a Promise of { app, found }, or null if it was cancelled,
 * refused, or another mechanism was chosen meanwhile. what: a name for the reader; say(text): where refusals are shown;
 * given: options of app.open, or a function of the data that returns them.
 * @param {import("./app.js").App} app
 * @param {string} what
 * @param {string} action
 * @param {object} args
 * @param {{ say?: (text: string) => void, given?: object }} [options]
 */
export async function openMade(app, what, action, args, { say = app.say, given } = {}) {
  const { session } = app;
  const before = session.making;
  let end = () => {};
  const ended = new Promise((done) => {
    end = () => done(null);
  });
  const making = { stop: new AbortController(), ended, end };
  session.making = making;
  before?.stop.abort();
  await before?.ended;
  if (session.making !== making) {
    // a third choice came meanwhile
    making.end();
    return null;
  }
  const shown = waiting(app, `Opening ${what} ...`, () => making.stop.abort());
  say("");
  try {
    const found = await server.call(action, args, {
      signal: making.stop.signal,
      onProgress: (share) => shown.say(`Opening ${what}: computing its functions, ${Math.round(100 * share)} % ...`),
    });
    session.left = found.data; // what Python has opened
    if (session.making !== making) return null;
    return { app: await open(app, found.data, given), found };
  } catch (error) {
    if (session.making === making) {
      if (session.left)
        await open(app, session.left); // an earlier choice that could not be stopped
      else say(error.name === "AbortError" ? "" : error.message);
    }
    return null;
  } finally {
    shown.remove();
    if (session.making === making) session.making = null;
    making.end();
  }
}

// Whether a mechanism is being made.
export const isMaking = ({ session }) => Boolean(session.making);

function open(app, data, given) {
  app.session.left = null;
  return app.open(data, typeof given === "function" ? given(data) : given);
}

// A sentence with a button, over the stage and in an open dialog.
function waiting(app, text, cancel) {
  const lines = ["dialog", ".stagebox"].flatMap((selector) => {
    const host = document.querySelector(selector);
    if (!host) return [];
    const words = el("span", { text });
    const line = el(
      "p",
      { class: "waiting", role: "status" },
      words,
      el("button", { type: "button", text: "Cancel", title: "do not open it", onclick: cancel }),
    );
    if (selector === "dialog") host.querySelector("h2").after(line);
    else host.append(line);
    return [{ line, words }];
  });
  return {
    say: (next) =>
      lines.forEach(({ words }) => {
        words.textContent = next;
      }),
    remove: () => lines.forEach(({ line }) => line.remove()),
  };
}
