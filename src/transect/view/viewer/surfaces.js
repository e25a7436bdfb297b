// Maps from the server: pose, heights and colours of cells; as a surface and as an image.
import { apply } from "./matrices.js";

export function decodeSurface(data) {
  const head = new Float32Array(data, 0, 19), fixed = head[0] === 1, matrix = Array.from(head.subarray(1, 17));
  const [rows, columns] = head.subarray(17, 19), count = rows * columns;
  const corners = new Float32Array(data, 76, 3 * count), colours = new Uint8Array(data, 76 + 12 * count, 4 * count);
  return { fixed, matrix, rows, columns, corners, colours };
}

// Two triangles between each four cells whose heights are all known.
export function indexCells({ rows, columns, corners }) {
  const index = new Uint32Array(6 * Math.max(0, rows - 1) * Math.max(0, columns - 1));
  let n = 0;
  for (let r = 0; r + 1 < rows; r++) for (let c = 0; c + 1 < columns; c++) {
    const a = r * columns + c, b = a + 1, d = a + columns, e = d + 1;
    if (Number.isNaN(corners[3 * a + 2] + corners[3 * b + 2] + corners[3 * d + 2] + corners[3 * e + 2])) continue;
    index.set([a, d, b, b, d, e], n); n += 6;
  }
  return index.subarray(0, n);
}

// A picture of the cells from above, shaded by their slope, and where its first cell and its sides are.
export function paintCells({ rows, columns, corners, colours }, matrix) {
  const canvas = new OffscreenCanvas(columns, rows), g = canvas.getContext("2d"), image = g.createImageData(columns, rows);
  const z = (r, c) => corners[3 * (Math.min(rows - 1, Math.max(0, r)) * columns + Math.min(columns - 1, Math.max(0, c))) + 2];
  const cell = Math.hypot(corners[3] - corners[0], corners[4] - corners[1]) || 1;
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
    const k = r * columns + c, slope = (z(r, c + 1) - z(r, c - 1) + z(r + 1, c) - z(r - 1, c)) / (2 * cell);
    const light = Number.isNaN(slope) ? 1 : Math.min(1.25, Math.max(0.55, 1 - 0.45 * slope));
    for (let i = 0; i < 3; i++) image.data[4 * k + i] = Math.min(255, colours[4 * k + i] * light);
    image.data[4 * k + 3] = Number.isNaN(corners[3 * k + 2]) ? 0 : 255;
  }
  g.putImageData(image, 0, 0);
  const at = (r, c) => apply(matrix, ...corners.subarray(3 * (r * columns + c), 3 * (r * columns + c) + 2), 0);
  const first = at(0, 0), right = columns > 1 ? at(0, 1) : [first[0] + 1, first[1]], down = rows > 1 ? at(1, 0) : [first[0], first[1] - 1];
  return { canvas, first, across: [right[0] - first[0], right[1] - first[1]], down: [down[0] - first[0], down[1] - first[1]] };
}
