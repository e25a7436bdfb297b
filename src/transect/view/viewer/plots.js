// Signals over time with their extremes kept; wheel or pinch zooms, a drag seeks.
// The strips below have the same axis of time, so that their cursor continues those of the plots.
import { listen } from "./gestures.js";
import { bytes } from "./samples.js";

const HEIGHT = 92, SHORTEST = 0.05, LABEL = 160;
const WANTED = ["speed", "velocity", "vx", "acc_x", "gyro_z", "alt", "x"];

// Left end of the time axis in a canvas of a width: names of strips and numbers of plots are left of it.
const leftOf = (width) => Math.min(LABEL, 0.22 * width);

export class Plots {
  constructor(element, chooser, page) {
    this.element = element; this.page = page; this.all = []; this.window = [0, page.scene.duration];
    this.choices = page.scene.streams.flatMap((stream, number) => stream.curves.map((curve, which) => (
      { name: `${stream.name} ${curve.label}`, unit: curve.unit, load: async ([a, b]) => new Float32Array(await bytes(`curve/${number}/${which}/${a}/${b}`)) })));
    this.chooser = chooser;
    chooser.append(new Option("add ...", ""), ...this.choices.map((each, n) => new Option(each.name, n)));
    chooser.addEventListener("change", (e) => { if (e.target.value !== "") this.add(this.choices[e.target.value]); e.target.value = ""; });
  }

  // The initial curves.
  open(most) {
    const rank = ({ name }) => { const k = WANTED.findIndex((w) => name.endsWith(` ${w}`) || name.includes(` ${w}[0]`)); return k < 0 ? WANTED.length : k; };
    [...this.choices].sort((a, b) => rank(a) - rank(b)).slice(0, most).forEach((choice) => this.add(choice));
    this.element.dataset.empty = this.choices.length ? "" : "No stream has numbers to plot.";
  }

  // A choice has a name, a unit, and `load(window)`, which gives seconds and values in turn.
  offer(choice) { this.chooser.append(new Option(choice.name, this.choices.push(choice) - 1)); }

  add(choice, first = false) {
    const plot = new Plot(choice, this);
    this.all.push(plot);
    if (first) this.element.prepend(plot.canvas); else this.element.append(plot.canvas);
    plot.load();
    return plot;
  }

  // A time outside the window moves the window.
  seek(time) {
    const [a, b] = this.window;
    this.time = time;
    if (time < a || time > b) this.slide(time - (a + b) / 2);
    for (const plot of this.all) plot.draw();
  }

  // Where the axis of time begins and ends, in pixels of the page's window.
  get extent() {
    const css = getComputedStyle(this.element), pad = parseFloat(css.paddingLeft), width = this.element.clientWidth - pad - parseFloat(css.paddingRight);
    const left = this.element.getBoundingClientRect().left + pad;
    return [left + leftOf(width), left + width];
  }

  // The time at a place on a canvas, and the place of a time.
  timeAt(x, canvas) {
    const [left, right] = this.extent, [a, b] = this.window;
    return a + Math.min(1, Math.max(0, (x + canvas.getBoundingClientRect().left - left) / Math.max(1, right - left))) * (b - a);
  }

  placeOf(time, canvas) {
    const [left, right] = this.extent, [a, b] = this.window;
    return left + (time - a) / (b - a || 1) * (right - left) - canvas.getBoundingClientRect().left;
  }

  zoom(factor, at) {
    const [a, b] = this.window, window = [Math.max(0, at - (at - a) / factor), Math.min(this.page.scene.duration, at + (b - at) / factor)];
    if (window[1] - window[0] < SHORTEST) return;
    this._show(window);
  }

  slide(seconds) {
    const [a, b] = this.window, by = Math.max(-a, Math.min(this.page.scene.duration - b, seconds));
    if (by) this._show([a + by, b + by]);
  }

  _show(window) {
    this.window = window;
    for (const plot of this.all) plot.load();
    this.page.strips.refresh();
  }
}

