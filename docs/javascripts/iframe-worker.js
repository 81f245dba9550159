/* Search without a server: browsers refuse workers to pages opened from disk (file://), so the
   search's worker runs in a hidden frame there. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = (this.inside = frame.contentWindow)
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise((resolve) => {
        const script = inside.document.createElement("script")
        script.src = url
        script.onload = resolve
        inside.document.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
