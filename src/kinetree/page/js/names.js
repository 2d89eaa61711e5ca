// Names and labels. Labels are as short as they can be told apart. An end that most of them share, such as "_joint", is
// left out where it stands, and so is a beginning that all of them share.

const MOST = 0.6; // of the labels share an end that is left out

export function shortLabels(labels) {
  if (labels.length < 2) return labels;
  const ends = labels.map((label) => /[_.\- ][^_.\- ]*$/.exec(label)?.[0] || "");
  const end = ends.find((one) => one && ends.filter((other) => other === one).length >= MOST * labels.length) || "";
  const head = shared(labels);
  const cut = labels.map((label) =>
    label.slice(head, end && label.endsWith(end) ? label.length - end.length : undefined),
  );
  return cut.every(Boolean) && new Set(cut).size === new Set(labels).size ? cut : labels;
}

// The length of the beginning that all labels share, up to a separator.
function shared(labels) {
  let length = 0;
  for (let k = 0; labels.every((label) => label[k] !== undefined && label[k] === labels[0][k]); k++) {
    if (/[_.\- ]/.test(labels[0][k])) length = k + 1;
  }
  return length;
}

// The places of the parameters that the model itself has, without lengths that only the page makes inputs.
export function ownParameters(model) {
  const made = new Set(model.lengths.filter((x) => x.made).map((x) => x.parameter));
  return [...model.parameters.keys()].filter((k) => !made.has(k));
}

// The frame in which the table and the inspector have the center of mass and the inertia of a row.
export const massFrameOf = (row, i) =>
  row.form === "standard" ? `in frame_${i + 2}, at the end of the row` : "in the frame of the body, at its joint";

// A name of a file for a mechanism.
export const fileName = (name) => name.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 80) || "mechanism";

// The line of Python that loads the mechanism. With changed numbers it is the file that the mode Build saves.
export function loadLine({ model, table }) {
  if (!table?.isEdited()) return `arm = kt.load(${JSON.stringify(model.name)})  # or the path of its file`;
  return `arm = kt.load("${fileName(model.name)}.toml")  # numbers were changed: save them by TOML in the mode Build`;
}
