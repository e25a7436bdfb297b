// Points and lines in 3-D by WebGL2: an orbit camera, and buffers that are drawn with a matrix each.
"use strict";

const matrices = {
  identity: () => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
  // Row by row, as the server has them: T_a_c = multiply(T_a_b, T_b_c).
  multiply(a, b) {
    const out = new Array(16).fill(0);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) out[4 * i + j] += a[4 * i + k] * b[4 * k + j];
    return out;
  },
  pose(x, y, z, qx, qy, qz, qw) {
    return [
      1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw), x,
      2 * (qx * qy + qz * qw), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qx * qw), y,
      2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx * qx + qy * qy), z,
      0, 0, 0, 1];
  },
  perspective(angle, aspect, near, far) {
    const f = 1 / Math.tan(angle / 2), d = near - far;
    return [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / d, 2 * far * near / d, 0, 0, -1, 0];
  },
  lookAt(eye, at, up) {
    const sub = (a, b) => a.map((v, i) => v - b[i]);
    const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const unit = (a) => { const n = Math.hypot(...a) || 1; return a.map((v) => v / n); };
    const back = unit(sub(eye, at)), right = unit(cross(up, back)), above = cross(back, right);
    return [...right, -dot(right, eye), ...above, -dot(above, eye), ...back, -dot(back, eye), 0, 0, 0, 1];
  },
};

const VERTEX = `#version 300 es
layout(location=0) in vec4 point;  // w: a value from 0 to 1
uniform mat4 whole; uniform float size; uniform vec4 colour; out vec4 shade;
vec3 scale(float v) {  // dark blue over green to yellow: also told apart by those who do not see red
  return mix(mix(vec3(.20,.22,.55), vec3(.13,.57,.55), smoothstep(0.,.5,v)), vec3(.95,.85,.20), smoothstep(.5,1.,v)); }
void main() { gl_Position = whole * vec4(point.xyz, 1.); gl_PointSize = size; shade = colour.a > 0. ? colour : vec4(scale(point.w), 1.); }`;
const FRAGMENT = `#version 300 es
precision mediump float; in vec4 shade; out vec4 result; void main() { result = shade; }`;

class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
    this.things = new Map();
    this.at = [0, 0, 0]; this.distance = 12; this.turn = -2.2; this.tilt = 0.6;
    if (this.gl) this._prepare();
    this._listen();
  }

  get works() { return this.gl !== null; }

  // Put a thing of points (x, y, z, value each): kind "points" or "lines"; without a colour, by value.
  set(name, kind, points, matrix = matrices.identity(), colour = null, size = 2) {
    if (!this.gl) return;
    const gl = this.gl, known = this.things.get(name) ?? { buffer: gl.createBuffer() };
    if (points) {
      gl.bindBuffer(gl.ARRAY_BUFFER, known.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, points, gl.DYNAMIC_DRAW);
      known.count = points.length / 4;
    }
    this.things.set(name, Object.assign(known, { kind, matrix, colour, size }));
    this.draw();
  }

  move(name, matrix) { const thing = this.things.get(name); if (thing) { thing.matrix = matrix; this.draw(); } }

  draw() { if (this.gl && !this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this._draw(); }); } }

  _prepare() {
    const gl = this.gl, program = gl.createProgram();
    for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, text); gl.compileShader(shader); gl.attachShader(program, shader);
    }
    gl.linkProgram(program); gl.useProgram(program);
    this.places = Object.fromEntries(["whole", "size", "colour"].map((n) => [n, gl.getUniformLocation(program, n)]));
    gl.enable(gl.DEPTH_TEST); gl.enableVertexAttribArray(0);
  }

  _draw() {
    const gl = this.gl, ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) { this.canvas.width = width; this.canvas.height = height; }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const c = Math.cos(this.tilt), eye = [this.at[0] + this.distance * c * Math.cos(this.turn),
      this.at[1] + this.distance * c * Math.sin(this.turn), this.at[2] + this.distance * Math.sin(this.tilt)];
    const up = this.tilt > 1.5 ? [-Math.cos(this.turn), -Math.sin(this.turn), 0] : [0, 0, 1];
    const view = matrices.multiply(matrices.perspective(0.9, width / Math.max(height, 1), this.distance / 200, this.distance * 200), matrices.lookAt(eye, this.at, up));
    for (const thing of this.things.values()) {
      if (!thing.count) continue;
      gl.bindBuffer(gl.ARRAY_BUFFER, thing.buffer);
      gl.vertexAttribPointer(0, 4, gl.FLOAT, false, 0, 0);
      gl.uniformMatrix4fv(this.places.whole, true, matrices.multiply(view, thing.matrix));
      gl.uniform1f(this.places.size, thing.size * ratio);
      gl.uniform4fv(this.places.colour, thing.colour ?? [0, 0, 0, 0]);
      gl.drawArrays(thing.kind === "lines" ? gl.LINES : gl.POINTS, 0, thing.count);
    }
  }

  _listen() {
    const fingers = new Map();
    const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
    this.canvas.addEventListener("pointerdown", (e) => { fingers.set(e.pointerId, { x: e.clientX, y: e.clientY }); this.canvas.setPointerCapture(e.pointerId); });
    this.canvas.addEventListener("pointermove", (e) => {
      const before = fingers.get(e.pointerId);
      if (!before) return;
      const two = fingers.size === 2 ? spread() : 0, dx = e.clientX - before.x, dy = e.clientY - before.y;
      fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      if (two) this.distance *= two / Math.max(spread(), 1);
      else if (e.shiftKey) this.pan(dx, dy);
      else { this.turn -= dx * 0.008; this.tilt = Math.min(1.57, Math.max(-1.5, this.tilt + dy * 0.008)); }
      this.draw();
    });
    for (const kind of ["pointerup", "pointercancel"]) this.canvas.addEventListener(kind, (e) => fingers.delete(e.pointerId));
    this.canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.distance *= Math.exp(e.deltaY * 0.001); this.draw(); }, { passive: false });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  pan(dx, dy) {
    const step = this.distance / this.canvas.clientHeight, s = Math.sin(this.turn), c = Math.cos(this.turn);
    this.at = [this.at[0] + step * (s * dx + c * dy * -1), this.at[1] + step * (-c * dx + s * dy * -1), this.at[2]];
    this.onpan?.();
  }
}
