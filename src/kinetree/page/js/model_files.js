// The mechanism as files, with the numbers that the reader changed: native TOML, URDF, and the DH table as CSV.

import { anglesOf, place } from "./poses.js";
import { inputsOf } from "./table.js";

// The page has the text of the file with names such as "live_12" in place of numbers.
export function tomlText({ data, model, store }) {
  const { toml, slots, prefix } = data.kernel.editable;
  const numbers = inputsOf(model, slots);
  const text = toml.replace(new RegExp(`"${prefix}(\\d+)"`, "g"), (_, k) => decimal(numbers[k]));
  return model.parameters.reduce(
    (now, { name }, k) =>
      now.replace(
        new RegExp(`^("?${escaped(name)}"? = \\{ value = )[^,}]+?(?= *[,}])`, "m"),
        (_, start) => start + decimal(store.get("parameters")[k]),
      ),
    text,
  );
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// A number as TOML writes a float.
const decimal = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? `${x === 0 ? 0 : x}.0` : String(x));

const COLUMNS = [
  "joint",
  "a",
  "alpha",
  "b",
  "theta",
  "mass",
  "cx",
  "cy",
  "cz",
  "ixx",
  "iyy",
  "izz",
  "ixy",
  "iyz",
  "izx",
  "name",
];

// As formats/dh.py reads it, in radians. Limits and losses of joints are columns where there are any.
export function csvText(model, table) {
  const bounds = (i) => {
    const [joint, c] = [model.joints[i], model.coordinates[model.joints[i].q[0]]];
    return {
      lower: c?.lower,
      upper: c?.upper,
      velocity: joint.velocity[0],
      effort: joint.effort[0],
      damping: joint.damping[0],
      friction: joint.friction[0],
      armature: joint.armature[0],
    };
  };
  const more = ["lower", "upper", "velocity", "effort", "damping", "friction", "armature"].filter((key) =>
    model.joints.some((_, i) => bounds(i)[key] !== undefined && bounds(i)[key] !== null),
  );
  const cells = table.rows.map((row, i) => [
    row.joint,
    row.a,
    row.alpha,
    row.b,
    row.theta,
    row.mass,
    ...row.com,
    ...row.inertia,
    row.name,
    ...more.map((key) => bounds(i)[key] ?? ""),
  ]);
  const tool = table.form === "modified" && table.end && !table.end.alpha ? [`# tool: ${table.end.a} 0 0`] : [];
  const head = [
    `# name: ${model.name.replace(/\s+/g, " ")}`,
    `# convention: ${table.form}`,
    "# degrees: false",
    `# gravity: ${table.gravity.join(" ")}`,
    ...tool,
  ];
  const lines = [...head, [...COLUMNS, ...more].join(","), ...cells.map((line) => line.map(quoted).join(","))];
  return `${lines.join("\n")}\n`;
}

const quoted = (x) => (typeof x === "string" && /[",\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : String(x));

// Lines of Python that make the same chain; angles in radians.
export function pythonRows(model, table) {
  const list = (x) => `[${Array.from(x, String).join(", ")}]`;
  const rows = table.rows.map(
    (row) =>
      `    dict(joint="${row.joint}", theta=${row.theta}, b=${row.b}, a=${row.a}, alpha=${row.alpha}, ` +
      `mass=${row.mass}, com=${list(row.com)}, inertia=${list(row.inertia)}, name=${JSON.stringify(row.name)}),`,
  );
  const tool = table.form === "modified" && table.end && !table.end.alpha ? `, tool=[${table.end.a}, 0, 0]` : "";
  const base = table.base ? ["# before the first row: a and alpha of the base, which this table cannot have"] : [];
  return [
    "import kinetree as kt",
    "",
    ...base,
    "rows = [",
    ...rows,
    "]",
    `arm = kt.from_dh(rows, convention="${table.form}", gravity=${list(table.gravity)}${tool}, ` +
      `name=${JSON.stringify(model.name)})`,
    "",
  ].join("\n");
}

// Python's URDF of the mechanism (formats/urdf_writer.py), with the present numbers at places such as @bodies.2.com@.
export function urdfText(template, model) {
  return template.replace(/@(\w+)\.(\d+)\.(\w+)(?:\.(\w+))?@/g, (_, list, i, field, part) => {
    const value = model[list][i][field];
    if (part === "xyz") return place(value).join(" ");
    if (part === "rpy") return anglesOf(value).slice(3).join(" ");
    return [part === undefined ? value : value[part]].flat().join(" ");
  });
}
