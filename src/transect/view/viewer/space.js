// Points, lines and lit surfaces in 3-D by WebGL2: an orbit camera, and buffers that are drawn with a matrix each.
import { listen } from "./gestures.js";
import { identity, lookAt, multiply, perspective } from "./matrices.js";

const VERTEX = `#version 300 es
layout(location=0) in vec4 point;   // w: a value from 0 to 1
layout(location=1) in vec4 colours; // of the corners of a surface, where it has them
uniform mat4 view, place; uniform float size; uniform vec4 colour; out vec4 shade; out vec3 at;
vec3 scale(float v) {  // dark blue over green to yellow, for readers with colour blindness
  return mix(mix(vec3(.20,.22,.55), vec3(.13,.57,.55), smoothstep(0.,.5,v)), vec3(.95,.85,.20), smoothstep(.5,1.,v)); }
void main() {
  vec4 there = place * vec4(point.xyz, 1.); at = there.xyz;
  gl_Position = view * there; gl_PointSize = size;
  shade = colour.a > 0. ? colour : colours.a > 0. ? colours : vec4(scale(point.w), 1.); }`;
// The normal of a surface follows from the derivatives of its position.
const FRAGMENT = `#version 300 es
precision highp float; in vec4 shade; in vec3 at; uniform float lit; uniform vec3 eye; out vec4 result;
void main() {
  result = shade;
  if (lit > 0.) {
    vec3 n = normalize(cross(dFdx(at), dFdy(at))); if (dot(n, eye - at) < 0.) n = -n;
    result.rgb *= .45 + .6 * max(0., dot(n, normalize(vec3(.45, -.35, .82)))); } }`;
const HIGHEST = 1.57;

// Whether rendering is in software, where antialiasing would take six times as long.
function isSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2"), known = gl?.getExtension("WEBGL_debug_renderer_info");
  const renderer = known ? String(gl.getParameter(known.UNMASKED_RENDERER_WEBGL)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(renderer);
}

export class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { antialias: !isSoftware(), preserveDrawingBuffer: true });
    this.things = new Map();
    this.at = [0, 0, 0]; this.distance = 12; this.turn = -2.2; this.tilt = 0.6;
    if (this.gl) this._prepare();
    this._listen();
  }

  get works() { return this.gl !== null; }

  // Put a thing of points (x, y, z, value each): kind "points" or "lines"; without a colour, by value.
  set(name, kind, points, matrix = identity(), colour = null, size = 2) {
    if (!this.gl) return;
    const thing = this._thing(name, { kind, matrix, colour, size, width: 4 });
    if (points) { this._fill(thing, "points", this.gl.ARRAY_BUFFER, points); thing.count = points.length / 4; }
    this.draw();
  }

  // Put a surface of corners (x, y, z each): three by three, or as `index` says; `colours` are four bytes a corner.
  setSurface(name, corners, { matrix = identity(), colour = null, colours = null, index = null } = {}) {
    if (!this.gl) return;
    const gl = this.gl, thing = this._thing(name, { kind: "surface", matrix, colour, size: 1, width: 3 });
    this._fill(thing, "points", gl.ARRAY_BUFFER, corners);
    if (colours) this._fill(thing, "colours", gl.ARRAY_BUFFER, colours);
    if (index) this._fill(thing, "index", gl.ELEMENT_ARRAY_BUFFER, index);
    thing.count = index ? index.length : corners.length / 3;
    this.draw();
  }

  move(name, matrix) { const thing = this.things.get(name); if (thing) { thing.matrix = matrix; this.draw(); } }

  hide(name, hidden) { const thing = this.things.get(name); if (thing && thing.hidden !== hidden) { thing.hidden = hidden; this.draw(); } }

  draw() { if (this.gl && !this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this._draw(); }); } }

  lookDown() { this.tilt = HIGHEST; this.turn = -Math.PI / 2; this.draw(); }

  _thing(name, what) {
    const thing = Object.assign(this.things.get(name) ?? {}, what);
    this.things.set(name, thing);
    return thing;
  }

  _fill(thing, part, target, content) {
    thing[part] ??= this.gl.createBuffer();
    this.gl.bindBuffer(target, thing[part]);
    this.gl.bufferData(target, content, this.gl.DYNAMIC_DRAW);
  }

  _prepare() {
    const gl = this.gl, program = gl.createProgram();
    for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, text); gl.compileShader(shader); gl.attachShader(program, shader);
    }
    gl.linkProgram(program); gl.useProgram(program);
    this.places = Object.fromEntries(["view", "place", "size", "colour", "lit", "eye"].map((n) => [n, gl.getUniformLocation(program, n)]));
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
    const lens = perspective(0.9, width / Math.max(height, 1), this.distance / 200, this.distance * 200);
    gl.uniformMatrix4fv(this.places.view, true, multiply(lens, lookAt(eye, this.at, up)));
    gl.uniform3fv(this.places.eye, eye);
    for (const thing of this.things.values()) if (thing.count && !thing.hidden) this._drawThing(thing, ratio);
  }

  _drawThing(thing, ratio) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, thing.points);
    gl.vertexAttribPointer(0, thing.width, gl.FLOAT, false, 0, 0);
    if (thing.colours) {
      gl.enableVertexAttribArray(1);
      gl.bindBuffer(gl.ARRAY_BUFFER, thing.colours);
      gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    } else { gl.disableVertexAttribArray(1); gl.vertexAttrib4f(1, 0, 0, 0, 0); }
    gl.uniformMatrix4fv(this.places.place, true, thing.matrix);
    gl.uniform1f(this.places.size, thing.size * ratio);
    gl.uniform1f(this.places.lit, thing.kind === "surface" ? 1 : 0);
    gl.uniform4fv(this.places.colour, thing.colour ?? [0, 0, 0, 0]);
    if (thing.index) { gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, thing.index); gl.drawElements(gl.TRIANGLES, thing.count, gl.UNSIGNED_INT, 0); }
    else gl.drawArrays({ points: gl.POINTS, lines: gl.LINES, surface: gl.TRIANGLES }[thing.kind], 0, thing.count);
  }

  _listen() {
    const turn = (dx, dy) => { this.turn -= dx * 0.008; this.tilt = Math.min(HIGHEST, Math.max(-1.5, this.tilt + dy * 0.008)); };
    listen(this.canvas, {
      drag: (e, dx, dy) => { if (e.shiftKey) this.pan(dx, dy); else turn(dx, dy); this.draw(); },
      zoom: (factor) => { this.distance /= factor; this.draw(); },
      slide: (dx, dy) => { if (dx || dy) this.pan(dx, dy); },
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  pan(dx, dy) {
    const step = this.distance / this.canvas.clientHeight, s = Math.sin(this.turn), c = Math.cos(this.turn);
    this.at = [this.at[0] + step * (s * dx - c * dy), this.at[1] + step * (-c * dx - s * dy), this.at[2]];
    this.onpan?.();
    this.draw();
  }
}
