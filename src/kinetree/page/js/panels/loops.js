// Closed loops: where they are cut, what the doctor finds, freedoms as motion, assembly modes, and a turn of a driving
// joint with the curve of a point, the torque of the drive and the forces in all bearings.

import { assemblyModes } from "../assembly_modes.js";
import { el, section, valueTable } from "../elements.js";
import { inSlices, oncePerFrame } from "../frames.js";
import { buildDrive } from "../loop_drive.js";
import { findings, loopGap, surroundings } from "../loop_findings.js";
import { Freedom, cutMarks, jointMarks } from "../loop_marks.js";
import { leadsOf } from "../loop_range.js";
import { movingFrames, solvePose } from "../inverse_kinematics.js";
import { pictureButtons } from "../mode_pictures.js";
import { isMaking, openMade } from "../replacing.js";
import { server } from "../server.js";
import { sharedUnit, short } from "../units.js";
import { onPlane } from "../view.js";
import { within } from "../vectors.js";

const PAUSE = 120; // [ms] between two diagnoses while the player runs

export const panel = {
  name: "Loops",
  key: "l",
  title: "see where loops are cut, what is free and what holds, and drive a closed mechanism through a turn",
  needs: ["poses", "integrate", "closure_residual", "closure_jacobian"],
  suits: (app) => app.model.loops.length > 0,

  build(host, app) {
    const { model, store } = app;
    let known = { q: null, found: [], leads: [], usual: null };
    const here = () => store.get("mode") === panel.name;
    let freedom = null;
    let looked = 0;

    const cuts = el("div", { class: "cuts" });
    const doctor = el("ul", { class: "findings" });
    const free = el("div", { class: "buttons" });
    const modes = buildModes(app, () => known.leads);
    const drive = buildDrive(app, {
      leads: () => known.leads,
      changed: () => {
        forget();
        refresh();
      },
    });

    // What is usual around a position changes with the lengths and the branch, not with every small motion.
    function forget() {
      known.usual = null;
      freedom = null;
      modes.clear();
    }
    function look() {
      const q = store.get("q");
      if (known.q === q && known.usual) return;
      known.usual ||= surroundings(app, q);
      const leads = leadsOf(app, q, [drive.drive()]);
      known = { ...known, q, leads, found: findings(app, q, { drive: drive.drive(), leads, usual: known.usual }) };
    }
    const refresh = oncePerFrame((now) => {
      if (!here()) return;
      if (app.player.playing && now - looked < PAUSE) return;
      looked = now;
      look();
      const q = store.get("q");
      replaced(
        doctor,
        known.found.map((x) =>
          el("li", { class: x.level }, el("strong", { text: x.title }), el("span", { text: x.text })),
        ),
      );
      replaced(cuts, [
        valueTable(
          model.loops.map((x, k) => {
            const gap = loopGap(app, q, k);
            return [
              `${x.name}: ${x.kind}, ${nameOf(x.a)} and ${nameOf(x.b)}; gap`,
              short(gap),
              sharedUnit(model.equations.filter((e) => e.name === x.name).map((e) => e.unit)),
              gap,
            ];
          }),
        ),
      ]);
      replaced(
        free,
        known.leads.length
          ? known.leads.map((k, number) =>
              el("button", {
                type: "button",
                class: "toggle",
                text: model.velocities[k].label,
                title: `show the freedom of ${model.velocities[k].label} as a motion to and fro`,
                "aria-label": `freedom of ${model.velocities[k].label}`,
                "aria-pressed": String(freedom?.number === number),
                onclick: () => show(number),
              }),
            )
          : [el("p", { class: "hint", text: "None: the loops lock all joints." })],
      );
      drive.refresh();
      app.stage.refresh();
    });
    function show(number) {
      freedom = freedom?.number === number ? null : new Freedom(app, store.get("q"), known.leads, number);
      refresh();
    }
    host.append(
      section("Doctor", doctor),
      section("Freedoms", free),
      ...drive.sections,
      section("Assembly modes", modes.elements),
      ...solvingOrder(model.subsystems),
      section(
        "Cuts",
        cuts,
        server ? otherCuts(app) : [],
        el("p", {
          class: "hint",
          text:
            "The loops are cut at the marks, and equations hold the ends together. Drag a body: the loops " +
            "stay closed.",
        }),
      ),
    );
    const nameOf = (body) => (body < 0 ? "ground" : model.bodies[body].name);

    app.stage.view.grabbers.push((grab) => (here() ? bodyDrag(app, grab) : null));
    store.on(["q", "parameters", "units"], (_, by) => {
      if (!here()) return;
      if (by !== "player") {
        freedom = null;
        drive.moved();
      }
      refresh();
    });
    store.on(["hidden", "theme"], refresh);
    return {
      enter() {
        forget();
        refresh();
        drive.enter();
      },
      leave() {
        modes.giveUp();
        freedom = null;
        drive.leave();
      },
      charts: () => drive.charts(),
      python: () => drive.python(),
      layer() {
        const matrices = app.matricesNow();
        const marked = new Map(
          known.found.flatMap((x) => (x.level === "note" ? [] : x.loops.map((k) => [k, x.level]))),
        );
        const { lines, labels, marks } = cutMarks(app, matrices, marked);
        for (const x of known.found)
          if (x.level !== "note") lines.push(...jointMarks(app, matrices, x.velocities, x.level));
        const more = drive.layer(matrices);
        if (freedom && !freedom.still) app.stage.refresh(); // the next picture of the motion to and fro
        return {
          ...more,
          lines: [...lines, ...more.lines],
          labels: [...labels, ...more.labels],
          marks: [...marks, ...more.marks],
          items: freedom ? freedom.items(performance.now()) : [],
        };
      },
    };
  },
};

