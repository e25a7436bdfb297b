// A strip for each stream: its availability and verdicts.
import { listen } from "./gestures.js";

const STATES = { OK: "#3a9d8f", SUSPECT: "#e2b13c", BAD: "#c2452d", UNKNOWN: "#9aa1a7" };
const STRIP = 12, MOST = 12;

export class Strips {
  constructor(canvas, said, page) {
    this.canvas = canvas; this.said = said; this.page = page; this.verdicts = {}; this.time = 0; this.played = null;
    canvas.setAttribute("aria-valuemin", 0); canvas.setAttribute("aria-valuemax", page.scene.duration);
    listen(canvas, {
      drag: (e) => page.seek(page.plots.timeAt(e.offsetX, canvas)),
      zoom: (factor, x) => page.plots.zoom(factor, page.plots.timeAt(x, canvas)),
    });
    this.ask();
  }

  // Poll for the verdicts until the checks are done.
  async ask() {
    const found = await (await fetch("verdicts.json")).json();
    this.verdicts = found.streams; this.judged = found.done; this.why = found.why ?? "";
    this.refresh();
    if (!found.done) setTimeout(() => this.ask(), 1000);
  }

  // Redraw the strips after a change of verdicts or of the time window.
  refresh() { this.strips = null; this.draw(); }

  seek(time) {
    this.time = time;
    this.canvas.setAttribute("aria-valuenow", time.toFixed(2));
    this.draw();
  }

  // The strips are drawn once; the cursor over them when it moves.
  draw() {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, [from, to] = this.page.plots.window;
    if (!width) return;
    const drawn = [width, ratio, ...this.page.plots.extent].join();
    if (!this.strips || this.drawn !== drawn) { this.drawn = drawn; this._drawStrips(width, ratio); }
    if (this.canvas.width !== this.strips.width || this.canvas.height !== this.strips.height) { this.canvas.width = this.strips.width; this.canvas.height = this.strips.height; }
    const g = this.canvas.getContext("2d"), height = this.strips.height / ratio, x = (t) => this.page.plots.placeOf(t, this.canvas);
    g.setTransform(1, 0, 0, 1, 0, 0); g.clearRect(0, 0, this.canvas.width, this.canvas.height); g.drawImage(this.strips, 0, 0); g.scale(ratio, ratio);
    if (this.played !== null) this._fade(g, Math.max(x(from), x(this.played)), x(to), height);
    g.fillStyle = getComputedStyle(document.body).color;
    if (from <= this.time && this.time <= to) g.fillRect(x(this.time) - 0.5, 0, 1, height);
    this._say();
  }

  // The part not yet played is pale.
  _fade(g, from, to, height) {
    g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper"); g.globalAlpha = 0.65;
    g.fillRect(from, 0, Math.max(0, to - from), height);
    g.globalAlpha = 1;
  }

  // Inputs of the run first.
  _streams() {
    const wired = new Set(this.page.scene.run?.wiring.map(([, stream]) => stream)), shown = this.page.scene.streams.filter((s) => s.samples > 1 || s.kind === "numbers");
    return [...shown.filter((s) => wired.has(s.name)), ...shown.filter((s) => !wired.has(s.name))].slice(0, MOST);
  }

  _drawStrips(width, ratio) {
    const streams = this._streams(), height = streams.length * STRIP + 4, [from, to] = this.page.plots.window;
    this.canvas.style.height = `${height}px`;
    this.strips = new OffscreenCanvas(Math.round(width * ratio), Math.round(height * ratio));
    const g = this.strips.getContext("2d"), x = (t) => this.page.plots.placeOf(Math.min(to, Math.max(from, t)), this.canvas);
    g.scale(ratio, ratio); g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
    streams.forEach((stream, n) => {
      const y = n * STRIP + 2, bar = (a, b) => { if (a <= to && b >= from) g.fillRect(x(a), y + 2, Math.max(1, x(b) - x(a)), STRIP - 4); };
      g.fillStyle = getComputedStyle(document.body).color; g.fillText(stream.name, 0, y + STRIP / 2, x(from) - 8);
      g.fillStyle = "#8b959c66"; bar(...stream.span);
      for (const [a, b, state] of this.verdicts[stream.name] ?? []) { g.fillStyle = STATES[state]; bar(a, b); }
    });
  }

  _say() {
    const now = Object.entries(this.verdicts).flatMap(([name, windows]) => windows.filter(([a, b, state]) => a <= this.time && this.time < b && state === "BAD").map(([, , , why]) => `${name} BAD (${why})`));
    this.said.textContent = now.join(", ") || (this.judged ? this.why : "checking the sensors ...");
    this.said.style.color = now.length ? STATES.BAD : "";
  }
}
