// Asking the server, and the samples of one stream: which one belongs to a time, asked for once, the last few kept.
const KEPT = 40;

export const bytes = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.arrayBuffer();
};

export const post = (path) => fetch(path, { method: "POST" });

// The last of ascending times that is not after one; 0 before the first.
export function indexAt(times, time, width = 1) {
  let low = 0, high = times.length / width;
  while (low < high) { const middle = (low + high) >> 1; if (times[width * middle] <= time) low = middle + 1; else high = middle; }
  return Math.max(0, low - 1);
}

export class Samples {
  // `address(index)` is where a sample is asked for, `show(data, time)` draws it, `fail(why)` says why not.
  constructor({ address, show, fail, lasting = false }) {
    Object.assign(this, { address, show, fail, lasting, times: [], kept: new Map(), shown: -1, asked: -1, busy: false });
  }

  // Whether the newest sample is too long ago to be what was there at that time: nothing came, or not yet. A single one lasts.
  isOld(time) {
    if (!this.times.length) return true;
    const step = (this.times.at(-1) - this.times[0]) / Math.max(1, this.times.length - 1), age = time - this.times[indexAt(this.times, time)];
    return age < -step || (!this.lasting && this.times.length > 1 && age > Math.max(1, 3 * step));
  }

  seek(time) { if (this.times.length) { this.asked = indexAt(this.times, time); return this._pull(); } }

  // While one sample is under way only the newest wish is remembered, so that scrubbing never queues.
  async _pull() {
    if (this.busy) return;
    this.busy = true;
    while (this.shown !== this.asked) {
      const index = this.asked;
      try { await this.show(await this._get(index), this.times[index]); } catch (error) { this.fail(String(error.message ?? error)); }
      this.shown = index;
    }
    this.busy = false;
  }

  async _get(index) {
    let found = this.kept.get(index);
    if (!found) {
      found = await bytes(this.address(index));
      if (!found.byteLength) throw new Error("not kept any more");
      this.kept.set(index, found);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return found;
  }
}
