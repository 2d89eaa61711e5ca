// A link that restores the state of a page: fields of the store as name=value after the "#", numbers in full.

const NUMBERS = {
  write: (x) => Array.from(x, String).join(","),
  read: (text) => Float64Array.from(text.split(","), Number),
};
const PLAIN = {
  write: (x) => (typeof x === "string" ? x : JSON.stringify(x)),
  read: (text, old) => (typeof old === "string" ? text : typeof old === "number" ? Number(text) : JSON.parse(text)),
};

const codec = ({ link, value }) => (link === true ? (value instanceof Float64Array ? NUMBERS : PLAIN) : link);

function linkOf(store) {
  const parts = [...store.fields]
    .filter(([, field]) => field.link && field.value !== null)
    .map(([name, field]) => {
      return `${name}=${encodeURIComponent(codec(field).write(field.value)).replaceAll("%2C", ",")}`;
    });
  return `#${parts.join("&")}`;
}

// The whole state of a page: fields, view, and the instant of a recorded motion.
export function stateOf({ store, stage }) {
  const { azimuth, elevation, distance, target } = stage.view.state;
  const time = store.get("motion")?.recorded ? `&t=${store.get("time")}` : "";
  return `${linkOf(store)}&view=${[azimuth, elevation, distance, ...target].join(",")}${time}`;
}

// Unknown names and values of another length or kind are passed over: a link may come from another page.
export function readLink(store, hash) {
  const changes = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, text] = part.split("=");
    const field = store.fields.get(name);
    if (!field || !field.link || text === undefined) continue;
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
