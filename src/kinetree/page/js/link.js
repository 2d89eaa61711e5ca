// A link that restores the state of a page: fields of the store as name=value after the "#", numbers in full.

const NUMBERS = {
  write: (x) => Array.from(x, String).join(","),
  read: (text) => Float64Array.from(text.split(","), Number),
};
const PLAIN = {
  write: (x) => (typeof x === "string" ? x : JSON.stringify(x)),
  read: (text, old) => (typeof old === "string" ? text : typeof old === "number" ? Number(text) : JSON.parse(text)),
};

const codec = ({ link, value }) => (typeof link === "object" ? link : value instanceof Float64Array ? NUMBERS : PLAIN);

function linkOf(store, whole) {
  const parts = [...store.fields]
    .filter(([, field]) => (field.link || (whole && field.keep)) && field.value !== null)
    .map(([name, field]) => {
      return `${name}=${encodeURIComponent(codec(field).write(field.value)).replaceAll("%2C", ",")}`;
    });
  return `#${parts.join("&")}`;
}

// The whole state of a page: fields, view, and the instant of a recorded motion. With `whole`, also what links leave
// out since it is long or private: motions of files, charts, the instant of a computed motion.
/** @param {import("./app.js").App} app */
export function stateOf({ store, stage, plots, part, hash = "" }, { whole = false } = {}) {
  const { azimuth, elevation, distance, target } = stage.view.state;
  const motion = store.get("motion");
  const own = (whole && part?.document?.()) || {};
  const waits = hash // fields of modes that were not opened yet
    .replace(/^#/, "")
    .split("&")
    .filter((text) => /^\w+=./.test(text) && !/^(view|t|plots|document)=/.test(text))
    .filter((text) => !store.fields.has(text.split("=")[0]));
  const view = `view=${[azimuth, elevation, distance, ...target, Number(stage.view.isMoved)].join(",")}`;
  const time = motion?.recorded || (whole && motion && !own.t) ? [`t=${store.get("time")}`] : [];
  const charts = whole ? [`plots=${plots.chosen.map(encodeURIComponent).join(",")}`] : [];
  const fields = Object.entries(own.fields || {}).map(
    ([name, x]) => `${name}=${encodeURIComponent(JSON.stringify(x))}`,
  );
  return [linkOf(store, whole), ...waits, ...fields, view, ...charts, ...time].join("&");
}

// Unknown names and values of another length or kind are passed over: a link may come from another page.
export function readLink(store, hash) {
  const changes = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, text] = part.split("=");
    const field = store.fields.get(name);
    if (!field || !(field.link || field.keep) || text === undefined) continue;
    try {
      const value = codec(field).read(decodeURIComponent(text), field.value);
      const numbers = typeof value === "number" ? [value] : value instanceof Float64Array ? value : [];
      const fits = !(field.value instanceof Float64Array) || value.length === field.value.length;
      if (fits && Array.from(numbers).every(Number.isFinite)) changes[name] = value;
    } catch {
      /* not a value of this field */
    }
  }
  return changes;
}
