// Poses as sixteen numbers row by row, in double precision: products, angles, rotation vectors.

export function product(a, b) {
  const out = new Float64Array(16);
  for (let i = 0; i < 4; i++)
    for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) out[4 * i + j] += a[4 * i + k] * b[4 * k + j];
  return out;
}

export function inverse(T) {
  const [x, y, z] = place(T);
  const out = Float64Array.from(T);
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 3; j++) out[4 * i + j] = T[4 * j + i];
    out[4 * i + 3] = -(T[i] * x + T[4 + i] * y + T[8 + i] * z);
  }
  return out;
}

// R^T v and R v of the rotation of a pose.
export const back = (T, v) => [0, 1, 2].map((j) => T[j] * v[0] + T[4 + j] * v[1] + T[8 + j] * v[2]);
export const forth = (T, v) => [0, 1, 2].map((i) => T[4 * i] * v[0] + T[4 * i + 1] * v[1] + T[4 * i + 2] * v[2]);
export const place = (T) => [T[3], T[7], T[11]];

export function poseOf(position, R) {
  return Float64Array.from([
    R[0],
    R[1],
    R[2],
    position[0],
    R[3],
    R[4],
    R[5],
    position[1],
    R[6],
    R[7],
    R[8],
    position[2],
    0,
    0,
    0,
    1,
  ]);
}

export const rotation = (T) => [T[0], T[1], T[2], T[4], T[5], T[6], T[8], T[9], T[10]];

// x, y, z, roll, pitch, yaw of a pose: R = Rz(yaw) Ry(pitch) Rx(roll).
export function anglesOf(T) {
  const flat = Math.hypot(T[0], T[4]);
  const pitch = Math.atan2(-T[8], flat);
  if (flat < 1e-9) return [...place(T), Math.atan2(-T[6], T[5]), pitch, 0]; // roll and yaw about one axis: yaw is zero
  return [...place(T), Math.atan2(T[9], T[10]), pitch, Math.atan2(T[4], T[0])];
}

// The pose of x, y, z, roll, pitch, yaw.
/** @param {number[]} numbers */
export function poseOfAngles([x, y, z, roll, pitch, yaw]) {
  const [cr, cp, cy, sr, sp, sy] = [
    Math.cos(roll),
    Math.cos(pitch),
    Math.cos(yaw),
    Math.sin(roll),
    Math.sin(pitch),
    Math.sin(yaw),
  ];
  return poseOf(
    [x, y, z],
    [
      cy * cp,
      cy * sp * sr - sy * cr,
      cy * sp * cr + sy * sr,
      sy * cp,
      sy * sp * sr + cy * cr,
      sy * sp * cr - cy * sr,
      -sp,
      cp * sr,
      cp * cr,
    ],
  );
}

// The rotation about an axis k of the ground (0, 1, 2), applied to a pose about its own origin.
export function rotated(T, k, angle) {
  const [c, s, i, j] = [Math.cos(angle), Math.sin(angle), (k + 1) % 3, (k + 2) % 3];
  const out = Float64Array.from(T);
  for (let column = 0; column < 3; column++) {
    out[4 * i + column] = c * T[4 * i + column] - s * T[4 * j + column];
    out[4 * j + column] = s * T[4 * i + column] + c * T[4 * j + column];
  }
  return out;
}

export function moved(T, position) {
  const out = Float64Array.from(T);
  [out[3], out[7], out[11]] = position;
  return out;
}

// The rotation vector from a pose to another, in the axes of the first.
export function turnBetween(T, goal) {
  const R = [];
  for (let i = 0; i < 3; i++)
    for (let j = 0; j < 3; j++) R.push(T[i] * goal[j] + T[4 + i] * goal[4 + j] + T[8 + i] * goal[8 + j]);
  const [a, b, c, d, e, f, g, h, i] = R;
  const [x, y, z] = [h - f, c - g, d - b];
  const columns = [
    [x, y, z, 1 + a + e + i],
    [1 + a - e - i, b + d, c + g, x],
    [b + d, 1 - a + e - i, f + h, y],
    [c + g, f + h, 1 - a - e + i, z],
  ]; // of 4 q q^T: the one with the largest diagonal entry
  const sizes = [columns[0][3], columns[1][0], columns[2][1], columns[3][2]];
  const q = columns[sizes.indexOf(Math.max(...sizes))];
  const side = q[3] < 0 ? -1 : 1;
  const size = Math.hypot(q[0], q[1], q[2]);
  const factor = size > 1e-8 * side * q[3] ? (2 * Math.atan2(size, side * q[3])) / size : 2 / (side * q[3]);
  return [side * factor * q[0], side * factor * q[1], side * factor * q[2]];
}

// The rate of a rotation vector for an angular velocity in the axes of its frame.
export function turnRate(turn, w) {
  const aa = turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2;
  const half = Math.sqrt(aa) / 2;
  const c = aa < 1e-4 ? 1 / 12 + aa / 720 + (aa * aa) / 30240 : (1 - (half * Math.cos(half)) / Math.sin(half)) / aa;
  const once = crossed(turn, w);
  const twice = crossed(turn, once);
  return [0, 1, 2].map((k) => w[k] - 0.5 * once[k] + c * twice[k]);
}

const crossed = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
