// The robot: its meshes and frames, which follow its pose and joints. Arms without meshes are thin rods.
import { identity, multiply } from "./matrices.js";
import { bytes } from "./samples.js";

const ROLES = { body: [0.86, 0.55, 0.25, 1], wheel: [0.28, 0.30, 0.33, 1] };
const AXES = [[0.8, 0.2, 0.2, 1], [0.2, 0.6, 0.2, 1], [0.2, 0.3, 0.9, 1]];
const AXIS = 0.25, ROD = 0.03;

export class Robot {
  constructor(scene, space) {
    this.scene = scene; this.space = space; this.pose = identity(); this.asked = null; this.shown = null;
    this.places = new Map(scene.frames.map(({ name, matrix }) => [name, matrix]));
    this.moving = new Set(scene.moving.map(({ name }) => name)); this.dressed = scene.solids.some(({ frame }) => this.moving.has(frame));
    this.parents = [...scene.frames, ...scene.moving].filter(({ parent }) => parent);
    if (!scene.solids.length) this._drawArrow();
    this._drawFrames();
  }

  // Largest distance of its frames from the body.
  get reach() { return Math.max(0, ...[...this.places.values()].map((m) => Math.hypot(m[3], m[7], m[11]))); }

  // Request the meshes in the background.
  async open() {
    await Promise.all(this.scene.solids.map(async ({ frame, role }, n) => {
      this.space.setSurface(`solid${n}`, new Float32Array(await bytes(`solid/${n}`)), { colour: ROLES[role] });
    }));
    this.move(this.pose);
  }

  move(pose) {
    this.pose = pose;
    this.space.move("robot", multiply(pose, this.scene.stance));
    for (const name of ["arms", "links", "axis0", "axis1", "axis2"]) this.space.move(name, pose);
    this.scene.solids.forEach(({ frame }, n) => {
      const place = this.places.get(frame);
      this.space.hide(`solid${n}`, !place);
      if (place) this.space.move(`solid${n}`, multiply(pose, place));
    });
  }

  // Request the poses of moving frames; only the newest time counts.
  async seek(time) {
    if (!this.scene.moving.length) return;
    this.asked = time;
    if (this.busy) return;
    this.busy = true;
    while (this.shown !== this.asked) {
      this.shown = this.asked;
      this._place(new Float32Array(await bytes(`frames/${this.shown}`)));
    }
    this.busy = false;
  }

  _place(numbers) {
    this.scene.moving.forEach(({ name }, n) => {
      const matrix = Array.from(numbers.subarray(16 * n, 16 * n + 16));
      if (Number.isNaN(matrix[0])) this.places.delete(name); else this.places.set(name, matrix);
    });
    this._drawFrames();
    this.move(this.pose);
  }

  // Without meshes, an arrow of one metre shows the direction of the robot.
  _drawArrow() {
    const c = [[-.5, -.3, 0], [.5, -.3, 0], [.5, .3, 0], [-.5, .3, 0], [.9, 0, 0]], edges = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 4], [2, 4]];
    this.space.set("robot", "lines", new Float32Array(edges.flatMap(([a, b]) => [...c[a], 0, ...c[b], 0])), this.pose, [0.85, 0.37, 0.01, 1]);
  }

  // Each frame is three short lines, x red, y green, z blue; a grey line leads to its parent.
  _drawFrames() {
    AXES.forEach((colour, axis) => {
      const rows = [...this.places.values()].flatMap((m) => [m[3], m[7], m[11], 0, m[3] + AXIS * m[axis], m[7] + AXIS * m[4 + axis], m[11] + AXIS * m[8 + axis], 0]);
      this.space.set(`axis${axis}`, "lines", new Float32Array(rows), this.pose, colour);
    });
    const links = this.parents.filter(({ name, parent }) => this.places.has(name) && this.places.has(parent));
    const ends = links.map(({ name, parent }) => [parent, name].map((each) => { const m = this.places.get(each); return [m[3], m[7], m[11]]; }));
    this.space.set("links", "lines", new Float32Array(ends.flatMap(([a, b]) => [...a, 0, ...b, 0])), this.pose, [0.55, 0.58, 0.6, 1]);
    const arms = ends.filter((_, n) => this.moving.has(links[n].name));
    if (arms.length && !this.dressed) this.space.setSurface("arms", new Float32Array(arms.flatMap(([a, b]) => rod(a, b))), { matrix: this.pose, colour: ROLES.body });
  }
}

// The four sides of a thin rod between two points, as triangles.
function rod(a, b) {
  const along = b.map((v, i) => v - a[i]), length = Math.hypot(...along) || 1, u = along.map((v) => v / length);
  const other = Math.abs(u[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], cross = (p, q) => [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]];
  const v = cross(u, other).map((x) => x * ROD / (Math.hypot(...cross(u, other)) || 1)), w = cross(u, v);
  const corner = (p, k) => p.map((x, i) => x + [v, w, v.map((y) => -y), w.map((y) => -y)][k % 4][i]);
  return [0, 1, 2, 3].flatMap((k) => [corner(a, k), corner(b, k), corner(b, k + 1), corner(a, k), corner(b, k + 1), corner(a, k + 1)].flat());
}