class Plot {
  constructor(choice, plots) {
    this.choice = choice; this.plots = plots; this.data = new Float32Array(0);
    this.canvas = document.createElement("canvas"); this.canvas.className = "plot";
    this.canvas.setAttribute("role", "img"); this.canvas.setAttribute("aria-label", choice.name);
    listen(this.canvas, {
      drag: (e) => plots.page.seek(plots.timeAt(e.offsetX, this.canvas)),
      zoom: (factor, x) => plots.zoom(factor, plots.timeAt(x, this.canvas)),
      slide: (dx) => plots.slide(-dx / this._width() * (plots.window[1] - plots.window[0])),
    });
  }

  _width() { return Math.max(1, this.canvas.clientWidth - leftOf(this.canvas.clientWidth)); }

  // During a request, only the newest window is remembered.
  async load() {
    this.stale = true;
    this.canvas.setAttribute("aria-valuetext", this.plots.window.map((t) => `${t.toFixed(2)} s`).join(" to "));
    if (this.busy) return;
    this.busy = true;
    while (this.stale) { this.stale = false; this.data = await this.choice.load(this.plots.window); this.curve = null; }
    this.busy = false;
    this.draw();
  }

  // The curve is drawn once; the cursor over it when it moves.
  draw() {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth;
    if (!width) return;
    if (!this.curve || this.curve.width !== Math.round(width * ratio)) this._drawCurve(width, ratio);
    if (this.canvas.width !== this.curve.width || this.canvas.height !== this.curve.height) { this.canvas.width = this.curve.width; this.canvas.height = this.curve.height; }
    const g = this.canvas.getContext("2d"), time = this.plots.time ?? 0, [from, to] = this.plots.window;
    g.setTransform(1, 0, 0, 1, 0, 0); g.clearRect(0, 0, this.canvas.width, this.canvas.height); g.drawImage(this.curve, 0, 0); g.scale(ratio, ratio);
    g.font = "11px system-ui, sans-serif"; g.fillStyle = getComputedStyle(document.body).color;
    const now = this._valueAt(time), unit = this.choice.unit ? ` ${this.choice.unit}` : "";
    g.fillText(`${this.choice.name}${Number.isNaN(now) ? "" : ` = ${now.toPrecision(4)}${unit}`}`, leftOf(width), 11);
    if (from <= time && time <= to) g.fillRect(this.plots.placeOf(time, this.canvas) - 0.5, 14, 1, HEIGHT - 18);
  }

  _valueAt(time) {
    let low = 0, high = this.data.length / 2;
    while (low < high) { const middle = (low + high) >> 1; if (this.data[2 * middle] <= time) low = middle + 1; else high = middle; }
    return low ? this.data[2 * low - 1] : NaN;
  }

  _drawCurve(width, ratio) {
    this.curve = new OffscreenCanvas(Math.round(width * ratio), Math.round(HEIGHT * ratio));
    const g = this.curve.getContext("2d"), d = this.data, [from, to] = this.plots.window, css = getComputedStyle(document.documentElement);
    const left = leftOf(width);
    g.scale(ratio, ratio); g.font = "11px system-ui, sans-serif"; g.fillStyle = css.getPropertyValue("--soft");
    if (!d.length) { g.fillText("no data in this interval", left, HEIGHT / 2); return; }
    let low = Infinity, high = -Infinity;
    for (let i = 1; i < d.length; i += 2) { low = Math.min(low, d[i]); high = Math.max(high, d[i]); }
    const x = (t) => left + (t - from) / (to - from || 1) * (width - left), y = (v) => high === low ? HEIGHT / 2 + 4 : HEIGHT - 8 - (v - low) / (high - low) * (HEIGHT - 28);
    g.textAlign = "right"; g.fillText(high.toPrecision(3), left - 6, y(high) + 4);
    if (high !== low) g.fillText(low.toPrecision(3), left - 6, y(low) + 4);
    g.strokeStyle = css.getPropertyValue("--line"); g.lineWidth = 1; g.strokeRect(left, 15, width - left - 1, HEIGHT - 18);
    g.strokeStyle = css.getPropertyValue("--accent"); g.lineWidth = 1.2; g.beginPath();
    for (let i = 0; i < d.length; i += 2) g.lineTo(x(d[i]), y(d[i + 1]));
    g.stroke();
  }
}
