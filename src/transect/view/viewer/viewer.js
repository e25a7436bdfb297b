// The page of `transect view`: images, points, maps, plots and strips at one time.
import { listen } from "./gestures.js";
import { MapPanel } from "./map.js";
import { identity, multiply } from "./matrices.js";
import { Plots } from "./plots.js";
import { Robot } from "./robot.js";
import { Run } from "./run.js";
import { Samples, bytes, indexAt, post } from "./samples.js";
import { Space } from "./space.js";
import { Strips } from "./strips.js";
import { decodeSurface, indexCells, paintCells } from "./surfaces.js";
import { Track } from "./tracks.js";

const $ = (id) => document.getElementById(id);
const UPSIDE_DOWN = [1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1];

class Page {
  async open() {
    this.scene = await (await fetch("index.json")).json();
    this.time = 0; this.playing = false; this.following = true; this.samples = [];
    this._title();
    this.space = new Space($("space"));
    this.map = new MapPanel($("map"), { north: this.scene.north, onseek: (time) => this.seek(time) });
    this.robot = new Robot(this.scene, this.space);
    this.plots = new Plots($("plots"), $("curve"), this);
    this.strips = new Strips($("strips"), $("verdict"), this);
    await Promise.all([this._openTracks(), ...this.scene.streams.map((stream, number) => this._openStream(stream, number))]);
    this.plots.open(this.scene.run ? 1 : 3);
    if (this.scene.run) this.run = new Run(this.scene.run, this);
    this._listen(); this._say();
    if (!this.carrier && this.robot.reach > 0) this.space.distance = Math.max(3, 3 * this.robot.reach);
    this.seek(this.run ? this.run.start : 0);
    document.body.dataset.ready = "yes";
    this._stay();
    await this.robot.open();
  }

  _title() {
    const { name, failures, warnings, robot, timed, duration, start, streams } = this.scene;
    document.title = `${name} · transect view`;
    $("name").textContent = name;
    const said = [...failures.map((text) => `BAD: ${text}`), ...warnings.map((text) => `warning: ${text}`)];
    $("failures").textContent = said.join("\n");
    $("failures").hidden = !said.length;
    $("about").textContent = [robot, timed ? `${duration.toFixed(1)} s from ${start}` : "no timestamps: samples by index", `${streams.length} streams`].filter(Boolean).join(" · ");
  }

  // The server ends when the last page is closed.
  _stay() {
    const id = Math.floor(Math.random() * 2 ** 50);
    post(`here/${id}`);
    addEventListener("pagehide", () => navigator.sendBeacon(`left/${id}`));
    addEventListener("pageshow", (e) => { if (e.persisted) post(`here/${id}`); });
  }

  // Streams

  async _openStream(stream, number) {
    if (stream.kind === "numbers") return;
    const samples = this.addSamples(stream.kind, stream.name, `s${number}`, (index) => `sample/${number}/${index}`, stream.type === "LaserScan" ? 3 : 2);
    samples.times = new Float64Array(await bytes(`times/${number}`));
  }

  // Samples of a stream or of a run's output: images, points or a map.
  addSamples(kind, name, id, address, size = 2) {
    const made = { picture: () => this._picture(name), points: () => this._points(name, id, size), surface: () => this._surface(name, id) }[kind]();
    const samples = new Samples({ address, lasting: kind === "surface", ...made });
    samples.mark = made.mark;
    this.samples.push(samples);
    return samples;
  }

  _picture(name) {
    const figure = document.createElement("figure"), image = new Image(), caption = document.createElement("figcaption");
    image.alt = name; caption.textContent = name; figure.append(image, caption); $("pictures").append(figure);
    const show = async (data, time) => {
      const before = image.src;
      image.src = URL.createObjectURL(new Blob([data], { type: "image/jpeg" }));
      caption.textContent = `${name} · ${time.toFixed(3)} s`;
      await image.decode();
      URL.revokeObjectURL(before);
    };
    return { show, fail: (why) => { caption.textContent = `${name}: ${why}`; }, mark: (old) => figure.classList.toggle("old", old) };
  }

  _points(name, id, size) {
    const show = (data, time) => {
      const all = new Float32Array(data), place = Array.from(all.subarray(1, 17));
      this.space.set(id, "points", all.subarray(17), all[0] ? place : multiply(this.poseAt(time), place), null, size);
    };
    return { show, fail: (why) => this.note(`${name}: ${why}`), mark: (old) => this.space.hide(id, old) };
  }

  _surface(name, id) {
    const show = (data, time) => {
      const found = decodeSurface(data), matrix = found.fixed ? found.matrix : multiply(this.poseAt(time), found.matrix);
      this.space.setSurface(id, found.corners, { matrix, colours: found.colours, index: indexCells(found) });
      this.map.setGround(id, paintCells(found, matrix));
      this.space.hide("grid", true);
      this._showMap(); this._say();
    };
    return { show, fail: (why) => this.note(`${name}: ${why}`), mark: () => {} };
  }

  note(text) { $("space-note").textContent = text; }

  // Paths

  async _openTracks() {
    const tracks = this.scene.paths.map((path) => new Track(path));
    await Promise.all(tracks.map(async (track, n) => { track.rows = new Float32Array(await bytes(`path/${n}`)); }));
    tracks.forEach((track) => this.addTrack(track));
    this.carrier = tracks[this.scene.carrier] ?? null;
    this._drawGrid();
    this._showMap();
  }

