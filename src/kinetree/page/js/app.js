// The page: header with modes, left panel, stage, inspector, player and plots, joined by the store.

import { hasReactions } from "./arrows.js";
import { connectBeams } from "./beams.js";
import { unpacked } from "./data.js";
import { el } from "./elements.js";
import { bindDrawing } from "./drawn_lengths.js";
import { connectCurves } from "./curve_picker.js";
import { listenForBack, openDocument } from "./chooser.js";
import { callFor, documentOfPage, keepDocument } from "./documents.js";
import { connectTable } from "./editing.js";
import { buildInspector } from "./inspector.js";
import { openKernel } from "./kernel.js";
import { Keys } from "./keys.js";
import { readLink } from "./link.js";
import { showFirstScene } from "./first_scene.js";
import { followParameters } from "./live_placements.js";
import { fileName } from "./names.js";
import { PANELS } from "./panels/index.js";
import { Player } from "./player.js";
import { Plots } from "./plots.js";
import { server } from "./server.js";
import { buildToggles, firstShown, sceneOf } from "./shown.js";
import { Stage } from "./stage.js";
import { Store } from "./store.js";
import { connectStructures } from "./structure_history.js";
import { buildTools, look, setTheme } from "./tools.js";
import { offerTour } from "./tour.js";
import { fromRows } from "./vectors.js";

/**
 * What panels and tools share, as panels/index.js describes it. `data` and `model` are those of page/data.py.
 * @typedef {{ data: any, model: any, kernel: import("./kernel.js").Kernel, store: Store, session: any, stage?: Stage,
 *   player?: Player, plots?: Plots, keys?: Keys, table?: any, plan?: any,
 *   say?: (text: string, options?: { calm?: boolean }) => void,
 *   [more: string]: any }} App
 */

const PATIENCE = 1500; // [ms] to compute the motion up to the instant at which it is shown again
const OFF = 1e-6; // of a coordinate: it is not that of the motion at its time
// names of modes in links and files that were made before modes were named by their tasks
const MODES_BEFORE = {
  Model: "Build",
  Kinematics: "Move",
  Inverse: "Torques",
  Forward: "Simulate",
  Recursion: "Understand",
};
const KEPT = ["units", "theme"]; // fields of the store that stay when another mechanism is opened

// Start the page in an element. shown(app) is called with the page of the first mechanism, and of every one that
// follows.
// The document of the tab's history comes before the link of its address, which is older.
export async function start(host, text, shown) {
  const data = await unpacked(JSON.parse(text));
  const session = {};
  const kept = documentOfPage();
  const link = location.hash || document.getElementById("data").dataset.state || "";
  listenForBack?.(session);
  if (!kept) return build(host, data, { hash: link, shown, session });
  const given = { document: kept.id, structures: kept.structures, history: kept.history };
  const call = callFor(kept, data);
  session.structures = call ? undefined : given.structures;
  const app = await build(host, data, { hash: call ? link : kept.state, shown, session, given });
  return call ? openDocument(app, kept) : app;
}

