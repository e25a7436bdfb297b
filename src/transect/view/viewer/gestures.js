// Mouse and fingers alike: one drags, two pinch, the wheel zooms.

// Listen to an element. `drag(event, dx, dy)` is also called with zeros on pointer down;
// `zoom(factor, x, y)` is above 1 to zoom in at that point; `slide(dx, dy)` is a two-finger drag.
export function listen(element, { drag, zoom, slide = () => {} }) {
  const fingers = new Map();
  const middle = () => { const all = [...fingers.values()]; return [0, 1].map((k) => all.reduce((sum, p) => sum + p[k], 0) / all.length); };
  const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
  const inside = (x, y) => { const box = element.getBoundingClientRect(); return [x - box.left, y - box.top]; };
  element.addEventListener("pointerdown", (e) => {
    if (e.target.closest("button, select, a")) return;
    fingers.set(e.pointerId, [e.clientX, e.clientY]);
    try { element.setPointerCapture(e.pointerId); } catch { /* a finger that is gone already cannot be held */ }
    if (fingers.size === 1) drag(e, 0, 0);
  });
  element.addEventListener("pointermove", (e) => {
    const before = fingers.get(e.pointerId);
    if (!before) return;
    if (fingers.size === 1) {
      fingers.set(e.pointerId, [e.clientX, e.clientY]);
      drag(e, e.clientX - before[0], e.clientY - before[1]);
    } else if (fingers.size === 2) {
      const wide = spread(), was = middle();
      fingers.set(e.pointerId, [e.clientX, e.clientY]);
      const now = middle();
      zoom(spread() / Math.max(wide, 1), ...inside(...now));
      slide(now[0] - was[0], now[1] - was[1]);
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) element.addEventListener(kind, (e) => fingers.delete(e.pointerId));
  element.addEventListener("wheel", (e) => { e.preventDefault(); zoom(Math.exp(-e.deltaY * 0.001), ...inside(e.clientX, e.clientY)); }, { passive: false });
}
