// Draw on the graphics processor. A renderer has draw(picture); stage.js describes a picture.

const SOLID_VERTEX = `#version 300 es
uniform mat4 both; uniform mat4 model;
in vec3 place; in vec3 normal; in vec3 color;
out vec3 at; out vec3 facing; out vec3 paint;
void main() {
  vec4 p = model * vec4(place, 1.0);
  at = p.xyz; facing = mat3(model) * normal; paint = color;
  gl_Position = both * p;
}`;
const SOLID_FRAGMENT = `#version 300 es
precision highp float;
uniform vec3 light; uniform vec3 eye; uniform vec3 up; uniform vec4 tint; uniform bool flat_;
in vec3 at; in vec3 facing; in vec3 paint;
out vec4 result;
void main() {
  if (flat_) { result = vec4(tint.rgb * tint.a, tint.a); return; } // colors are multiplied by their opacity
  vec3 base = tint.a > 0.0 ? tint.rgb : paint;
  vec3 n = normalize(facing), v = normalize(eye - at);
  if (dot(n, v) < 0.0) n = -n;
  float diffuse = max(dot(n, light), 0.0);
  float sky = 0.5 + 0.5 * dot(n, up);
  float shine = pow(max(dot(n, normalize(light + v)), 0.0), 40.0);
  vec3 c = base * (0.30 + 0.26 * sky + 0.62 * diffuse) + vec3(0.16 * shine);
  result = vec4(c, 1.0);
}`;
const LINE_VERTEX = `#version 300 es
uniform mat4 both; uniform vec2 nudge; in vec3 place; out vec3 at;
void main() { at = place; gl_Position = both * vec4(place, 1.0); gl_Position.xy += nudge * gl_Position.w; }`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 color; uniform vec3 middle; uniform float reach;
in vec3 at; out vec4 result;
void main() {
  float a = color.a * (1.0 - smoothstep(0.35 * reach, reach, distance(at, middle)));
  result = vec4(color.rgb * a, a);
}`;

const AROUND = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]];

function webglRenderer(canvas, solids) {
  const gl = canvas.getContext("webgl2", { antialias: true, stencil: true });
  if (!gl) return null;

  function program(vertex, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    const place = (name) => gl.getUniformLocation(made, name);
    return { made, place };
  }

  const solid = program(SOLID_VERTEX, SOLID_FRAGMENT);
  const line = program(LINE_VERTEX, LINE_FRAGMENT);
  const solidArrays = gl.createVertexArray();
  gl.bindVertexArray(solidArrays);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, solids.vertices, gl.STATIC_DRAW);
  ["place", "normal", "color"].forEach((name, k) => {
    const at = gl.getAttribLocation(solid.made, name);
    if (at < 0) return;
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, 3, gl.FLOAT, false, 36, 12 * k);
  });
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, solids.faces, gl.STATIC_DRAW);
  const lineArrays = gl.createVertexArray();
  const lineBuffer = gl.createBuffer();
  gl.bindVertexArray(lineArrays);
  gl.bindBuffer(gl.ARRAY_BUFFER, lineBuffer);
  gl.enableVertexAttribArray(gl.getAttribLocation(line.made, "place"));
  gl.vertexAttribPointer(gl.getAttribLocation(line.made, "place"), 3, gl.FLOAT, false, 0, 0);

  function drawLines(lines, both) {
    gl.useProgram(line.made);
    gl.bindVertexArray(lineArrays);
    gl.bindBuffer(gl.ARRAY_BUFFER, lineBuffer);
    gl.uniformMatrix4fv(line.place("both"), false, both);
    for (const one of lines) {
      gl.bufferData(gl.ARRAY_BUFFER, one.points, gl.DYNAMIC_DRAW);
      gl.uniform4fv(line.place("color"), one.color);
      gl.uniform3fv(line.place("middle"), one.middle || [0, 0, 0]);
      gl.uniform1f(line.place("reach"), one.reach || 1e30);
      for (const [x, y] of one.thick ? AROUND : AROUND.slice(0, 1)) { // browsers draw lines one pixel wide
        gl.uniform2f(line.place("nudge"), x / canvas.width, y / canvas.height);
        gl.drawArrays(one.strip ? gl.LINE_STRIP : gl.LINES, 0, one.points.length / 3);
      }
    }
  }

  function drawSolids(items, before) {
    for (const item of items) {
      gl.uniformMatrix4fv(solid.place("model"), false, before ? multiply(before, item.matrix) : item.matrix);
      gl.uniform4fv(solid.place("tint"), before ? [0.12, 0.17, 0.24, 0.16] : item.color ? [...item.color, 1] : [0, 0, 0, 0]);
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
      drawLines(picture.floor, camera.both);
      gl.useProgram(solid.made);
      gl.bindVertexArray(solidArrays);
      gl.uniformMatrix4fv(solid.place("both"), false, camera.both);
      gl.uniform3fv(solid.place("light"), picture.light);
      gl.uniform3fv(solid.place("eye"), camera.eye);
      gl.uniform3fv(solid.place("up"), picture.up);
      gl.enable(gl.STENCIL_TEST); // draw each pixel of the shadow once
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      gl.uniform1i(solid.place("flat_"), 1);
      drawSolids(picture.items, picture.shadow);
      gl.disable(gl.STENCIL_TEST);
      gl.enable(gl.DEPTH_TEST);
      gl.uniform1i(solid.place("flat_"), 0);
      drawSolids(picture.items, null);
      drawLines(picture.lines, camera.both);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.useProgram(solid.made);
      gl.bindVertexArray(solidArrays);
      drawSolids(picture.marks, null);
    },
  };
}
