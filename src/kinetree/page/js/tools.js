// The keys of the page, and the buttons at its top.

import { chooser, listenForDrops } from "./chooser.js";
import { help, saving } from "./dialogs.js";
import { el } from "./elements.js";
import { server } from "./server.js";
import { SHOWN } from "./shown.js";

const THEMES = ["light", "dark", "projector"];

export function buildTools(app, layout) {
  const { keys, player, store } = app;
  keys.add(" ", "play or pause", () => playOrFall(app));
  keys.add("ArrowLeft", "back by a hundredth", () => player.step(-1));
  keys.add("ArrowRight", "forward by a hundredth", () => player.step(1));
  keys.add(",", "one step back", () => player.single(-1));
  keys.add(".", "one step forward", () => player.single(1));
  keys.add("Home", "to the start", () => player.seek(player.start));
  keys.add("End", "to the end", () => player.seek(player.end));
  keys.add("[", "slower", () => player.faster(-1));
  keys.add("]", "faster", () => player.faster(1));
  keys.add("Ctrl+z", "undo", () => store.undo());
  keys.add("Ctrl+y", "redo", () => store.redo());
  for (const [name, text, key] of SHOWN)
    keys.add(key, `show ${text}`, () =>
      store.set({ show: { ...store.get("show"), [name]: !store.get("show")[name] } }),
    );
  for (const [name, key] of [
    ["front", "1"],
    ["top", "2"],
    ["side", "3"],
    ["fit", "4"],
  ])
    keys.add(key, `view: ${name}`, () => look(app, name));
  keys.add("Escape", "pick nothing", () => store.set({ picked: -1 }));
  for (const panel of app.panels) keys.add(panel.key, `mode ${panel.name}`, () => store.set({ mode: panel.name }));
  keys.add("u", "degrees or radians", () => flipUnits(store));
  keys.add("d", "next theme", () => nextTheme(store));
  keys.add("?", "this list", () => help(app));
  const button = (text, title, action) =>
    el("button", { type: "button", class: "quiet", text, title, onclick: action });
  const units = button("deg", "degrees or radians (u)", () => flipUnits(store));
  store.on(["units"], () => {
    units.textContent = store.get("units");
  });
  if (server) {
    listenForDrops(app, keys.ended.signal);
    keys.add("Ctrl+o", "open another mechanism, or a lesson", () => chooser(app));
    layout.tools.append(
      button("open", "open a mechanism of the library, the folder or this computer, or a lesson (Ctrl+o)", () =>
        chooser(app),
      ),
    );
  }
  layout.tools.append(
    button("undo", "undo (Ctrl+z)", () => store.undo()),
    button("redo", "redo (Ctrl+y)", () => store.redo()),
    button("save", "save the picture, the page, or a link to this state (s)", () => saving(app)),
    units,
    button("theme", "light, dark or projector (d)", () => nextTheme(store)),
    button("?", "keys (?)", () => help(app)),
  );
  keys.add("s", "save and share", () => saving(app));
}

// Where the mode has no motion, the mechanism falls.
function playOrFall({ player, store, panels, say }) {
  if (!player.ready && panels.some((panel) => panel.name === "Simulate")) {
    store.set({ mode: "Simulate" });
    say("Free fall, in the mode Simulate: the mode before has nothing to play.", { calm: true });
  }
  player.play(!player.playing);
}

function flipUnits(store) {
  store.set({ units: store.get("units") === "deg" ? "rad" : "deg" });
}

function nextTheme(store) {
  store.set({ theme: THEMES[(THEMES.indexOf(store.get("theme")) + 1) % THEMES.length] });
}

export function look({ stage }, name) {
  if (name === "fit") stage.fit();
  else stage.view.look(name);
}

export function setTheme({ store, stage, plots }) {
  document.documentElement.dataset.theme = store.get("theme");
  stage.readTheme();
  plots.refresh();
}