// Positions that close while the leading joints stay, searched in slices so that the page goes on.
function buildModes(app, leads) {
  const pictures = el("div", { class: "pictures" });
  let giveUp = () => {};
  const find = () => {
    giveUp();
    pictures.replaceChildren(el("p", { class: "hint", role: "status", text: "Searching ..." }));
    giveUp = inSlices(assemblyModes(app, app.store.get("q"), leads()), {
      done: (found) =>
        pictures.replaceChildren(
          el("p", {
            class: "hint",
            role: "status",
            text: found.length === 1 ? "One mode: this one." : `${found.length} modes`,
          }),
          ...pictureButtons(app, found, {
            label: (k) => `mode ${k + 1}`,
            choose: (q, k) => app.moveTo(q, { undo: `assembly mode ${k + 1}` }),
          }),
        ),
    });
  };
  const button = el("button", {
    type: "button",
    text: "Find modes",
    title: "close the loops from many random starts",
    onclick: find,
  });
  return {
    elements: [
      el("p", { class: "hint", text: "Positions that close while the leading joints stay." }),
      el("div", { class: "buttons" }, button),
      pictures,
    ],
    clear: () => pictures.replaceChildren(),
    giveUp: () => giveUp(),
  };
}

// Another joint of the same ring is cut instead: a new tree of joints, which Python makes.
function otherCuts(app) {
  const { model, store } = app;
  const chain = (body) => (body < 0 ? [] : [...chain(model.bodies[body].parent), body]);
  const cutAt = (loop, joint) =>
    isMaking(app) ||
    openMade(
      app,
      "the mechanism with another cut",
      "cut",
      { loop, joint, q: Array.from(store.get("q")), parameters: Array.from(store.get("parameters")) },
      { given: { mode: panel.name } },
    );
  return model.loops.map((x) => {
    const [up, down] = [chain(x.a), chain(x.b)];
    const ring = [...up.filter((i) => !down.includes(i)), ...down.filter((i) => !up.includes(i))];
    const pick = el(
      "select",
      { "aria-label": `joint to cut instead of ${x.name}`, title: "a joint of the same ring" },
      ring.map((i) => el("option", { value: model.joints[i].name, text: model.joints[i].name })),
    );
    const go = el("button", {
      type: "button",
      text: "Cut",
      title: `cut this joint instead of ${x.name}`,
      onclick: () => cutAt(x.name, pick.value),
    });
    return el("div", { class: "control plain" }, el("span", { class: "name", text: `instead of ${x.name}` }), pick, go);
  });
}

// A drag on a body moves its point along with the pointer, as far as the loops allow.
function bodyDrag(app, grab) {
  const hit = grab.hit();
  if (!hit || hit.body < 0) return null;
  /** @param {number[]} place */
  const at = ([x, y, z]) => [1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, z, 0, 0, 0, 1];
  const own = movingFrames(app.model).find((f) => f.body === hit.body);
  const frame = { ...own, name: "", body: hit.body, pose: at(within(app.matricesNow()[hit.body], hit.point)) };
  return {
    move(now) {
      const goal = Float64Array.from(at(onPlane(now, hit.point)));
      app.moveTo(solvePose(app, frame, goal, { weights: [0, 0, 0, 1, 1, 1] }).q, { undo: "drag a body" });
    },
  };
}

// Put children into an element only where they differ: what is being clicked stays.
function replaced(host, children) {
  const same =
    host.children.length === children.length &&
    children.every((child, k) => child.outerHTML === host.children[k].outerHTML);
  if (!same) host.replaceChildren(...children);
}

// The order in which the trees that remain after the cuts are solved; known to pages that Python has written.
function solvingOrder(subsystems) {
  if (!subsystems) return [];
  const { drives, steps } = subsystems;
  return [
    section(
      "Subsystems",
      el("ol", { class: "subsystems" }, ...steps.map((text) => el("li", { text }))),
      el("p", {
        class: "hint",
        text: `Solved one after the other, if ${drives.join(", ")} ${drives.length > 1 ? "drive" : "drives"}.`,
      }),
    ),
  ];
}