// hash: the link whose state it begins with; mode, state: those to begin with otherwise. The mechanism before stays
// until the functions of this one are compiled.
async function build(host, data, { hash = "", mode = "", state = {}, shown, session, given = {} }) {
  const { model } = data;
  const kernel = await openKernel(data.kernel, model, data.first.parameters, data.scene.size);
  const store = new Store();
  /** @type {App} */
  const app = { data, model, kernel, store, server, session, hash };
  session.close?.();
  session.close = () => close(app, host);
  app.open = (next, given = {}) => {
    const kept = Object.fromEntries(KEPT.map((name) => [name, store.get(name)]));
    session.keeper?.stop(); // before the session is that of the next one
    const { structures, made } = given;
    Object.assign(session, { structures, made, linked: Boolean(next.source), opened: true });
    return build(host, next, {
      given,
      hash: given.hash,
      mode: given.mode ?? store.get("mode"),
      state: { ...kept, ...given.state },
      shown,
      session,
    });
  };
  defineState(app);
  const layout = buildLayout(host, app);
  app.stage = new Stage(layout.stage, data.scene, model);
  app.player = new Player(layout.player, store, {
    toggles: buildToggles(app, {
      live: kernel?.has("time_step")
        ? ["drives", ...(hasReactions(app) ? ["reactions"] : []), ...(kernel.isCarried ? ["contacts"] : [])]
        : [],
    }),
  });
  app.plots = new Plots(layout.plots, store, { seek: (t) => app.player.seek(t), name: fileName(model.name) });
  app.keys = new Keys();
  app.say = (message, { calm = false } = {}) => {
    layout.message.classList.toggle("calm", calm);
    store.set({ message });
  };
  app.matrices = (q, numbers) => {
    // numbers: those of kernel.snapshot(), by default the present ones
    const rows = numbers ? kernel.with(numbers, () => kernel.poses(q).slice()) : kernel.poses(q);
    return model.bodies.map((_, i) => fromRows(rows, 16 * i));
  };
  app.shownPosition = (q) => q; // with larger deflections, where beams are exaggerated
  app.matricesNow = () => {
    const motion = store.get("motion");
    if (motion?.poses) return motion.matrices(store.get("time"));
    return kernel
      ? app.matrices(app.shownPosition(store.get("q")))
      : model.bodies.map((_, i) => fromRows(data.first.poses, 16 * i));
  };
  app.moveTo = (q, options) => moveTo(app, q, options);
  const first = new Set(store.fields.keys());
  // fields of panels
  app.readLink = () => Object.fromEntries(Object.entries(readLink(store, hash)).filter(([name]) => !first.has(name)));
  connect(app, layout);
  connectBeams?.(app, layout); // a page without beams leaves it out
  connectTable?.(app); // a page without a table leaves it out
  connectStructures?.(app); // and a page without Python this
  connectCurves(app);
  buildModes(app, layout);
  buildInspector(layout.inspector, app);
  buildTools(app, layout);
  openState(app, mode, state);
  const { history: past } = /** @type {{ history?: string }} */ (given);
  if (past) store.readHistory(past);
  app.stage.draw();
  document.title = data.title;
  document.body.dataset.ready = app.stage.isPlain ? "plain" : "webgl";
  document.body.dataset.readyAfter = String(Math.round(performance.now()));
  session.app = app;
  session.keeper = keepDocument(app, given);
  if (!("document" in given) && !session.opened) showFirstScene?.(app); // a page without Python leaves it out
  offerTour(app, layout.stage.parentElement);
  shown(app);
  return app;
}

// Remove a page, so that another one takes its place: nothing of it runs any more.
function close(app, host) {
  app.session.keeper?.stop();
  app.part?.leave?.();
  app.player.play(false);
  app.keys.stop();
  app.stage.close();
  document.querySelector("dialog")?.close();
  host.replaceChildren();
  host.classList.remove("taught"); // by a lesson
}

