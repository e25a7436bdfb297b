// The map: tracks from above over the ground, with a scale bar and a north arrow; it follows the cursor.
import { listen } from "./gestures.js";

const MARGIN = 0.12, LEAST = 6; // metres that are shown

export class MapPanel {
  constructor(canvas, { north, onseek }) {
    this.canvas = canvas; this.north = north; this.onseek = onseek;
    this.tracks = []; this.grounds = new Map(); this.centre = [0, 0]; this.scale = null; this.touched = false; this.pose = null;
    listen(canvas, {
      drag: (e, dx, dy) => { if (dx || dy) { this._move(dx, dy); this.dragged = true; } else this.dragged = false; },
      zoom: (factor, x, y) => this._zoom(factor, x, y),
      slide: (dx, dy) => this._move(dx, dy),
    });
    canvas.addEventListener("click", (e) => { if (!this.dragged) this._pick(e.offsetX, e.offsetY); });
    canvas.addEventListener("dblclick", () => { this.touched = false; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get empty() { return !this.tracks.some((t) => t.length > 1) && !this.grounds.size; }

  setGround(name, painted) { this.grounds.set(name, painted); this.draw(); }

  seek(pose) { this.pose = pose; this._wait(); }

  // Redraw after a change of the ground, the tracks or the view.
  draw() { this.below = null; this._wait(); }

  _wait() { if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this._draw(); }); } }

  _bounds() {
    const all = [[Infinity, Infinity], [-Infinity, -Infinity]];
    const take = ([x, y]) => { if (Number.isFinite(x + y)) [x, y].forEach((v, k) => { all[0][k] = Math.min(all[0][k], v); all[1][k] = Math.max(all[1][k], v); }); };
    for (const track of this.tracks) { const step = Math.max(1, Math.floor(track.length / 2000)); for (let k = 0; k < track.length; k += step) take(track.at(k)); }
    if (all[0][0] === Infinity) for (const { canvas, first, across, down } of this.grounds.values()) for (const [c, r] of [[0, 0], [canvas.width, canvas.height]]) take([0, 1].map((k) => first[k] + c * across[k] + r * down[k]));
    return all[0][0] === Infinity ? [[-5, -5], [5, 5]] : all;
  }

  _fit(width, height) {
    const [low, high] = this._bounds(), size = [0, 1].map((k) => Math.max(high[k] - low[k], LEAST));
    this.centre = [0, 1].map((k) => (low[k] + high[k]) / 2);
    this.scale = Math.min(width / size[0], height / size[1]) * (1 - 2 * MARGIN);
  }

  _place(x, y) { return [this.canvas.clientWidth / 2 + (x - this.centre[0]) * this.scale, this.canvas.clientHeight / 2 - (y - this.centre[1]) * this.scale]; }

  _move(dx, dy) { this.touched = true; this.centre = [this.centre[0] - dx / this.scale, this.centre[1] + dy / this.scale]; this.draw(); }

  _zoom(factor, x, y) {
    const dx = x - this.canvas.clientWidth / 2, dy = y - this.canvas.clientHeight / 2, before = this.scale;
    this.touched = true; this.scale = Math.min(1e4, Math.max(1e-4, this.scale * factor));
    const shift = 1 / before - 1 / this.scale;
    this.centre = [this.centre[0] + dx * shift, this.centre[1] - dy * shift];
    this.draw();
  }

  // Seek to the time at which the robot was nearest to a point.
  _pick(x, y) {
    let best = 30 ** 2, time = null;
    for (const track of this.tracks) for (let k = 0; k < track.length; k++) {
      const [px, py] = this._place(...track.at(k)), far = (px - x) ** 2 + (py - y) ** 2;
      if (far < best) { best = far; time = track.time(k); }
    }
    if (time !== null) this.onseek(time);
  }

  _draw() {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !height) return;
    this.below ??= this._drawBelow(width, height, ratio);
    this.canvas.width = width * ratio; this.canvas.height = height * ratio;
    const g = this.canvas.getContext("2d");
    g.drawImage(this.below, 0, 0);
    g.scale(ratio, ratio);
    if (this.pose) this._drawRobot(g);
  }

  // The static part is drawn once.
  _drawBelow(width, height, ratio) {
    if (!this.touched) this._fit(width, height);
    const below = new OffscreenCanvas(Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))), g = below.getContext("2d");
    g.scale(ratio, ratio);
    for (const ground of this.grounds.values()) this._drawGround(g, ratio, ground);
    for (const track of [...this.tracks].reverse()) this._drawTrack(g, track);
    this._drawScale(g, width, height);
    return below;
  }

  _drawGround(g, ratio, { canvas, first, across, down }) {
    const [x, y] = this._place(first[0] - (across[0] + down[0]) / 2, first[1] - (across[1] + down[1]) / 2), s = this.scale;
    g.save();
    g.globalAlpha = 0.7;
    g.setTransform(ratio * s * across[0], -ratio * s * across[1], ratio * s * down[0], -ratio * s * down[1], ratio * x, ratio * y);
    g.drawImage(canvas, 0, 0);
    g.restore();
  }

  _drawTrack(g, track) {
    g.strokeStyle = track.colour; g.lineWidth = track.kind === "truth" ? 1.5 : 2; g.setLineDash(track.kind === "truth" ? [4, 3] : []);
    g.lineJoin = "round";  // mitred joins of a noisy track would exceed the noise
    g.beginPath();
    let last = null;
    for (let k = 0; k < track.length; k++) {
      const [x, y] = this._place(...track.at(k));
      if (!Number.isFinite(x + y)) { last = null; continue; }
      if (last && Math.abs(x - last[0]) + Math.abs(y - last[1]) < 0.7 && k + 1 < track.length) continue;
      if (last) g.lineTo(x, y); else g.moveTo(x, y);
      last = [x, y];
    }
    g.stroke(); g.setLineDash([]);
  }

  // An arrow in the direction of the robot.
  _drawRobot(g) {
    const m = this.pose, [x, y] = this._place(m[3], m[7]), angle = Math.atan2(-m[4], m[0]);
    g.save();
    g.translate(x, y); g.rotate(angle);
    g.beginPath(); g.moveTo(11, 0); g.lineTo(-7, 6); g.lineTo(-4, 0); g.lineTo(-7, -6); g.closePath();
    g.fillStyle = "#d55e00"; g.strokeStyle = "#fff"; g.lineWidth = 1.5; g.stroke(); g.fill();
    g.restore();
  }

  _drawScale(g, width, height) {
    const ink = getComputedStyle(document.body).color, paper = getComputedStyle(document.documentElement).getPropertyValue("--paper");
    const wanted = 0.25 * width / this.scale, power = 10 ** Math.floor(Math.log10(wanted)), length = power * [5, 2, 1].find((k) => k * power <= wanted);
    const text = length >= 1000 ? `${length / 1000} km` : length >= 1 ? `${length} m` : `${Math.round(100 * length)} cm`, x = 12, y = height - 12;
    const label = (words, at, up, align) => { g.textAlign = align; g.lineWidth = 3; g.strokeStyle = paper; g.strokeText(words, at, up); g.fillText(words, at, up); };
    g.font = "11px system-ui, sans-serif"; g.fillStyle = ink;
    g.fillRect(x, y - 1.5, length * this.scale, 3); g.fillRect(x, y - 5, 1.5, 7); g.fillRect(x + length * this.scale - 1.5, y - 5, 1.5, 7);
    label(text, x, y - 8, "left");
    label(this.north ? "N ↑" : "y ↑ x →", width - 10, 18, "right");
  }
}
