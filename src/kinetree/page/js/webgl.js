// Draw on the graphics processor. A renderer has draw(picture); stage.js describes a picture.

import { cross, multiply } from "./vectors.js";

const SOLID_VERTEX = `#version 300 es
uniform mat4 both; uniform mat4 model; uniform mat3 turn;
in vec3 place; in vec3 normal; in vec3 color;
out vec3 at; out vec3 facing; out vec3 paint;
void main() {
  vec4 p = model * vec4(place, 1.0);
  at = p.xyz; facing = turn * normal; paint = color;
  gl_Position = both * p;
}`;
const SOLID_FRAGMENT = `#version 300 es
precision highp float;
uniform vec3 light; uniform vec3 eye; uniform vec3 up; uniform vec4 tint;
uniform float opacity; uniform float lift; uniform bool flat_;
in vec3 at; in vec3 facing; in vec3 paint;
out vec4 result;
void main() {
  if (flat_) { result = vec4(tint.rgb * tint.a, tint.a); return; } // colors are multiplied by their opacity
  vec3 base = mix(tint.a > 0.0 ? tint.rgb : paint, vec3(1.0), lift);
  vec3 n = normalize(facing), v = normalize(eye - at);
  if (dot(n, v) < 0.0) n = -n;
  float diffuse = max(dot(n, light), 0.0);
  float sky = 0.5 + 0.5 * dot(n, up);
  float shine = pow(max(dot(n, normalize(light + v)), 0.0), 40.0);
  vec3 c = base * (0.26 + 0.22 * sky + 0.52 * diffuse + 0.24 * dot(n, v)) + vec3(0.12 * shine);
  result = vec4(c * opacity, opacity);
}`;
// A segment is four corners, wider than the line by the pixel over which its edges fade. All lines are one call: each
// corner has the ends of its segment, the color there, and the width.
const LINE_VERTEX = `#version 300 es
uniform mat4 both; uniform vec2 size; uniform float near;
in vec3 from; in vec3 to; in vec4 color; in float width;
out vec3 at; out vec4 paint; out float side; out float wide;
void main() {
  vec4 p = both * vec4(from, 1.0), q = both * vec4(to, 1.0);
  bool second = (gl_VertexID & 2) == 2;
  if (p.w < near && q.w < near) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
  vec3 a = from, b = to;
  if (p.w < near) { float s = (near - p.w) / (q.w - p.w); a = mix(from, to, s); p = mix(p, q, s); }
  if (q.w < near) { float s = (near - q.w) / (p.w - q.w); b = mix(to, from, s); q = mix(q, p, s); }
  vec2 along = (q.xy / q.w - p.xy / p.w) * size;
  float n = length(along);
  along = n > 0.0 ? along / n : vec2(1.0, 0.0);
  side = ((gl_VertexID & 1) == 1 ? 0.5 : -0.5) * (width + 1.5);
  vec2 pixels = vec2(-along.y, along.x) * side; // no ends beyond the points: overlaps of clear lines would show
  if (n == 0.0) pixels += along * (second ? 0.5 : -0.5);
  vec4 r = second ? q : p;
  at = second ? b : a; paint = color; wide = width;
  gl_Position = vec4(r.xy + 2.0 * pixels / size * r.w, r.zw);
}`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
uniform vec3 middle; uniform float reach;
in vec3 at; in vec4 paint; in float side; in float wide; out vec4 result;
void main() {
  float edge = clamp(0.5 * wide + 0.5 - abs(side), 0.0, 1.0) * min(wide, 1.0);
  float a = paint.a * edge * (1.0 - smoothstep(0.35 * reach, reach, distance(at, middle)));
  result = vec4(paint.rgb * a, a);
}`;
const COARSE = 300; // triangles of the largest solid that is always drawn as it is
// Cells along the longest edge of a larger one, whose points in one cell are one: in its shadow, and where pictures of
// a motion take long, in its shadow and in itself.
const [SHADOW, HURRIED_SHADOW, HURRIED] = [12, 6, 16];
const BASE = 32; // more than the cells along an edge: three of its digits are a cell
const CORNER = 11; // numbers: from, to, color, width

export function webglRenderer(canvas, solids) {
  const gl = canvas.getContext("webgl2", { antialias: true, stencil: true });
  if (!gl) return null;

  function program(vertex, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    const places = new Map(); // asked once: each question waits for the graphics process
    const place = (name) => places.get(name) || places.set(name, gl.getUniformLocation(made, name)).get(name);
    return { made, place };
  }

  const solid = program(SOLID_VERTEX, SOLID_FRAGMENT);
  const line = program(LINE_VERTEX, LINE_FRAGMENT);
  const solidArrays = gl.createVertexArray();
  gl.bindVertexArray(solidArrays);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, solids.vertices, gl.STATIC_DRAW);
  setAttributes(solid, { place: 3, normal: 3, color: 3 });
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, solids.faces, gl.STATIC_DRAW);
  let faces = solids.faces; // with those of coarse solids, by the first face of the solid and the cells
  const coarse = new Map();

  // The same items with fewer triangles: shadows of meshes would take as long as the meshes themselves.
  function coarsened(items, cells) {
    const key = ({ first }) => `${first} ${cells}`;
    const large = items.filter((item) => item.count > 3 * COARSE && !coarse.has(key(item)));
    for (const item of large) {
      const own = coarseFaces(solids, item.first, item.count, cells);
      coarse.set(key(item), { first: faces.length, count: own.length });
      const all = new Uint32Array(faces.length + own.length);
      all.set(faces);
      all.set(own, faces.length);
      faces = all;
    }
    if (large.length) gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    return items.map((item) => ({ ...item, ...coarse.get(key(item)) }));
  }
  const lineArrays = gl.createVertexArray();
  const lineBuffer = gl.createBuffer();
  gl.bindVertexArray(lineArrays);
  gl.bindBuffer(gl.ARRAY_BUFFER, lineBuffer);
  setAttributes(line, { from: 3, to: 3, color: 4, width: 1 });
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  let [corners, known] = [new Float32Array(0), 0]; // numbers of the lines, and the segments that have indices

  // The attributes of the bound buffer, one after the other, and their sizes.
  function setAttributes({ made }, sizes) {
    const stride = 4 * Object.values(sizes).reduce((a, b) => a + b);
    let offset = 0;
    for (const [name, count] of Object.entries(sizes)) {
      const at = gl.getAttribLocation(made, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, count, gl.FLOAT, false, stride, offset);
      offset += 4 * count;
    }
  }

  // Lines together, all of one middle and reach, of which floors are.
  function drawLines(lines, camera) {
    const ratio = canvas.width / (canvas.clientWidth || canvas.width);
    const count = lines.reduce((sum, one) => sum + segmentsOf(one), 0);
    if (!count) return;
    if (corners.length < 4 * CORNER * count) corners = new Float32Array(8 * CORNER * count);
    let at = 0;
    for (const one of lines) at = putSegments(corners, at, one, ratio);
    gl.useProgram(line.made);
    gl.bindVertexArray(lineArrays);
    gl.bindBuffer(gl.ARRAY_BUFFER, lineBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, corners.subarray(0, at), gl.DYNAMIC_DRAW);
    if (known < count) {
      known = 2 * count;
      const pairs = Uint32Array.from(
        { length: 6 * known },
        (_, k) => 4 * Math.floor(k / 6) + [0, 1, 2, 2, 1, 3][k % 6],
      );
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, pairs, gl.STATIC_DRAW);
    }
    gl.uniformMatrix4fv(line.place("both"), false, camera.both);
    gl.uniform2f(line.place("size"), canvas.width, canvas.height);
    gl.uniform1f(line.place("near"), camera.near);
    gl.uniform3fv(line.place("middle"), lines[0].middle || [0, 0, 0]);
    gl.uniform1f(line.place("reach"), lines[0].reach || 1e30);
    gl.depthMask(false);
    gl.drawElements(gl.TRIANGLES, 6 * count, gl.UNSIGNED_INT, 0);
    gl.depthMask(true);
  }

  function drawSolids(items, before, shade) {
    for (const item of items) {
      const matrix = before ? multiply(before, item.matrix) : item.matrix;
      gl.uniformMatrix4fv(solid.place("model"), false, matrix);
      if (!before) gl.uniformMatrix3fv(solid.place("turn"), false, normalMatrix(matrix));
      gl.uniform4fv(solid.place("tint"), before ? shade : item.color ? [...item.color, 1] : [0, 0, 0, 0]);
      gl.uniform1f(solid.place("opacity"), item.alpha ?? 1);
      gl.drawElements(gl.TRIANGLES, item.count, gl.UNSIGNED_INT, 4 * item.first);
    }
  }

  return {
    draw(picture) {
      const { camera } = picture;
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clearStencil(0);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.disable(gl.DEPTH_TEST);
      drawLines(picture.floor, camera);
      gl.useProgram(solid.made);
      gl.bindVertexArray(solidArrays);
      gl.uniformMatrix4fv(solid.place("both"), false, camera.both);
      gl.uniform3fv(solid.place("light"), picture.light);
      gl.uniform3fv(solid.place("eye"), camera.eye);
      gl.uniform3fv(solid.place("up"), picture.up);
      gl.uniform1f(solid.place("lift"), picture.lift);
      gl.enable(gl.STENCIL_TEST); // draw each pixel of the shadow once
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      gl.uniform1i(solid.place("flat_"), 1);
      const solids = picture.items.filter((item) => !((item.alpha ?? 1) < 1));
      const { shadow, isHurried } = picture;
      if (shadow) drawSolids(coarsened(solids, isHurried ? HURRIED_SHADOW : SHADOW), shadow, picture.shade);
      gl.disable(gl.STENCIL_TEST);
      gl.enable(gl.DEPTH_TEST);
      gl.uniform1i(solid.place("flat_"), 0);
      drawSolids(isHurried ? coarsened(solids, HURRIED) : solids, null);
      gl.depthMask(false);
      drawSolids(
        picture.items.filter((item) => (item.alpha ?? 1) < 1),
        null,
      );
      gl.depthMask(true);
      drawLines(picture.lines, camera);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      drawLines(picture.over, camera);
      gl.useProgram(solid.made);
      gl.bindVertexArray(solidArrays);
      drawSolids(picture.marks, null);
    },
    close: () => gl.getExtension("WEBGL_lose_context")?.loseContext(),
  };
}

const segmentsOf = ({ strip, points }) => Math.max(0, Math.floor(strip ? points.length / 3 - 1 : points.length / 6));

// Write the corners of the segments of a line from a place on; returns the place after them.
export function putSegments(out, at, { points, strip, color, width = 1, fades = false }, ratio) {
  const [step, count] = [strip ? 3 : 6, segmentsOf({ strip, points })];
  for (let k = 0; k < count; k++) {
    for (let corner = 0; corner < 4; corner++) {
      for (let c = 0; c < 6; c++) out[at + c] = points[step * k + c];
      for (let c = 0; c < 4; c++) out[at + 6 + c] = color[c];
      if (fades) out[at + 9] *= (k + (corner >> 1)) / count;
      out[at + 10] = width * ratio;
      at += CORNER;
    }
  }
  return at;
}

// The inverse transpose of the rotation and stretch of a matrix, to a factor: normals are made unit later.
function normalMatrix(m) {
  const [x, y, z] = [0, 4, 8].map((k) => [m[k], m[k + 1], m[k + 2]]);
  const out = [...cross(y, z), ...cross(z, x), ...cross(x, y)];
  const most = Math.max(...out.map(Math.abs)) || 1;
  return out.map((c) => c / most);
}

// Faces of a solid between points of a coarse grid, each the first one of its cell whose normal faces the same side, so
// that edges stay sharp.
export function coarseFaces({ vertices, faces }, first, count, cells) {
  const own = faces.subarray(first, first + count);
  const at = (v, c) => vertices[9 * v + c];
  const [low, high] = [Math.min, Math.max].map((f) =>
    [0, 1, 2].map((c) => own.reduce((x, v) => f(x, at(v, c)), at(own[0], c))),
  );
  const length = Math.max(...high.map((x, c) => x - low[c])) / cells || 1;
  const cell = (v) => [0, 1, 2].reduce((sum, c) => BASE * sum + Math.round((at(v, c) - low[c]) / length), 0);
  const side = (v) => {
    const [x, y, z] = [at(v, 3), at(v, 4), at(v, 5)];
    const most = Math.max(Math.abs(x), Math.abs(y), Math.abs(z));
    return [x, -x, y, -y, z, -z].indexOf(most);
  };
  const found = new Map();
  const point = (v, place) => {
    const key = 7 * place + side(v);
    if (!found.has(key)) found.set(key, v);
    return found.get(key);
  };
  const made = new Map();
  for (let k = 0; k < own.length; k += 3) {
    const [a, b, c] = [own[k], own[k + 1], own[k + 2]];
    const [p, q, r] = [cell(a), cell(b), cell(c)];
    if (p === q || q === r || r === p) continue;
    const [least, largest] = [Math.min(p, q, r), Math.max(p, q, r)];
    made.set((least * BASE ** 3 + largest) * BASE ** 3 + (p + q + r - least - largest), [
      point(a, p),
      point(b, q),
      point(c, r),
    ]);
  }
  return [...made.values()].flat();
}
