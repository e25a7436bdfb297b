/* Search from the disk. A page of file:// may not start a worker: the same script runs in a hidden frame,
   which takes messages and answers as a worker does. Pages that are served use the worker. */
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = (this.inside = frame.contentWindow);
      inside.__index = window.__index;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((url) => this.load(url)));
      this.ready = this.load(script);
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const tag = this.inside.document.createElement("script");
        Object.assign(tag, { src: url, onload: resolve, onerror: reject });
        this.inside.document.body.append(tag);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
})();
