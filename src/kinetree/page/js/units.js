// Numbers and units as the reader chose them: angles in degrees or radians, everything else in SI units.

const IN_DEGREES = { rad: "deg", "rad/s": "deg/s", "rad/s^2": "deg/s^2" };

// The unit that is shown for a unit of the model, and the factor of its numbers.
export function shownUnit(unit, units) {
  const degrees = units === "deg" && IN_DEGREES[unit];
  const text = (degrees || (unit === "1" ? "" : unit)).replaceAll("^2", "\u00b2");
  return { unit: text, factor: degrees ? 180 / Math.PI : 1 };
}

// The unit of numbers that several entries share, such as "rad/s, m/s" of all joints of an arm.
export const sharedUnit = (units) => [...new Set(units)].join(", ");

// Coordinates with their units, as a text.
export const coordinatesText = ({ model, store }, q) =>
  Array.from(q, (x, k) => withUnit(x, model.coordinates[k].unit, store.get("units"))).join(", ");

// Four decimals or so, in columns that align; very large and very small numbers with an exponent.
export function short(x) {
  if (!Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return size < 1e-14 ? "0.0000" : x.toExponential(3);
  const decimals = size >= 1e4 ? 0 : size >= 1000 ? 1 : size >= 100 ? 2 : size >= 10 ? 3 : 4;
  return x.toFixed(decimals).replace(/^-(0\.?0*)$/, "$1");
}

// Six digits without trailing zeros, for numbers that people type; very large and small ones with an exponent.
export function neat(x) {
  const rounded = Number(x.toPrecision(6));
  const size = Math.abs(rounded);
  return rounded !== 0 && (size >= 1e6 || size < 1e-3) ? rounded.toExponential() : String(rounded);
}

export const withUnit = (x, unit, units) => {
  const shown = shownUnit(unit, units);
  return `${short(x * shown.factor)}${shown.unit ? ` ${shown.unit}` : ""}`;
};
