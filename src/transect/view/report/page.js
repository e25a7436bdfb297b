"use strict";
// One time cursor for all plots, strips and maps of a page, which is complete without this script.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [...document.querySelectorAll("svg[data-group]")];
  const maps = [...document.querySelectorAll("svg.map")];
  const bar = document.getElementById("bar");
  const tip = document.getElementById("tip");
  let cursor = null; // {group, t}
  let pinned = false;

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const endOf = (svg) => parseFloat(svg.dataset.end) || 1;

  function nearest(xs, x) { // index of the nearest of ascending numbers
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
  }

  function timeText(t, group) {
    if (group === "distance") return t.toFixed(1) + " m";
    if (group !== "time") return "sample " + Math.round(t);
    const text = "+" + t.toFixed(2) + " s";
    if (data.start_ms === null) return text;
    return text + " · " + new Date(data.start_ms + 1000 * t).toISOString().replace("T", " ").slice(0, 22) + " UTC";
  }

  function plotText(svg, t) { // values of a plot at the cursor
    const drawn = data.drawings[svg.id], unit = drawn.unit ? " " + drawn.unit : "";
    return drawn.lines.map((line) => {
      if (!line.x.length) return null;
      const k = nearest(line.x, t);
      if (Math.abs(line.x[k] - t) > 0.03 * drawn.end || line.y[k] === null) return null;
      return (drawn.lines.length > 1 ? line.label + " " : "") + line.y[k] + unit;
    }).filter((text) => text !== null).join("; ");
  }

  function stripText(svg, t) {
    const strip = data.drawings[svg.id];
    const inside = (span) => span[0] <= t && t < span[1];
    if (strip.gaps.some(inside)) return strip.name + ": gap";
    const state = strip.states.find(inside);
    if (state) return strip.name + ": " + state[2];
    return strip.name + (inside(strip.there) ? ": recorded" : ": no data");
  }

  function show() {
    for (const svg of plots) {
      const line = svg.querySelector(".cursor");
      const on = cursor !== null && svg.dataset.group === cursor.group && cursor.t <= endOf(svg) * 1.0001;
      line.classList.toggle("on", on);
      if (on) {
        const x = (100 * cursor.t / endOf(svg)) + "%";
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
      }
      const output = document.querySelector('output[for="' + svg.id + '"]');
      if (output) output.textContent = on ? plotText(svg, cursor.t) : "";
    }
    for (const svg of maps) {
      const marks = svg.querySelectorAll(".here");
      data.drawings[svg.id].tracks.forEach((track, k) => {
        const there = cursor !== null && cursor.group === "time" && track.t.length
          && cursor.t >= track.t[0] - 0.5 && cursor.t <= track.t[track.t.length - 1] + 0.5;
        marks[k].classList.toggle("on", Boolean(there));
        if (!there) return;
        const at = nearest(track.t, cursor.t);
        marks[k].setAttribute("cx", track.x[at] + "%");
        marks[k].setAttribute("cy", track.y[at] + "%");
      });
    }
    bar.hidden = cursor === null;
    if (cursor !== null) bar.querySelector("b").textContent = timeText(cursor.t, cursor.group);
  }

  function move(group, t) {
    cursor = t === null ? null : {group, t};
    show();
  }

  function tell(text, event) {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const width = tip.offsetWidth, right = event.clientX + 14;
    tip.style.left = (right + width > innerWidth ? event.clientX - width - 14 : right) + "px";
    tip.style.top = clamp(event.clientY - 34, 4, innerHeight - tip.offsetHeight - 4) + "px";
  }

  function timeAt(svg, event) {
    const box = svg.getBoundingClientRect();
    return clamp((event.clientX - box.left) / box.width, 0, 1) * endOf(svg);
  }

  function trackAt(svg, event) { // the nearest position of a track with times
    const box = svg.getBoundingClientRect();
    const x = 100 * (event.clientX - box.left) / box.width, y = 100 * (event.clientY - box.top) / box.height;
    let best = null;
    for (const track of data.drawings[svg.id].tracks) {
      track.t.forEach((t, k) => {
        const far = Math.hypot(track.x[k] - x, (track.y[k] - y) * box.height / box.width);
        if (best === null || far < best.far) best = {far, t, label: track.label};
      });
    }
    return best !== null && best.far < 6 ? best : null;
  }

  for (const svg of plots) {
    const group = svg.dataset.group;
    svg.addEventListener("pointermove", (event) => {
      const t = timeAt(svg, event);
      if (!pinned) move(group, t);
      const text = svg.classList.contains("strip") ? stripText(svg, t) : plotText(svg, t);
      tell(timeText(t, group) + (text ? "\n" + text : ""), event);
    });
    svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      if (!pinned) move(group, null);
    });
    svg.addEventListener("click", (event) => {
      pinned = !pinned;
      move(group, timeAt(svg, event));
    });
  }
  for (const svg of maps) {
    svg.addEventListener("pointermove", (event) => {
      const found = trackAt(svg, event);
      tell(found === null ? "" : found.label + "\n" + timeText(found.t, "time"), event);
      if (!pinned) move("time", found === null ? null : found.t);
    });
    svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      if (!pinned) move("time", null);
    });
    svg.addEventListener("click", (event) => {
      const found = trackAt(svg, event);
      pinned = found !== null && !pinned;
      move("time", found === null ? null : found.t);
    });
  }
  for (const jump of document.querySelectorAll(".jump")) {
    jump.setAttribute("role", "button");
    jump.tabIndex = 0;
    const go = () => { pinned = true; move("time", parseFloat(jump.dataset.t)); };
    jump.addEventListener("click", go);
    jump.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pinned = false; tip.hidden = true; move("time", null); }
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const svg = document.activeElement && document.activeElement.closest("svg[data-group], svg.map");
    if (!step || !svg) return;
    event.preventDefault();
    pinned = true;
    const group = svg.dataset.group || "time", end = svg.dataset.end ? endOf(svg) : data.end;
    const now = cursor !== null && cursor.group === group ? cursor.t : 0;
    move(group, clamp(now + step * end * (event.shiftKey ? 0.05 : 0.005), 0, end));
  });

  const parts = [...document.querySelectorAll("details.part")];
  const fold = document.createElement("button");
  fold.id = "fold";
  fold.textContent = "fold all";
  fold.addEventListener("click", () => {
    const open = fold.textContent === "open all";
    parts.forEach((part) => { part.open = open; });
    fold.textContent = open ? "fold all" : "open all";
  });
  document.querySelector("nav").append(fold);
  for (const link of document.querySelectorAll("nav a")) { // links open folded sections
    link.addEventListener("click", () => { document.querySelector(link.getAttribute("href")).open = true; });
  }
  let before = [];
  addEventListener("beforeprint", () => {
    before = [...document.querySelectorAll("details:not([open])")];
    before.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => { before.forEach((part) => { part.open = false; }); });
})();