function defineState({ data, store }) {
  const { first, run } = data;
  store.define("mode", "", { link: true });
  store.define("q", Float64Array.from(first.q), { undo: true, link: true });
  store.define("qd", Float64Array.from(first.qd), { undo: true, link: true });
  store.define("parameters", Float64Array.from(first.parameters), { undo: true, link: first.parameters.length > 0 });
  store.define("time", run ? run.t[0] : 0);
  store.define("playing", false);
  store.define("speed", 1);
  store.define("motion", null);
  store.define("ghost", null);
  store.define("picked", -1, { link: true });
  store.define("hidden", new Set(), {
    undo: true,
    link: { write: (x) => [...x].join("."), read: (t) => new Set(t.split(".").filter(Boolean).map(Number)) },
  });
  store.define("show", firstShown(data), { link: true });
  store.define("units", "deg", { link: true });
  store.define("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  store.define("message", "");
  store.define("history", 0);
}

function buildLayout(host, { data, store }) {
  const parts = {
    modes: el("nav", { class: "modes", "aria-label": "modes" }),
    tools: el("div", { class: "tools" }),
    left: el("aside", { class: "left", "aria-label": "panel", tabindex: "-1" }),
    stage: el(
      "div",
      {
        class: "stage",
        tabindex: "0",
        role: "application",
        "aria-label": "The mechanism in three dimensions. Drag to rotate the view, use the wheel to zoom.",
      },
      el("canvas", { class: "solid" }),
      el("canvas", { class: "overlay" }),
    ),
    views: el("div", { class: "views" }),
    message: el("p", { class: "message", role: "status" }),
    player: el("div", { class: "player", role: "group", "aria-label": "player" }),
    plots: el("section", { class: "plots", "aria-label": "plots", hidden: true }),
    inspector: el("aside", { class: "inspector", "aria-label": "inspector" }),
  };
  const tabs = el(
    "nav",
    { class: "phone", "aria-label": "parts of the page" },
    ["panel", "plots", "inspector"].map((name) =>
      el("button", {
        type: "button",
        text: name,
        "aria-pressed": String(name === "panel"),
        onclick: (event) => {
          host.dataset.part = name;
          for (const button of event.target.parentElement.children)
            button.setAttribute("aria-pressed", String(button === event.target));
        },
      }),
    ),
  );
  host.dataset.part = "panel";
  host.append(
    el(
      "header",
      {},
      el("span", { class: "brand", text: "Kinetree" }),
      el("h1", { text: data.title }),
      parts.modes,
      parts.tools,
    ),
    parts.left,
    el(
      "main",
      {},
      el("div", { class: "stagebox" }, parts.stage, parts.views, parts.message, sideToggles(host)),
      parts.player,
      parts.plots,
    ),
    parts.inspector,
    tabs,
  );
  store.on(["message"], () => {
    parts.message.textContent = store.get("message");
  });
  return parts;
}

// Buttons at the edges of the stage that hide the panel at the left, and the inspector at the right.
const sideToggles = (host) =>
  ["panel", "inspector"].map((name) => {
    const side = el("button", {
      type: "button",
      class: `side hide-${name}`,
      title: `hide or show the ${name}`,
      "aria-label": `hide the ${name}`,
      "aria-pressed": "false",
      onclick: () => side.setAttribute("aria-pressed", String(host.classList.toggle(`no-${name}`))),
    });
    return side;
  });

// Join state and picture: time sets the state of the motion, every change of either redraws.
function connect(app, layout) {
  const { store, stage, kernel, model } = app;
  const sampled = (motion, index) => {
    if (motion.poses) return motion.matrices(motion.t[index]);
    return app.matrices(motion.q.subarray(index * model.nq, (index + 1) * model.nq));
  };
  stage.compose = sceneOf(app, app.matricesNow, sampled, (time) => {
    const ghost = store.get("ghost");
    return {
      ghost: ghost && kernel ? app.matrices(ghost.state(time).q, ghost.numbers) : null,
      layers: [app.part?.layer?.(), app.beamLayer?.()].filter(Boolean),
      ...(app.isExaggerated?.() ? { trails: [] } : {}), // they are those of the true motion
    };
  });
  stage.view.clicks.push((grab) => {
    const hit = grab.hit();
    store.set({ picked: hit ? hit.body : -1 });
  });
  store.on(["parameters"], () => {
    if (kernel) kernel.parameters.set(store.get("parameters"));
  }); // the first entries; numbers of the table follow
  app.followDrawing = bindDrawing(app.data.scene, model);
  followParameters(app);
  store.on(["ghost"], () => {
    const ghost = store.get("ghost");
    if (!ghost || !kernel || ghost.numbers) return;
    ghost.settle?.();
    ghost.numbers = kernel.snapshot(); // it keeps the numbers with which it was computed
  });
  store.on(["time", "motion"], (_, by) => {
    const motion = store.get("motion");
    if (by !== "offered" && motion?.count) store.set(motion.state(store.get("time")), { by: "player" });
  }); // a motion that is offered can be played: the pose, which all modes share, stays until then
  store.on(
    [
      "q",
      "qd",
      "time",
      "motion",
      "ghost",
      "parameters",
      "show",
      "hidden",
      "picked",
      "units",
      "mode",
      "history",
      "playing",
    ],
    () => stage.refresh(),
  );
  store.on(["theme"], () => setTheme(app));
  layout.views.append(
    ...[
      ["front", "1"],
      ["top", "2"],
      ["side", "3"],
      ["fit", "4"],
    ].map(([name, key]) =>
      el("button", {
        type: "button",
        text: name,
        title: `${name === "fit" ? "fit the mechanism into the picture" : `look from the ${name}`} (${key})`,
        onclick: () => look(app, name),
      }),
    ),
  );
  if (stage.isPlain) app.say("WebGL is not available here: drawn without a graphics processor.");
}

function moveTo(app, q, { held = [], undo = "move joints" } = {}) {
  const { store, kernel, player } = app;
  player.play(false);
  const made = kernel.close(q, { held });
  if (!made.closed) {
    app.say("The loops do not close here: this position cannot be reached.");
    store.notify(["q"], "refused");
    return false;
  }
  if (store.get("message").startsWith("The loops")) app.say("");
  store.set({ q: made.q }, { undo });
  return true;
}

function buildModes(app, layout) {
  const { kernel, store } = app;
  const offered = PANELS.filter(
    (panel) => (panel.needs.length === 0 || kernel?.has(...panel.needs)) && (panel.suits?.(app) ?? true),
  );
  app.panels = offered;
  const built = new Map();
  const buttons = PANELS.flatMap((panel) => {
    const button = (title, attributes) => el("button", { type: "button", text: panel.name, title, ...attributes });
    if (offered.includes(panel))
      return button(`${panel.title} (${panel.key})`, { onclick: () => store.set({ mode: panel.name }) });
    const reason = kernel && panel.reason?.(app);
    if (!reason) return [];
    const explain = () => app.say(reason, { calm: true });
    app.keys.add(panel.key, `why there is no mode ${panel.name} here`, explain);
    return button(reason, { "aria-disabled": "true", onclick: explain });
  });
  layout.modes.append(...buttons);
  function choose() {
    const panel = offered.find((p) => p.name === store.get("mode"));
    if (!panel) return;
    app.part?.leave?.();
    app.say("");
    if (!built.has(panel)) {
      const host = el("div", { class: "panel" });
      built.set(panel, { host, part: panel.build(host, app) || {} });
    }
    const { host, part } = built.get(panel);
    layout.left.replaceChildren(host);
    layout.left.scrollTop = 0;
    app.part = part;
    part.enter?.();
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === panel.name));
    app.stage.refresh();
  }
  app.choose = choose;
  store.on(["mode"], choose);
}

