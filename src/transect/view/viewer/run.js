// A running compound: commands, and its outputs so far.
import { indexAt, bytes, post } from "./samples.js";
import { Track } from "./tracks.js";

const BUSY_MS = 120, IDLE_MS = 800, MOST_LINES = 400, MOST_PLOTS = 2;
const $ = (id) => document.getElementById(id);
const cell = (text, name = "") => { const made = document.createElement("td"); made.textContent = text; made.className = name; return made; };
const row = (...cells) => { const made = document.createElement("tr"); made.append(...cells); return made; };
const duration = (s) => (s === null ? "" : s >= 1 ? `${s.toFixed(2)} s` : s >= 1e-3 ? `${(1e3 * s).toFixed(1)} ms` : `${(1e6 * s).toFixed(0)} µs`);

export class Run {
  constructor(about, page) {
    this.about = about; this.page = page; this.start = about.span[0]; this.status = { state: "ready" }; this.lines = 0; this.plotted = 0;
    this.ports = about.ports.map((port, number) => this._port(port, number));
    $("run-panel").hidden = false; $("run-name").textContent = about.name;
    for (const id of ["step", "unit"]) $(id).hidden = false;
    $("unit").append(new Option("wave", ""), ...about.channels.map((name, n) => new Option(name, n)));
    $("speed").append(new Option("as fast as possible", 0));
    $("help").textContent = "space runs and pauses · . steps · ← → 1 % · , one sample back · home, end · + − or the wheel zooms time · T above · F follow";
    $("step").addEventListener("click", () => this.step());
    $("speed").addEventListener("change", () => { if (this.status.state === "playing") this._order(`run/play/${$("speed").value}`); });
    this._ask();
  }

  // Commands; the cursor follows the run again.

  step() { this._order($("unit").value === "" ? "run/step/1" : `run/next/${$("unit").value}`); }

  toggle() { this._order(this.status.state === "playing" ? "run/pause" : `run/play/${$("speed").value}`); }

  async _order(path) { await post(path); this.attached = true; this._ask(); }

  // State

  async _ask() {
    clearTimeout(this.timer);
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    try {
      const status = await (await fetch("run.json")).json();
      await Promise.all(this.ports.map((port, n) => this._pull(port, status.ports[n], status.places[n], n)));
      await this._pullLines(status.lines);
      this.status = status;
      this._show();
    } catch { $("run-state").textContent = "the server has stopped"; this.gone = true; }
    this.asking = false;
    if (this.gone) return;
    const soon = this.again || this.status.state === "playing";
    this.again = false;
    this.timer = setTimeout(() => this._ask(), soon ? BUSY_MS : IDLE_MS);
  }

  _port(port, number) {
    const made = { ...port, have: 0, rows: 0 };
    if (port.kind === "pose") made.track = port.output ? new Track({ name: port.name, kind: "run" }) : null;
    else if (port.kind === "number") {
      made.numbers = [];
      made.choice = { name: `run: ${port.name}`, unit: "", load: async ([a, b]) => Float32Array.from(between(made.numbers, a, b)) };
      this.page.plots.offer(made.choice);
    }
    else if (port.kind !== "value") made.samples = this.page.addSamples(port.kind, `run: ${port.name}`, `o${number}`, (index) => `output/${number}/${index}`);
    return made;
  }

  // Fetch the new rows of a port.
  async _pull(port, { count }, place, number) {
    if (port.track && place) port.track.matrix = place;
    if (count === port.have || port.kind === "value") { port.have = count; return; }
    const rows = new Float64Array(await bytes(`rows/${number}/${port.whole ? 0 : port.rows}`));
    port.have = count; port.rows += rows.length / port.width;
    if (port.track) this._grow(port, rows);
    else if (port.numbers) this._plot(port, rows);
    else if (port.samples) for (const time of rows) port.samples.times.push(time);
  }

  _grow(port, rows) {
    if (!this.page.map.tracks.includes(port.track)) this.page.addTrack(port.track);
    if (port.whole) port.track.rows = rows; else port.track.append(rows);
    this.page.drawTrack(port.track);
    this.page.carrier ??= port.track;
  }

  // The first few numeric outputs are plotted initially.
  _plot(port, rows) {
    for (const number of rows) port.numbers.push(number);
    const worth = port.output && port.type !== "bool" && !port.plot && this.plotted < MOST_PLOTS;
    if (worth) { this.plotted++; port.plot = this.page.plots.add(port.choice, true); }
  }

  async _pullLines(count) {
    if (count === this.lines) return;
    const said = await (await fetch(`lines/${this.lines}`)).json();
    this.lines += said.length;
    $("run-log").append(...said.map(([time, node, text]) => { const line = document.createElement("li"); line.textContent = `${time.toFixed(3)} s  ${node}: ${text}`; return line; }));
    while ($("run-log").childElementCount > MOST_LINES) $("run-log").firstElementChild.remove();
    $("run-log").scrollTop = $("run-log").scrollHeight;
  }

  _show() {
    const { state, why, now, nodes, ports, errors, conclusions, digest, streams } = this.status, running = state === "playing", over = state === "ended" || state === "failed";
    $("run-state").textContent = state; $("run-state").dataset.state = state;
    $("run-why").textContent = [why && why !== "paused" && why !== "end" ? why : "", now === null ? "before the first sample" : `at ${now.toFixed(3)} s of ${this.about.span[1].toFixed(1)} s`, digest && `digest ${digest.slice(0, 12)}`].filter(Boolean).join(" · ");
    $("play").textContent = running ? "pause" : now === null ? "run" : "resume"; $("play").disabled = over; $("step").disabled = over || running;
    $("run-nodes").replaceChildren(...nodes.map((node) => this._node(node)));
    $("run-streams").replaceChildren(...Object.entries(streams).map(([name, s]) => row(cell(name), cell(`${s.played} of ${s.samples}`, "number"), cell([s.late && `${s.late} late`, s.lost && `${s.lost} lost`, s.masked && `${s.masked} masked`].filter(Boolean).join(", ")))));
    $("run-ports").replaceChildren(...ports.map((port, n) => row(cell(this.about.ports[n].name), cell(this.about.ports[n].type), cell(port.count, "number"), cell(port.text, "text"))));
    $("run-said").replaceChildren(...[...errors.map((text) => ["error", text]), ...conclusions.map((c) => [c.bad ? "error" : "fine", c.text])].map(([kind, text]) => { const made = document.createElement("p"); made.className = kind; made.textContent = text; return made; }));
    for (const port of this.ports) port.plot?.load();
    this.page.strips.played = now ?? this.start;
    if (running || this.attached) { this.page.seek(now ?? this.start); this.attached = running; this.page.strips.ask(); }
    document.body.dataset.run = state;
  }

  _node(node) {
    const skipped = Object.entries(node.skipped).map(([why, n]) => `${n} × ${why}`).join(", "), bar = document.createElement("td"), meter = document.createElement("meter");
    meter.value = node.share; bar.append(meter);
    const made = row(cell(node.name), cell(node.calls, "number"), cell(duration(node.p50), "number"), cell(duration(node.p95), "number"), bar, cell(node.failed ? "failed" : skipped, node.failed ? "error" : ""));
    return made;
  }
}

// Interleaved seconds and values of a time interval.
function between(numbers, from, to) {
  const a = indexAt(numbers, from, 2), b = indexAt(numbers, to, 2);
  return numbers.slice(2 * a, 2 * b + 2);
}
