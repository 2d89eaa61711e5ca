import assert from "node:assert/strict";
import test from "node:test";

import { movingFrames, solvePose, framePose } from "../../../src/kinetree/page/js/inverse_kinematics.js";
import { findings, surroundings } from "../../../src/kinetree/page/js/loop_findings.js";
import { leadsOf } from "../../../src/kinetree/page/js/loop_range.js";
import * as rates from "../../../src/kinetree/page/js/loop_rates.js";
import { appOf, cases, close } from "./cases.mjs";

for (const given of cases.trees)
  test(`functions of ${given.name} are the library's`, async () => {
    const { q, qd } = given;
    const { kernel, model } = await appOf(given.data);
    close(kernel.poses(q), given.poses, 1e-14, "poses");
    close(kernel.jacobian(q, model.bodies.length - 1), given.jacobian, 1e-13, "Jacobian");
    close(kernel.energies(q, qd).kinetic, given.kinetic, 1e-13, "kinetic energy");
    close(kernel.energies(q, qd).potential, given.potential, 1e-13, "potential energy");
    close(kernel.inertias(q), given.inertias, 1e-12, "diagonal of the inertia matrix");
    const state = kernel.begin(q, qd);
    assert.ok(kernel.advance(state, 1e-3, 50));
    close(state.q, given.after.q, 1e-12, "position after 50 steps");
    close(state.qd, given.after.qd, 1e-12, "velocity after 50 steps");
  });

for (const given of cases.trees)
  test(`frames of ${given.name} reach poses, by the kernel and by the page's own search`, async () => {
    const app = await appOf(given.data);
    const goals = movingFrames(app.model).filter((f) => f.body === app.model.bodies.length - 1);
    for (const frame of goals) {
      const goal = framePose(app.kernel, given.q, frame);
      const near = Float64Array.from(given.q, (x, k) => x + 0.05 * Math.sin(k + 1));
      const found = solvePose(app, frame, goal, { q0: near });
      assert.ok(found.converged, frame.name);
      close(framePose(app.kernel, found.q, frame), Array.from(goal), 1e-11, frame.name);
    }
  });

for (const given of cases.grounds)
  test(`steps of ${given.name} on its ground are the library's`, async () => {
    const { kernel } = await appOf(given.data);
    const state = kernel.begin(given.q, given.qd, 0, given.friction);
    const live = Object.fromEntries(Object.entries(given.live).map(([name, x]) => [name, Float64Array.from(x)]));
    assert.ok(kernel.advance(state, given.dt, given.steps, live));
    close(state.q, given.after.q, 1e-12, "position");
    close(state.qd, given.after.qd, 1e-9, "velocity");
    close(
      state.impulses.map((x) => x / given.dt),
      given.after.forces,
      1e-8, // measured 9e-10: the cone is solved to a tolerance
      "forces",
    );
    close(kernel.call("contact_places", { q: state.q }).gap, given.gaps, 1e-12, "gaps");
  });

for (const given of cases.loops)
  test(`loops of ${given.name} are the library's`, async () => {
    const app = await appOf(given.data);
    const { q, leads, qd, qdd } = given;
    const near = app.kernel.integrate(
      q,
      Float64Array.from(q.length ? qd : [], (_, k) => (leads.includes(k) ? 0 : 0.02)),
    );
    assert.ok(app.kernel.gap(near) > 1e-4 * app.data.scene.size);
    const made = app.kernel.close(near, { held: leads });
    assert.ok(made.closed);
    close(made.q, q, 1e-12, "closed position");
    const nearest = app.kernel.close(given.near, { held: leads.slice(0, 1) });
    close(nearest.q, given.closed, 1e-12, "nearest closed position with one joint held");
    assert.equal(rates.freedoms(app, q).mobility, given.mobility);
    close(rates.velocitiesOf(app, q, leads, given.rates), qd, 1e-12, "velocities");
    const held = leads.map(() => 0.3);
    close(rates.accelerationsOf(app, q, Float64Array.from(qd), leads, held), qdd, 1e-12, "accelerations");
    const driven = rates.drivenTorques(app, { q, qd, qdd }, leads);
    close(driven.tau, given.tau, 1e-12, "torques of the drives");
    close(rates.loadsOf(app, { q, qd, qdd }, driven.multipliers), given.loads, 1e-12, "reactions");
  });

const SHARED = [
  /^the position is (nearly )?singular$/,
  /^\d+ equations? holds? by (itself|themselves)$/,
  /only shakes$/,
];

for (const [k, given] of cases.findings.entries())
  test(`findings of ${given.name} (${k}) are the doctor's`, async () => {
    const app = await appOf(given.data);
    const q = Float64Array.from(given.q);
    const leads = leadsOf(app, q, []);
    const found = findings(app, q, { drive: leads[0], leads, usual: surroundings(app, q) });
    assert.equal(rates.freedoms(app, q).mobility, given.mobility);
    const titles = found.map(({ title }) => title[0].toLowerCase() + title.slice(1));
    for (const kind of SHARED)
      assert.deepEqual(
        titles.filter((title) => kind.test(title)),
        given.titles.filter((title) => kind.test(title)),
      );
  });
