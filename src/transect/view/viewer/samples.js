// Requests to the server, and the samples of one stream by time, with a small cache.
const KEPT = 40;

export const bytes = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.arrayBuffer();
};

export const post = (path) => fetch(path, { method: "POST" });

// Index of the last of ascending times that is not after a time; 0 before the first.
export function indexAt(times, time, width = 1) {
  let low = 0, high = times.length / width;
  while (low < high) { const middle = (low + high) >> 1; if (times[width * middle] <= time) low = middle + 1; else high = middle; }
  return Math.max(0, low - 1);
}

export class Samples {
  // `address(index)` is the address of a sample, `show(data, time)` draws it, `fail(why)` shows an error.
  constructor({ address, show, fail, lasting = false }) {
    Object.assign(this, { address, show, fail, lasting, times: [], kept: new Map(), shown: -1, asked: -1, busy: false });
  }

  // Whether the newest sample is too old for the time; a single sample never is.
  isOld(time) {
    if (!this.times.length) return true;
    const step = (this.times.at(-1) - this.times[0]) / Math.max(1, this.times.length - 1), age = time - this.times[indexAt(this.times, time)];
    return age < -step || (!this.lasting && this.times.length > 1 && age > Math.max(1, 3 * step));
  }

  seek(time) { if (this.times.length) { this.asked = indexAt(this.times, time); return this._pull(); } }

  // During a request, only the newest sample is remembered, so that scrubbing never queues.
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
      if (!found.byteLength) throw new Error("no longer kept");
      this.kept.set(index, found);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return found;
  }
}
