// The page of `transect view`: one time, from which pictures, points, plots and strips follow.
"use strict";

const $ = (id) => document.getElementById(id);
const STATES = { OK: "#3a9d8f", SUSPECT: "#e2b13c", BAD: "#c2452d", UNKNOWN: "#9aa1a7" };
const PATHS = { truth: [0.55, 0.55, 0.55, 1], measured: [0.04, 0.44, 0.64, 1], run: [0.85, 0.37, 0.01, 1] };
const KEPT = 40, STRIP = 12, LABEL = 150;
const bytes = async (path) => { const r = await fetch(path); if (!r.ok) throw new Error(await r.text()); return r.arrayBuffer(); };

// The samples of one stream of pictures or points: which one belongs to a time, asked for once, the last few kept.
class Samples {
  constructor(number, show, fail) { Object.assign(this, { number, show, fail, times: null, kept: new Map(), shown: -1, asked: -1, busy: false }); }
  async open() { this.times = new Float64Array(await bytes(`times/${this.number}`)); }
  indexAt(time) {
    let low = 0, high = this.times.length;
    while (low < high) { const middle = (low + high) >> 1; if (this.times[middle] <= time) low = middle + 1; else high = middle; }
    return Math.max(0, low - 1);
  }
  // Whether the newest sample is too long ago to be what was there at that time: nothing came, or not yet.
  isOld(time) {
    if (!this.times?.length) return true;
    const step = (this.times.at(-1) - this.times[0]) / Math.max(1, this.times.length - 1), age = time - this.times[this.indexAt(time)];
    return age < -step || age > Math.max(1, 3 * step);
  }
  seek(time) { if (this.times?.length) { this.asked = this.indexAt(time); this._pull(); } }
  // While one sample is under way only the newest wish is remembered, so that scrubbing never queues.
  async _pull() {
    if (this.busy) return;
    this.busy = true;
    while (this.shown !== this.asked) {
      const index = this.asked;
      try { this.show(await this._get(index), this.times[index], index); } catch (error) { this.fail(String(error.message ?? error)); }
      this.shown = index;
    }
    this.busy = false;
  }
  async _get(index) {
    let found = this.kept.get(index);
    if (!found) {
      found = await bytes(`sample/${this.number}/${index}`);
      this.kept.set(index, found);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return found;
  }
}

class Page {
  async open() {
    this.scene = await (await fetch("index.json")).json();
    this.time = 0; this.playing = false; this.verdicts = {}; this.window = [0, this.scene.duration];
    document.title = `${this.scene.name} · transect view`;
    $("name").textContent = this.scene.name;
    $("about").textContent = [this.scene.robot, this.scene.timed ? `${this.scene.duration.toFixed(1)} s from ${this.scene.start}` : "no times: samples by number", `${this.scene.streams.length} streams`].filter(Boolean).join(" · ");
    this.space = new Space($("space"));
    this.samples = this.scene.streams.map((stream, number) => this._samples(stream, number)).filter(Boolean);
    this.plots = [];
    this._fillChoice(); this._listen();
    await Promise.all([this._openPaths(), ...this.samples.map((s) => s.open())]);
    this._openPlots();
    this.seek(0);
    this._askVerdicts();
    document.body.dataset.ready = "yes";
  }

  _samples(stream, number) {
    if (stream.kind === "picture") {
      const figure = document.createElement("figure"), image = new Image(), caption = document.createElement("figcaption");
      image.alt = stream.name; figure.append(image, caption); $("pictures").append(figure);
      const show = (data, time) => {
        URL.revokeObjectURL(image.src);
        image.src = URL.createObjectURL(new Blob([data], { type: "image/jpeg" }));
        caption.textContent = `${stream.name} · ${time.toFixed(3)} s`;
      };
      const samples = new Samples(number, show, (why) => { caption.textContent = `${stream.name}: ${why}`; });
      samples.figure = figure;
      return samples;
    }
    if (stream.kind === "points") {
      const show = (data, time) => {
        const all = new Float32Array(data), mount = Array.from(all.subarray(0, 16));
        this.space.set(`s${number}`, "points", all.subarray(16), matrices.multiply(this._poseAt(time), mount), null, stream.type === "LaserScan" ? 3 : 2);
      };
      return new Samples(number, show, (why) => { $("space-note").textContent = `${stream.name}: ${why}`; });
    }
    return null;
  }

