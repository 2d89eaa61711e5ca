// The mechanism as files, with the numbers that the reader changed: native TOML, URDF, and the DH table as CSV.

import { anglesOf } from "./poses.js";
import { inputsOf } from "./table.js";

// The page has the text of the file with names such as "live_12" in place of numbers.
export function tomlText({ data, model, store }) {
  const { toml, slots, prefix } = data.kernel.editable;
  const numbers = inputsOf(model, slots);
  const text = toml.replace(new RegExp(`"${prefix}(\\d+)"`, "g"), (_, k) => decimal(numbers[k]));
  return model.parameters.reduce((now, { name }, k) => now.replace(new RegExp(`^("?${escaped(name)}"? = \\{ value = )[^,}]+?(?= *[,}])`, "m"), (_, start) => start + decimal(store.get("parameters")[k])), text);
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// A number as TOML writes a float.
const decimal = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? `${x === 0 ? 0 : x}.0` : String(x));

const COLUMNS = ["joint", "a", "alpha", "b", "theta", "mass", "cx", "cy", "cz", "ixx", "iyy", "izz", "ixy", "iyz", "izx", "name"];

// As formats/dh_csv.py reads it, in radians. Limits and losses of joints are columns where there are any.
export function csvText(model, table) {
  const bounds = (i) => {
    const [joint, c] = [model.joints[i], model.coordinates[model.joints[i].q[0]]];
    return { lower: c?.lower, upper: c?.upper, velocity: joint.velocity[0], effort: joint.effort[0], damping: joint.damping[0], friction: joint.friction[0], armature: joint.armature[0] };
  };
  const more = ["lower", "upper", "velocity", "effort", "damping", "friction", "armature"].filter((key) => model.joints.some((_, i) => bounds(i)[key] !== undefined && bounds(i)[key] !== null));
  const cells = table.rows.map((row, i) => [row.joint, row.a, row.alpha, row.b, row.theta, row.mass, ...row.com, ...row.inertia, row.name, ...more.map((key) => bounds(i)[key] ?? "")]);
  const tool = table.form === "modified" && table.end && !table.end.alpha ? [`# tool: ${table.end.a} 0 0`] : [];
  const head = [`# name: ${model.name.replace(/\s+/g, " ")}`, `# convention: ${table.form}`, "# degrees: false", `# gravity: ${table.gravity.join(" ")}`, ...tool];
  return `${[...head, [...COLUMNS, ...more].join(","), ...cells.map((line) => line.map(quoted).join(","))].join("\n")}\n`;
}

const quoted = (x) => (typeof x === "string" && /[",\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : String(x));

// Lines of Python that make the same chain; angles in radians.
export function pythonRows(model, table) {
  const list = (x) => `[${Array.from(x, String).join(", ")}]`;
  const rows = table.rows.map((row) => `    dict(joint="${row.joint}", theta=${row.theta}, b=${row.b}, a=${row.a}, alpha=${row.alpha}, mass=${row.mass}, com=${list(row.com)}, inertia=${list(row.inertia)}, name=${JSON.stringify(row.name)}),`);
  const tool = table.form === "modified" && table.end && !table.end.alpha ? `, tool=[${table.end.a}, 0, 0]` : "";
  const base = table.base ? ["# before the first row: a and alpha of the base, which this table cannot have"] : [];
  return ["import kinetree as kt", "", ...base, "rows = [", ...rows, "]", `arm = kt.from_dh(rows, convention="${table.form}", gravity=${list(table.gravity)}${tool}, name=${JSON.stringify(model.name)})`, ""].join("\n");
}

// Whether URDF has all joints of a mechanism, and no loop is left.
export const fitsUrdf = (model) => !model.closed && model.joints.every((joint) => joint.kind in KINDS);

const KINDS = { revolute: "revolute", prismatic: "prismatic", fixed: "fixed", free: "floating" };

// Links, joints, inertias and limits; frames become links on fixed joints.
export function urdfText(model) {
  const text = (x) => String(x).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
  const origin = (pose) => {
    const [x, y, z, ...angles] = anglesOf(pose);
    return `<origin xyz="${x} ${y} ${z}" rpy="${angles.join(" ")}"/>`;
  };
  const root = uniqueName("world", model.bodies.map((b) => b.name));
  const nameOf = (i) => text(i < 0 ? root : model.bodies[i].name);
  const links = model.bodies.map(({ name, mass, com, inertia: [xx, yy, zz, xy, yz, zx] }) => [
    `  <link name="${text(name)}">`, "    <inertial>", `      <origin xyz="${com.join(" ")}" rpy="0 0 0"/>`, `      <mass value="${mass}"/>`,
    `      <inertia ixx="${xx}" iyy="${yy}" izz="${zz}" ixy="${xy}" iyz="${yz}" ixz="${zx}"/>`, "    </inertial>", "  </link>",
  ].join("\n"));
  const joints = model.joints.map((joint, i) => {
    const c = model.coordinates[joint.q[0]];
    const bounded = c && c.lower !== null && c.upper !== null;
    const kind = joint.kind === "revolute" && !bounded ? "continuous" : KINDS[joint.kind];
    const [effort, velocity] = [joint.effort[0] ?? 1e9, joint.velocity[0] ?? 1e9];
    const limits = kind === "continuous" ? ` effort="${effort}" velocity="${velocity}"` : ` lower="${c?.lower ?? -1e9}" upper="${c?.upper ?? 1e9}" effort="${effort}" velocity="${velocity}"`;
    const moves = kind !== "fixed" && kind !== "floating";
    return [
      `  <joint name="${text(joint.name)}" type="${kind}">`, `    ${origin(joint.placement)}`, `    <parent link="${nameOf(model.bodies[i].parent)}"/>`, `    <child link="${nameOf(i)}"/>`,
      ...(moves ? [`    <axis xyz="${joint.axes.map((row) => row[2]).join(" ")}"/>`, `    <limit${limits}/>`] : []),
      ...(moves && (joint.damping.length || joint.friction.length) ? [`    <dynamics damping="${joint.damping[0] ?? 0}" friction="${joint.friction[0] ?? 0}"/>`] : []), "  </joint>",
    ].join("\n");
  });
  const frames = model.frames.map((f) => [
    `  <link name="${text(f.name)}"/>`, `  <joint name="${text(f.name)}_fixed" type="fixed">`, `    ${origin(f.pose)}`, `    <parent link="${nameOf(f.body)}"/>`, `    <child link="${text(f.name)}"/>`, "  </joint>",
  ].join("\n"));
  return ['<?xml version="1.0"?>', `<robot name="${text(model.name)}">`, `  <link name="${text(root)}"/>`, ...links, ...joints, ...frames, "</robot>", ""].join("\n");
}

function uniqueName(name, taken) {
  return taken.includes(name) ? uniqueName(`${name}_`, taken) : name;
}