// The first state: that of the link, or the given one, else the first panel, playing where there is a run.
function openState(app, before, state) {
  const { store, data, player, stage, hash } = app;
  const known = app.panels.map((p) => p.name);
  const { mode: linked, ...given } = readLink(store, hash);
  const usual = (app.panels.find((p) => !p.later) || app.panels[0])?.name;
  const mode = [MODES_BEFORE[linked] || linked, before].find((name) => known.includes(name)) || usual;
  store.set({ ...state, ...given });
  setTheme(app);
  const charts = /[#&]plots=([^&]*)/.exec(hash);
  if (charts) app.plots.chosen = charts[1].split(",").map(decodeURIComponent);
  store.set({ mode });
  const view = /[#&]view=([-0-9.,e]+)/.exec(hash);
  if (view) {
    const [azimuth, elevation, distance, x, y, z, moved = 1] = view[1].split(",").map(Number);
    const target = [x, y, z];
    if ([azimuth, elevation, distance, ...target].every(Number.isFinite))
      stage.view.set({ azimuth, elevation, distance, target, isMoved: moved !== 0 });
  }
  const at = /[#&]t=(-?[0-9.e-]+)/.exec(hash);
  if (at) {
    store.get("motion")?.extend?.(Number(at[1]), { patience: PATIENCE });
    const motion = store.get("motion");
    const time = Math.min(player.end, Math.max(player.start, Number(at[1])));
    const there = motion?.count && !motion.poses ? motion.state(time).q : null;
    const { q } = /** @type {{ q?: Float64Array }} */ (given);
    const isOff = there && q && there.some((x, k) => Math.abs(x - q[k]) > OFF * Math.max(1, Math.abs(x)));
    if (isOff)
      store.set({ time }, { by: "offered" }); // the pose was changed after the motion stopped
    else player.seek(time);
  } else if (data.run && !matchMedia("(prefers-reduced-motion: reduce)").matches) player.play(true);
}