  async _openPaths() {
    this.paths = await Promise.all(this.scene.paths.map(async (path, n) => ({ ...path, rows: new Float32Array(await bytes(`path/${n}`)) })));
    this.paths.forEach((path, n) => {
      const count = path.rows.length / 8, line = new Float32Array(Math.max(0, count - 1) * 8);
      for (let i = 0; i + 1 < count; i++) {
        line.set(path.rows.subarray(8 * i + 1, 8 * i + 4), 8 * i);
        line.set(path.rows.subarray(8 * i + 9, 8 * i + 12), 8 * i + 4);
      }
      this.space.set(`path${n}`, "lines", line, matrices.identity(), PATHS[path.kind]);
    });
    this._drawGrid(); this._drawRobot();
    const said = this.paths.map((p) => `${p.name} (${p.kind})`).join(", ") + `; a square is ${this.cell} m`;
    $("space-note").textContent = this.space.works ? (this.paths.length ? `paths: ${said}` : "no stream says where the robot was: sensors are drawn around it") : "this browser has no WebGL2: no 3-D";
  }

  _drawGrid() {
    let reach = 20;
    for (const path of this.paths) for (let i = 0; i < path.rows.length; i += 8) reach = Math.max(reach, Math.abs(path.rows[i + 1]), Math.abs(path.rows[i + 2]));
    const step = 10 ** Math.max(0, Math.floor(Math.log10(reach / 5))), end = Math.ceil(1.3 * reach / step) * step, lines = [];
    // Cell by cell: a long line that ends behind the camera is not drawn everywhere.
    for (let v = -end; v <= end; v += step) for (let w = -end; w < end; w += step) lines.push(v, w, 0, 0, v, w + step, 0, 0, w, v, 0, 0, w + step, v, 0, 0);
    const line = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    const shade = [1, 3, 5].map((k) => parseInt(line.slice(k, k + 2), 16) / 255);
    this.space.set("grid", "lines", new Float32Array(lines), matrices.identity(), [...shade, 1]);
    this.cell = step;
  }

