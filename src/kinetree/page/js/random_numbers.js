// Random numbers that are the same in every run.

// From 0 to 1.
export function seeded(seed = 7) {
  let state = seed;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}

// Normal numbers from even ones, two at a time (Box and Muller).
export function normal(random) {
  let spare = null;
  return () => {
    if (spare !== null) {
      const out = spare;
      spare = null;
      return out;
    }
    const [r, angle] = [Math.sqrt(-2 * Math.log(1 - random())), 2 * Math.PI * random()];
    spare = r * Math.sin(angle);
    return r * Math.cos(angle);
  };
}
