// A trajectory: rows of seconds, x, y, z and a quaternion, which may still grow.
import { apply, identity, multiply, pose } from "./matrices.js";
import { indexAt } from "./samples.js";

const WIDTH = 8, MOST_LINES = 3000;
// Colours for readers with colour blindness (Okabe and Ito).
const RUNS = ["#d55e00", "#cc79a7", "#009e73", "#e69f00", "#56b4e9"];
const KINDS = { truth: "#8a8f94", measured: "#0b6fa4" };
const rgb = (hex) => [...[1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255), 1];
let runs = 0;

export class Track {
  constructor({ name, kind }, rows = new Float64Array(0)) {
    this.name = name; this.kind = kind; this.rows = rows; this.matrix = identity();
    this.colour = KINDS[kind] ?? RUNS[runs++ % RUNS.length];
  }

  get length() { return this.rows.length / WIDTH; }

  append(rows) {
    const all = new Float64Array(this.rows.length + rows.length);
    all.set(this.rows); all.set(rows, this.rows.length);
    this.rows = all;
  }

  // x, y, z of a pose in the scene.
  at(k) { return apply(this.matrix, this.rows[WIDTH * k + 1], this.rows[WIDTH * k + 2], this.rows[WIDTH * k + 3]); }

  time(k) { return this.rows[WIDTH * k]; }

  // T_scene_body at a time, between the poses around it; null without any.
  poseAt(time) {
    const r = this.rows;
    if (!r.length) return null;
    const a = WIDTH * indexAt(r, time, WIDTH), b = Math.min(a + WIDTH, r.length - WIDTH), span = r[b] - r[a];
    const f = span > 0 ? Math.min(1, Math.max(0, (time - r[a]) / span)) : 0;
    const dot = [4, 5, 6, 7].reduce((sum, i) => sum + r[a + i] * r[b + i], 0), sign = dot < 0 ? -1 : 1;
    const mix = (i, s = 1) => (1 - f) * r[a + i] + f * s * r[b + i], q = [4, 5, 6, 7].map((i) => mix(i, sign)), n = Math.hypot(...q) || 1;
    return multiply(this.matrix, pose(mix(1), mix(2), mix(3), ...q.map((v) => v / n)));
  }

  draw(space, id) {
    const step = Math.max(1, Math.floor(this.length / MOST_LINES)), chosen = [];
    for (let k = 0; k < this.length; k += step) chosen.push(this.rows.subarray(WIDTH * k + 1, WIDTH * k + 4));
    const line = new Float32Array(Math.max(0, chosen.length - 1) * 8);
    for (let k = 0; k + 1 < chosen.length; k++) { line.set(chosen[k], 8 * k); line.set(chosen[k + 1], 8 * k + 4); }
    space.set(id, "lines", line, this.matrix, rgb(this.colour));
  }
}