  // A box of one metre looks where the robot looks; each frame is three short lines: x red, y green, z blue.
  _drawRobot() {
    const c = [[-.5, -.3, 0], [.5, -.3, 0], [.5, .3, 0], [-.5, .3, 0], [.9, 0, 0]];
    const edges = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 4], [2, 4]];
    this.space.set("robot", "lines", new Float32Array(edges.flatMap(([a, b]) => [...c[a], 0, ...c[b], 0])), matrices.identity(), [0.85, 0.37, 0.01, 1]);
    const colours = [[0.8, 0.2, 0.2, 1], [0.2, 0.6, 0.2, 1], [0.2, 0.3, 0.9, 1]];
    this.axes = colours.map((colour, axis) => {
      const rows = this.scene.frames.flatMap(({ matrix: m }) => [m[3], m[7], m[11], 0, m[3] + .3 * m[axis], m[7] + .3 * m[4 + axis], m[11] + .3 * m[8 + axis], 0]);
      this.space.set(`axis${axis}`, "lines", new Float32Array(rows), matrices.identity(), colour);
      return `axis${axis}`;
    });
  }

  _poseAt(time) {
    const rows = this.paths?.[0]?.rows;
    if (!rows?.length) return this.scene.z_down ? [1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1] : matrices.identity();
    let low = 0, high = rows.length / 8;
    while (low < high) { const middle = (low + high) >> 1; if (rows[8 * middle] <= time) low = middle + 1; else high = middle; }
    const a = 8 * Math.max(0, low - 1), b = Math.min(a + 8, rows.length - 8), span = rows[b] - rows[a];
    const f = span > 0 ? Math.min(1, Math.max(0, (time - rows[a]) / span)) : 0;
    const dot = rows[a + 4] * rows[b + 4] + rows[a + 5] * rows[b + 5] + rows[a + 6] * rows[b + 6] + rows[a + 7] * rows[b + 7];
    const mix = (i, sign = 1) => (1 - f) * rows[a + i] + f * sign * rows[b + i], s = dot < 0 ? -1 : 1;
    const q = [4, 5, 6, 7].map((i) => mix(i, s)), n = Math.hypot(...q) || 1;
    return matrices.pose(mix(1), mix(2), mix(3), ...q.map((v) => v / n));
  }

  seek(time) {
    this.time = Math.min(this.scene.duration, Math.max(0, time));
    $("clock").textContent = this.scene.timed ? `${this.time.toFixed(2)} s` : `number ${Math.floor(this.time)}`;
    $("strips").setAttribute("aria-valuenow", this.time.toFixed(2));
    for (const each of this.samples) { each.seek(this.time); each.figure?.classList.toggle("old", each.isOld(this.time)); }
    const pose = this._poseAt(this.time);
    for (const name of ["robot", ...(this.axes ?? [])]) this.space.move(name, pose);
    this.space.move("grid", [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, pose[11], 0, 0, 0, 1]);
    if (this.following) { this.space.at = [pose[3], pose[7], pose[11]]; this.space.draw(); }
    this._drawStrips(); this._sayVerdict();
    for (const plot of this.plots) plot.draw(this.time, this.window);
  }

  _askVerdicts() {
    fetch("verdicts.json").then((r) => r.json()).then((found) => {
      this.verdicts = found.streams; this.judged = found.done;
      this._drawStrips(); this._sayVerdict();
      if (!found.done) setTimeout(() => this._askVerdicts(), 1000);
    });
  }

  _sayVerdict() {
    const bad = Object.entries(this.verdicts).flatMap(([name, windows]) => windows.filter(([a, b, state]) => a <= this.time && this.time < b && state === "BAD").map(([, , , why]) => `${name} BAD (${why})`));
    $("verdict").textContent = bad.join(", ") || (this.judged ? "" : "judging the sensors ...");
    $("verdict").style.color = bad.length ? STATES.BAD : "";
  }

  _drawStrips() {
    const canvas = $("strips"), rows = this.scene.streams.length, ratio = window.devicePixelRatio || 1, most = Math.min(rows, 16);
    canvas.style.height = `${most * STRIP + 4}px`;
    canvas.width = canvas.clientWidth * ratio; canvas.height = (most * STRIP + 4) * ratio;
    const g = canvas.getContext("2d"), left = this.left = Math.min(LABEL, canvas.clientWidth * 0.3), width = canvas.clientWidth - left;
    const x = (t) => left + (t / (this.scene.duration || 1)) * width, ink = getComputedStyle(document.body).color;
    g.scale(ratio, ratio); g.font = "10px system-ui, sans-serif"; g.textBaseline = "middle";
    this.scene.streams.slice(0, most).forEach((stream, n) => {
      const y = n * STRIP + 2;
      g.fillStyle = ink; g.fillText(stream.name, 0, y + STRIP / 2, left - 8);
      g.fillStyle = "#8b959c66"; g.fillRect(x(stream.span[0]), y + 2, Math.max(1, x(stream.span[1]) - x(stream.span[0])), STRIP - 4);
      for (const [a, b, state] of this.verdicts[stream.name] ?? []) { g.fillStyle = STATES[state]; g.fillRect(x(a), y + 2, Math.max(1, x(Math.min(b, this.scene.duration)) - x(a)), STRIP - 4); }
    });
    g.fillStyle = ink; g.fillRect(x(this.time) - 0.75, 0, 1.5, most * STRIP + 4);
  }

  _fillChoice() {
    this.choices = this.scene.streams.flatMap((stream, number) => stream.curves.map((curve, which) => ({ number, which, name: `${stream.name} ${curve.label}`, unit: curve.unit })));
    $("curve").append(new Option("add ...", ""), ...this.choices.map((each, n) => new Option(each.name, n)));
  }

  _openPlots() {
    const wanted = ["speed", "velocity", "vx", "acc_x", "gyro_z", "alt", "x"];
    const rank = ({ name }) => { const k = wanted.findIndex((w) => name.endsWith(` ${w}`) || name.includes(` ${w}[0]`)); return k < 0 ? 99 : k; };
    [...this.choices].sort((a, b) => rank(a) - rank(b)).slice(0, 3).forEach((choice) => this._addPlot(choice));
    if (!this.choices.length) $("plots").textContent = "No stream has numbers to plot.";
  }

  _addPlot(choice) { const plot = new Plot(choice, this); this.plots.push(plot); plot.load(this.window); }

  _listen() {
    const strips = $("strips");
    const drag = (e) => { if (e.buttons || e.type === "pointerdown") this.seek((e.offsetX - this.left) / (strips.clientWidth - this.left) * this.scene.duration); };
    strips.addEventListener("pointerdown", (e) => { strips.setPointerCapture(e.pointerId); drag(e); });
    strips.addEventListener("pointermove", drag);
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("top").addEventListener("click", () => { this.space.tilt = 1.57; this.space.turn = -Math.PI / 2; this.space.draw(); });
    this.following = true;
    const follow = (on) => { this.following = on; $("follow").setAttribute("aria-pressed", on); if (on) this.seek(this.time); };
    $("follow").addEventListener("click", () => follow(!this.following));
    this.space.onpan = () => follow(false);
    $("curve").addEventListener("change", (e) => { if (e.target.value !== "") this._addPlot(this.choices[e.target.value]); e.target.value = ""; });
    addEventListener("resize", () => this.seek(this.time));
    addEventListener("keydown", (e) => {
      if (e.target.tagName === "SELECT" || (e.target.tagName === "BUTTON" && e.key === " ")) return;
      const step = this.scene.duration / 100, first = this.samples[0];
      const next = (by) => first?.times?.length ? first.times[Math.min(first.times.length - 1, Math.max(0, first.indexAt(this.time) + by))] : this.time + by * 0.1;
      const keys = { " ": () => this.play(!this.playing), ArrowLeft: () => this.seek(this.time - step), ArrowRight: () => this.seek(this.time + step),
        ",": () => this.seek(next(-1)), ".": () => this.seek(next(1)), Home: () => this.seek(0), End: () => this.seek(this.scene.duration),
        t: () => $("top").click(), f: () => $("follow").click() };
      if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
    });
  }

  play(on) {
    this.playing = on; $("play").textContent = on ? "pause" : "play";
    let last = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      this.seek(this.time + (now - last) / 1000 * Number($("speed").value)); last = now;
      if (this.time >= this.scene.duration) this.play(false); else requestAnimationFrame(tick);
    };
    if (on) { if (this.time >= this.scene.duration) this.seek(0); requestAnimationFrame(tick); }
  }

  zoom(window) { this.window = window; for (const plot of this.plots) plot.load(window); }
}

