// A report: the recorded run on a stage with its player, and charts and instants tied to its time.

import { unpacked } from "../js/data.js";
import { el } from "../js/elements.js";
import { Keys } from "../js/keys.js";
import { Motion } from "../js/motion.js";
import { Player } from "../js/player.js";
import { buildToggles, firstShown, sceneOf } from "../js/shown.js";
import { Stage } from "../js/stage.js";
import { Store } from "../js/store.js";

async function start(host, text) {
  const data = await unpacked(JSON.parse(text));
  const motion = Motion.recorded(data.model, data.run);
  const store = new Store();
  const fields = {
    time: motion.start,
    playing: false,
    speed: data.speed,
    motion,
    picked: -1,
    hidden: new Set(),
    show: firstShown(data),
    units: "rad",
  };
  for (const [name, value] of Object.entries(fields)) store.define(name, value);
  const box = el(
    "div",
    {
      class: "stage",
      tabindex: "0",
      role: "application",
      "aria-label": "The mechanism in three dimensions. Drag to rotate the view.",
    },
    el("canvas", { class: "solid" }),
    el("canvas", { id: "paper" }),
    el("canvas", { class: "overlay" }),
  );
  const bar = el("div", { class: "player", role: "group", "aria-label": "player" });
  host.append(box, bar);
  const stage = new Stage(box, data.scene, data.model, { embedded: true });
  const player = new Player(bar, store, {
    toggles: buildToggles({ data, store }, { names: ["trails", "names", "axes", "follow"] }),
  });
  stage.compose = sceneOf(
    { data, store },
    () => motion.matrices(store.get("time")),
    (_, k) => motion.matrices(motion.t[k]),
  );
  store.on(["time", "show"], () => stage.refresh());
  const keys = new Keys((event) => host.contains(event.target));
  keys.add(" ", "play or pause", () => player.play(!player.playing));
  keys.add("ArrowLeft", "back by a hundredth", () => player.step(-1));
  keys.add("ArrowRight", "forward by a hundredth", () => player.step(1));
  connectCharts(store, player, motion);
  connectPrint(stage, box.querySelector("#paper"));
  const wanted = /[#&]t=(-?[0-9.]+)/.exec(location.hash);
  player.seek(wanted ? Number(wanted[1]) : data.at);
  store.notify(["time"], "start"); // also where the first instant is the start
  stage.draw();
  document.body.dataset.ready = stage.isPlain ? "plain" : "webgl";
}

function connectCharts(store, player, motion) {
  const seek = (t) => {
    player.play(false);
    player.seek(t);
  };
  const charts = [.../** @type {NodeListOf<SVGSVGElement>} */ (document.querySelectorAll("svg.timed"))].map((svg) => {
    const [t0, t1, x0, x1] = ["t0", "t1", "x0", "x1"].map((name) => Number(svg.dataset[name]));
    return { svg, t0, t1, x0, x1, cursor: svg.querySelector(".cursor") };
  });
  for (const { svg, t0, t1, x0, x1 } of charts) {
    let held = false;
    const choose = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      seek(t0 + ((x - x0) / (x1 - x0)) * (t1 - t0));
    };
    svg.addEventListener("pointerdown", (event) => {
      held = true;
      choose(event);
    });
    svg.addEventListener("pointermove", (event) => held && choose(event));
    for (const end of ["pointerup", "pointerleave"])
      svg.addEventListener(end, () => {
        held = false;
      });
  }
  const instants = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-t]"))];
  for (const button of instants) {
    button.addEventListener("click", () => seek(Number(button.dataset.t)));
    button.title = "show the motion at this instant";
  }
  const near = motion.count > 1 ? 0.51 * (motion.t[1] - motion.t[0]) : 0;
  store.on(["time"], () => {
    const now = store.get("time");
    for (const { cursor, t0, t1, x0, x1 } of charts) {
      const x = String(x0 + ((now - t0) / (t1 - t0 || 1)) * (x1 - x0));
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    for (const button of instants) button.classList.toggle("now", Math.abs(Number(button.dataset.t) - now) <= near);
  });
}

// Browsers print no pictures of a graphics processor: the motion is painted on a plain canvas for paper.
function connectPrint(stage, paper) {
  window.addEventListener("beforeprint", () => {
    paper.width = 0; // empty: the size follows in draw
    stage.paper = paper;
    stage.draw();
  });
  window.addEventListener("afterprint", () => {
    stage.paper = null;
  });
}

start(document.getElementById("motion"), document.getElementById("data").textContent);
