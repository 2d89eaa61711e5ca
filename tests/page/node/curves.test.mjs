import assert from "node:assert/strict";
import test from "node:test";

import { Column, quantitiesOf, sampleOf } from "../../../src/kinetree/page/js/curves.js";
import { between, motionOf } from "../../../src/kinetree/page/js/joint_motions.js";
import { appOf, cases, close } from "./cases.mjs";

const SHOWN = [3, 4, 5]; // samples that are compared

for (const given of cases.motions)
  test(`curves of ${given.body} and its arm are the library's`, async () => {
    const app = await appOf(given.data);
    const motion = motionOf(app.model, between("cycloid", given.q0, given.q1, 1.7, 13));
    const all = quantitiesOf(app);
    const values = (name, object, components) => {
      const quantity = all.find((x) => x.name === name);
      const i = quantity.objects.indexOf(object);
      assert.ok(i >= 0, `${name} of ${object}`);
      const column = new Column(app, motion, quantity, i);
      return SHOWN.flatMap((k) => components.map((c) => column.values[quantity.components.indexOf(c)][k]));
    };
    const center = `${given.body} center of mass`;
    const xyz = ["x", "y", "z"];
    close(values("point position", center, xyz), given.position, 1e-14, "position");
    close(values("point velocity", center, xyz), given.velocity, 1e-9, "velocity");
    close(values("point acceleration", center, xyz), given.acceleration, 1e-8, "acceleration");
    close(values("energies", "all", ["kinetic"]), given.kinetic, 1e-13, "kinetic energy");
    close(values("energies", "all", ["potential"]), given.potential, 1e-13, "potential energy");
    close(values("reaction", app.model.joints[0].name, ["size"]), given.reaction, 1e-12, "reaction");
    const { nv, velocities, bodies } = app.model;
    velocities.forEach(({ label }, i) => {
      const own = (list) => SHOWN.map((_, n) => list[n * nv + i]);
      close(values("torque by cause", label, ["total"]), own(given.tau), 1e-12, "torque");
      close(values("torque by cause", label, ["gravity"]), own(given.gravity), 1e-12, "torque of gravity");
      close(values("joint acceleration", label, [""]), own(given.qdd), 1e-13, "acceleration of a joint");
    });
    const parts = bodies.map((b) => values("energy of a body", b.name, ["kinetic"]));
    close(
      SHOWN.map((_, n) => parts.reduce((sum, part) => sum + part[n], 0)),
      given.kinetic,
      1e-13,
      "sum of kinetic energies",
    );
  });

test("accelerations follow from the velocities of a motion that has none, also where it grows", async () => {
  const [{ data, q0, q1 }] = cases.motions;
  const app = await appOf(data);
  const samples = between("cycloid", q0, q1, 1.7, 161);
  const motion = motionOf(app.model, samples);
  motion.accelerations = null;
  for (const k of [0, 1, 2, 80, 160])
    close(sampleOf(motion, k).qdd, Array.from(samples[k].qdd), k > 1 && k < 159 ? 1e-5 : 0.05, `sample ${k}`);
  const quantity = quantitiesOf(app).find((x) => x.name === "joint acceleration");
  const whole = new Column(app, motion, quantity, 0).values[0].slice();
  motion.extend = () => 0;
  motion.count = 100;
  const column = new Column(app, motion, quantity, 0);
  assert.equal(column.values[0].length, 100);
  motion.count = 161;
  close(column.values[0], whole, 0, "grown");
  motion.count = 90;
  motion.cuts += 1;
  assert.equal(column.values[0].length, 90);
  close(column.values[0].slice(0, 88), whole.slice(0, 88), 0, "cut");
});