class Plot {
  constructor(choice, page) {
    this.choice = choice; this.page = page; this.data = new Float32Array(0);
    this.canvas = document.createElement("canvas"); this.canvas.className = "plot";
    this.canvas.setAttribute("role", "img"); this.canvas.setAttribute("aria-label", choice.name);
    $("plots").append(this.canvas);
    const time = (e) => page.window[0] + Math.max(0, e.offsetX - 52) / Math.max(1, this.canvas.clientWidth - 52) * (page.window[1] - page.window[0]);
    const seek = (e) => { if (e.buttons || e.type === "pointerdown") page.seek(time(e)); };
    this.canvas.addEventListener("pointerdown", seek); this.canvas.addEventListener("pointermove", seek);
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const at = time(e), f = Math.exp(e.deltaY * 0.002), [a, b] = page.window, all = page.scene.duration;
      const window = [Math.max(0, at - (at - a) * f), Math.min(all, at + (b - at) * f)];
      if (window[1] - window[0] > 0.05) page.zoom(window);
    }, { passive: false });
  }
  async load([from, to]) {
    this.data = new Float32Array(await bytes(`curve/${this.choice.number}/${this.choice.which}/${from}/${to}`));
    this.draw(this.page.time, this.page.window);
  }
  draw(time, [from, to]) {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = 96, left = 52, ink = getComputedStyle(document.body).color;
    this.canvas.width = width * ratio; this.canvas.height = height * ratio;
    const g = this.canvas.getContext("2d");
    g.scale(ratio, ratio); g.font = "10px system-ui, sans-serif"; g.fillStyle = ink;
    let low = Infinity, high = -Infinity, now = NaN;
    for (let i = 0; i < this.data.length; i += 2) { low = Math.min(low, this.data[i + 1]); high = Math.max(high, this.data[i + 1]); if (this.data[i] <= time) now = this.data[i + 1]; }
    const unit = this.choice.unit ? ` ${this.choice.unit}` : "";
    g.fillText(`${this.choice.name}${Number.isNaN(now) ? "" : ` = ${now.toPrecision(4)}${unit}`}`, left, 11);
    if (!this.data.length) { g.fillText("nothing measured here", left, height / 2); return; }
    const x = (t) => left + (t - from) / (to - from || 1) * (width - left), y = (v) => height - 8 - (v - low) / (high - low || 1) * (height - 28);
    g.fillText(high.toPrecision(3), 0, y(high) + 3); g.fillText(low.toPrecision(3), 0, y(low) + 3);
    g.strokeStyle = "#0b6fa4"; g.lineWidth = 1; g.beginPath();
    for (let i = 0; i < this.data.length; i += 2) g.lineTo(x(this.data[i]), y(this.data[i + 1]));
    g.stroke();
    if (from <= time && time <= to) g.fillRect(x(time) - 0.5, 14, 1, height - 18);
  }
}

const page = new Page();
page.open().catch((error) => { $("about").textContent = `cannot be shown: ${error.message ?? error}`; document.body.dataset.ready = "failed"; });
