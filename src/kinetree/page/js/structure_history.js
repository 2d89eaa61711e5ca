// Undo and redo beyond the changes of one mechanism, in the studio: back to the one with another structure.

import { isMaking, openMade } from "./replacing.js";
import { buildArguments } from "./structure.js";
import { reshaped } from "./structure_parts.js";

// Defines app.restructure(call, { to, picked, say }): open what an action of Python makes. The lists of mechanisms
// before and after the present one, as calls that make them again, stay in the session until another mechanism is
// opened.
export function connectStructures(app) {
  const { store, data, session } = app;
  session.structures ||= { past: [], future: [] };
  const { past, future } = session.structures;

  // How this mechanism is opened again; null if it cannot be.
  function present() {
    if (data.table?.serial) return { action: "build", args: buildArguments(app, store.get("table")) };
    const isOwn = session.made || app.table?.isEdited() || !data.source; // no address opens it as it is
    if (isOwn && data.kernel?.editable) return reshaped(app);
    if (session.made) return session.made;
    const [where, ...name] = (data.source || "").split("/");
    const action = { library: "open_library", folder: "open_file" }[where];
    return action ? { action, args: { name: name.join("/") } } : null;
  }
  /**
   * @param {{ action: string, args: object }} call
   * @param {{ from?: object[], to?: object[], picked?: number, say?: (text: string) => void }} [options]
   */
  app.restructure = async (call, { from, to = past, picked = -1, say = app.say } = {}) => {
    if (isMaking(app)) return; // a second click changes nothing: the table is still the one before
    const before = present();
    const { structures } = session;
    const goBack = workplace();
    const options = (data) => ({
      mode: "Build",
      state: { picked: Math.min(picked, data.model.bodies.length - 1) },
      structures,
      made: call,
    });
    const made = await openMade(app, "the changed mechanism", call.action, call.args, { say, given: options });
    if (!made) return;
    goBack();
    if (from) from.pop();
    else future.length = 0;
    if (before) to.push(before);
  };
  const travel = (from, to) => {
    if (from.length) app.restructure(from[from.length - 1], { from, to });
  };
  store.beyond = { undo: () => travel(past, future), redo: () => travel(future, past) };
}

// Where the reader works in the panel, as a function that goes there again: the forms that are open stay open, and at
// the same height.
function workplace() {
  const forms = () => [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll(".left .fold"))];
  const top = () => forms()[0]?.getBoundingClientRect().top ?? 0;
  const panel = () => document.querySelector(".left");
  const isScrolled = panel().scrollTop + scrollY > 0; // the page of a phone, otherwise the panel
  const [open, before] = [forms().map((form) => form.open), top()];
  return () => {
    forms().forEach((form, k) => {
      form.open = Boolean(open[k]);
    });
    if (!isScrolled) return;
    panel().scrollTop += top() - before;
    scrollBy(0, top() - before);
  };
}
