// Vectors are arrays of three numbers; matrices are Float32Array(16), column by column, as WebGL requires.

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (k, a) => [k * a[0], k * a[1], k * a[2]];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const unit = (a) => scale(1 / (Math.hypot(...a) || 1), a);

// The product of two lists of numbers, of any length.
export function inner(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

export const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

export function multiply(a, b) {
  const out = new Float32Array(16);
  for (let column = 0; column < 4; column++) {
    for (let row = 0; row < 4; row++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[4 * k + row] * b[4 * column + k];
      out[4 * column + row] = sum;
    }
  }
  return out;
}

export function transform(m, p) {
  return [
    m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12],
    m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13],
    m[2] * p[0] + m[6] * p[1] + m[10] * p[2] + m[14],
  ];
}

export function columns(x, y, z, p) {
  return new Float32Array([...x, 0, ...y, 0, ...z, 0, ...p, 1]);
}

// The pose of a body between two frames: positions on a line, quaternions (x, y, z, w) mixed and normalized.
export function poseBetween(poses, a, b, share) {
  const mix = [];
  for (let k = 0; k < 7; k++) mix.push((1 - share) * poses[a + k] + share * poses[b + k]);
  const n = 1 / Math.hypot(mix[3], mix[4], mix[5], mix[6]);
  const [x, y, z, w] = [mix[3] * n, mix[4] * n, mix[5] * n, mix[6] * n];
  return columns(
    [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
    [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
    [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)],
    mix.slice(0, 3),
  );
}

// The unit cylinder along z, stretched from one point to another.
export function rodMatrix(from, to, radius) {
  const along = sub(to, from);
  const z = unit(along);
  const least = z.map(Math.abs).indexOf(Math.min(...z.map(Math.abs)));
  const x = unit(
    cross(
      z,
      [0, 1, 2].map((k) => (k === least ? 1 : 0)),
    ),
  );
  return columns(scale(radius, x), scale(radius, cross(z, x)), along, scale(0.5, add(from, to)));
}

// The unit ball about a point.
export const ballMatrix = (at, radius) => columns([radius, 0, 0], [0, radius, 0], [0, 0, radius], at);

// The projection of points along the light onto the floor, the plane p.up = height.
export function shadowMatrix(light, up, height) {
  const k = 1 / dot(light, up);
  const column = (j) => [0, 1, 2].map((i) => (i === j ? 1 : 0) - k * light[i] * up[j]);
  return columns(column(0), column(1), column(2), scale(k * height, light));
}

export function cameraMatrices(camera, aspect) {
  const c = Math.cos(camera.elevation);
  const [e1, e2, up] = camera.axes;
  const back = add(
    scale(Math.sin(camera.elevation), up),
    add(scale(c * Math.cos(camera.azimuth), e1), scale(c * Math.sin(camera.azimuth), e2)),
  );
  const right = unit(cross(up, back));
  const above = cross(back, right);
  const eye = add(camera.target, scale(camera.distance, back));
  const view = new Float32Array([
    right[0],
    above[0],
    back[0],
    0,
    right[1],
    above[1],
    back[1],
    0,
    right[2],
    above[2],
    back[2],
    0,
    -dot(right, eye),
    -dot(above, eye),
    -dot(back, eye),
    1,
  ]);
  // A narrow window keeps the horizontal extent of the view.
  const f = Math.min(1, aspect / 1.2) / Math.tan(camera.field / 2);
  const near = camera.distance / 50;
  const far = camera.distance * 50;
  const projection = new Float32Array([
    f / aspect,
    0,
    0,
    0,
    0,
    f,
    0,
    0,
    0,
    0,
    (far + near) / (near - far),
    -1,
    0,
    0,
    (2 * far * near) / (near - far),
    0,
  ]);
  return { view, projection, both: multiply(projection, view), eye, right, above, back, near, f, aspect };
}

// The pose of a body as the page computes it, sixteen numbers row by row, as a matrix of WebGL.
export function fromRows(rows, at = 0) {
  const out = new Float32Array(16);
  for (let row = 0; row < 4; row++)
    for (let column = 0; column < 4; column++) out[4 * column + row] = rows[at + 4 * row + column];
  return out;
}

export const originOf = (m) => [m[12], m[13], m[14]];
export const turned = (m, p) => [
  m[0] * p[0] + m[4] * p[1] + m[8] * p[2],
  m[1] * p[0] + m[5] * p[1] + m[9] * p[2],
  m[2] * p[0] + m[6] * p[1] + m[10] * p[2],
];
// The point of a body that is at a place of the ground.
export function within(m, p) {
  const d = sub(p, originOf(m));
  return [0, 4, 8].map((k) => m[k] * d[0] + m[k + 1] * d[1] + m[k + 2] * d[2]);
}

// The place in the picture [0 to 1, from the left and the top] of a point, and its depth; null behind the eye.
export function project(camera, p) {
  const m = camera.both;
  const w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15];
  if (w < camera.near) return null;
  const [x, y] = transform(m, p);
  return [0.5 + (0.5 * x) / w, 0.5 - (0.5 * y) / w, w];
}

// The direction from the eye through a place of the picture.
export function rayThrough(camera, x, y) {
  const [u, v] = [((2 * x - 1) * camera.aspect) / camera.f, (1 - 2 * y) / camera.f];
  return unit(add(add(scale(u, camera.right), scale(v, camera.above)), scale(-1, camera.back)));
}
