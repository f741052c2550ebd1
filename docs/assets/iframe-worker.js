// Search without a server. Opened from a folder (file://) a page may start no worker, which the search of the theme is
// one; a hidden frame may load the same script and be talked to in the same way. Over http this changes nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      const tell = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.postMessage = (data) => setTimeout(tell, 0, data);
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(inside, each)));
      this.frame = inside;
      this.load(inside, String(url)).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }
    load(inside, url) {
      return new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        inside.document.body.appendChild(script);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.frame.dispatchEvent(new MessageEvent("message", { data })), 0);
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
}