  addTrack(track) {
    this.map.tracks.push(track);
    this.drawTrack(track);
    const key = document.createElement("span"), line = document.createElement("i");
    line.style.background = track.colour; key.append(line, `${track.name}${track.name === track.kind ? "" : ` (${track.kind})`}`); $("legend").append(key);
    return track;
  }

  drawTrack(track) { track.draw(this.space, `path${this.map.tracks.indexOf(track)}`); this.map.draw(); this._showMap(); }

  _showMap() { $("map-panel").hidden = this.map.empty; }

  _say() {
    const where = this.map.tracks.length ? "" : "no positions of the robot: sensors are drawn around its frame", square = this.map.grounds.size ? "" : `grid: ${this.cell} m`;
    this.note(this.space.works ? [where, square].filter(Boolean).join("; ") : "this browser has no WebGL2: no 3-D");
  }

  _drawGrid() {
    let reach = 20;
    for (const track of this.map.tracks) for (let k = 0; k < track.length; k++) { const [x, y] = track.at(k); if (Number.isFinite(x + y)) reach = Math.max(reach, Math.abs(x), Math.abs(y)); }
    const step = 10 ** Math.max(0, Math.floor(Math.log10(reach / 5))), end = Math.ceil(1.3 * reach / step) * step, lines = [];
    // Cell by cell: a long line that ends behind the camera is not drawn everywhere.
    for (let v = -end; v <= end; v += step) for (let w = -end; w < end; w += step) lines.push(v, w, 0, 0, v, w + step, 0, 0, w, v, 0, 0, w + step, v, 0, 0);
    const line = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    this.space.set("grid", "lines", new Float32Array(lines), identity(), [...[1, 3, 5].map((k) => parseInt(line.slice(k, k + 2), 16) / 255), 1]);
    this.cell = step;
  }

  poseAt(time) { return this.carrier?.poseAt(time) ?? (this.scene.z_down ? UPSIDE_DOWN : identity()); }

  // Time

  seek(time) {
    this.time = Math.min(this.scene.duration, Math.max(0, time));
    $("clock").textContent = this.scene.timed ? `${this.time.toFixed(2)} s` : `number ${Math.floor(this.time)}`;
    const shown = this.samples.map((each) => { each.mark(each.isOld(this.time)); return each.seek(this.time); }), sought = this.time;
    Promise.all(shown).then(() => { document.body.dataset.shown = sought.toFixed(3); });
    const pose = this.poseAt(this.time);
    this.robot.move(pose); this.robot.seek(this.time);
    this.space.move("grid", [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, pose[11], 0, 0, 0, 1]);
    if (this.following) { this.space.at = [pose[3], pose[7], pose[11]]; this.space.draw(); }
    this.map.seek(this.carrier ? multiply(pose, this.scene.stance) : null);
    this.strips.seek(this.time);
    this.plots.seek(this.time);
  }

  // Step by one sample of the first stream of images or points.
  step(by) {
    const times = this.samples[0]?.times;
    if (!times?.length) return this.seek(this.time + by * this.scene.duration / 1000);
    this.seek(times[Math.min(times.length - 1, Math.max(0, indexAt(times, this.time) + by))]);
  }

  play(on) {
    this.playing = on; $("play").textContent = on ? "pause" : "play";
    let last = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      this.seek(this.time + (now - last) / 1000 * (Number($("speed").value) || 16)); last = now;
      if (this.time >= this.scene.duration) this.play(false); else requestAnimationFrame(tick);
    };
    if (on) { if (this.time >= this.scene.duration) this.seek(0); requestAnimationFrame(tick); }
  }

  follow(on) { this.following = on; $("follow").setAttribute("aria-pressed", on); if (on) this.seek(this.time); }

  _listen() {
    const toggle = () => (this.run ? this.run.toggle() : this.play(!this.playing)), step = this.scene.duration / 100;
    $("play").addEventListener("click", toggle);
    $("top").addEventListener("click", () => this.space.lookDown());
    $("follow").addEventListener("click", () => this.follow(!this.following));
    $("end").addEventListener("click", async () => { await post("close"); document.body.dataset.ready = "ended"; this.play(false); $("about").textContent = "stopped: this page can be closed"; });
    this.space.onpan = () => this.follow(false);
    // A finger that is drawn over the pictures scrubs; their whole width is what the plots show.
    listen($("pictures"), { drag: (e, dx) => { if (dx) this.seek(this.time + dx / $("pictures").clientWidth * (this.plots.window[1] - this.plots.window[0])); }, zoom: (factor) => this.plots.zoom(factor, this.time) });
    addEventListener("resize", () => this.seek(this.time));
    const keys = {
      " ": toggle, ArrowLeft: () => this.seek(this.time - step), ArrowRight: () => this.seek(this.time + step), ",": () => this.step(-1),
      ".": () => (this.run ? this.run.step() : this.step(1)), Home: () => this.seek(0), End: () => this.seek(this.scene.duration),
      t: () => $("top").click(), f: () => $("follow").click(), "+": () => this.plots.zoom(1.5, this.time), "-": () => this.plots.zoom(1 / 1.5, this.time) };
    addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT" || (e.target.tagName === "BUTTON" && e.key === " ")) return;
      if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
    });
  }
}

const page = new Page();
page.open().catch((error) => { $("about").textContent = `error: ${error.message ?? error}`; document.body.dataset.ready = "failed"; });
