// One tab of headless Chromium, moved over the DevTools protocol. Knows nothing of the page.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const PATIENCE = Number(process.env.TEST_PATIENCE ?? 45_000);

export class Tab {
  // What went wrong in the page, whoever noticed it.
  troubles = [];
  // Addresses that were asked for.
  requests = [];
  #number = 0;
  #waiting = new Map();

  static async open({ width = 1280, height = 800, dark = false } = {}) {
    const tab = new Tab();
    tab.home = mkdtempSync(join(tmpdir(), "page-"));
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
      "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
      "--force-color-profile=srgb", "--font-render-hinting=none", "--remote-debugging-port=0", `--user-data-dir=${tab.home}`, `--window-size=${width},${height}`, "about:blank"];
    tab.process = spawn(process.env.CHROMIUM ?? "chromium", options, { stdio: ["ignore", "ignore", "pipe"], detached: true });
    // However the script ends, its browser ends with it.
    process.once("exit", () => tab.#kill());
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
    const address = await new Promise((resolve, reject) => {
      let said = "";
      tab.process.once("error", reject);
      tab.process.once("exit", (code) => reject(new Error(`chromium ended (${code}): ${said.slice(-2000)}`)));
      tab.process.stderr.on("data", (piece) => {
        said += piece;
        const found = /DevTools listening on (ws:\S+)/.exec(said);
        if (found) resolve(found[1]);
      });
    });
    tab.socket = new WebSocket(address, { maxPayload: 256 * 1024 * 1024 });
    await new Promise((resolve, reject) => tab.socket.once("open", resolve).once("error", reject));
    tab.socket.on("message", (data) => tab.#take(JSON.parse(data)));
    const { targetInfos } = await tab.send("Target.getTargets");
    const { targetId } = targetInfos.find(({ type }) => type === "page");
    ({ sessionId: tab.session } = await tab.send("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await tab.send(`${domain}.enable`);
    await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: `
      window.__refused = [];
      document.addEventListener("securitypolicyviolation", (event) => window.__refused.push(event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile + ":" + event.lineNumber));` });
    await tab.size(width, height, dark);
    return tab;
  }

  async size(width, height, dark, mobile = false) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }] });
  }

  send(method, params = {}) {
    const id = ++this.#number;
    this.socket.send(JSON.stringify({ id, method, params, sessionId: this.session }));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${method}`)), PATIENCE);
      this.#waiting.set(id, { resolve, reject, timer, method });
    });
  }

  #take(message) {
    if (message.id) {
      const waiting = this.#waiting.get(message.id);
      clearTimeout(waiting.timer);
      this.#waiting.delete(message.id);
      return message.error ? waiting.reject(new Error(`${waiting.method}: ${message.error.message}`)) : waiting.resolve(message.result);
    }
    const { method, params } = message;
    if (method === "Runtime.exceptionThrown") this.troubles.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
    else if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) this.troubles.push(`console: ${params.args.map((arg) => arg.value ?? arg.description).join(" ")}`);
    else if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) this.troubles.push(`log: ${params.entry.text} ${params.entry.url ?? ""}`);
    else if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    else if (method === "Network.webSocketCreated") this.requests.push(params.url);
    else if (method === "Page.javascriptDialogOpening") {
      this.troubles.push(`dialog: ${params.message}`);
      void this.send("Page.handleJavaScriptDialog", { accept: false });
    }
  }

  async goto(url) {
    await this.send("Page.navigate", { url });
    await this.until(() => document.readyState === "complete", `${url} to be loaded`);
  }

  // Runs a function of the page with these values, and gives what comes of it.
  async run(code, ...values) {
    const expression = typeof code === "string" ? code : `(${code})(...${JSON.stringify(values)})`;
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true, userGesture: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async until(code, what, ...values) {
    const end = Date.now() + PATIENCE;
    for (;;) {
      const found = await this.run(code, ...values).catch((error) => {
        if (/context|navigat/i.test(error.message)) return undefined;
        throw error;
      });
      if (found) return found;
      if (Date.now() > end) {
        const shown = await this.run(() => document.body.innerText.slice(0, 3000));
        throw new Error(`waited in vain for ${what}; the page shows:\n${shown}\n${this.troubles.join("\n")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  see(text) {
    return this.until((text) => document.body.innerText.includes(text), `“${text}”`, text);
  }

  async click(selector) {
    await this.until((selector) => document.querySelector(selector) !== null, selector, selector);
    // Where it has come to rest.
    const at = await this.run(async (selector) => {
      const place = () => {
        const { left, top, width, height } = document.querySelector(selector).getBoundingClientRect();
        return [left + width / 2, top + height / 2];
      };
      document.querySelector(selector).scrollIntoView({ block: "nearest" });
      let [before, now] = [[], place()];
      while (before.join() !== now.join()) {
        await new Promise((go) => setTimeout(go, 50));
        [before, now] = [now, place()];
      }
      return now;
    }, selector);
    for (const type of ["mousePressed", "mouseReleased"]) await this.send("Input.dispatchMouseEvent", { type, x: at[0], y: at[1], button: "left", clickCount: 1 });
  }

  // The user's choice in a field for files.
  async choose(selector, files) {
    await this.until((selector) => document.querySelector(selector) !== null, selector, selector);
    const { result } = await this.send("Runtime.evaluate", { expression: `document.querySelector(${JSON.stringify(selector)})` });
    await this.send("DOM.setFileInputFiles", { files, objectId: result.objectId });
  }

  async type(text) {
    await this.send("Input.insertText", { text });
  }

  async key(key, modifiers = 0) {
    const codes = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowUp: 38, ArrowRight: 39, ArrowLeft: 37, Tab: 9, End: 35, Home: 36 };
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const common = { key, modifiers, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0), text };
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...common });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...common });
  }

  async picture() {
    const { data } = await this.send("Page.captureScreenshot", { format: "webp", quality: 82, optimizeForSpeed: false });
    return Buffer.from(data, "base64");
  }

  async png() {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  #kill() {
    try {
      process.kill(-this.process.pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  }

  async close() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    await this.send("Browser.close").catch(() => {});
    setTimeout(() => this.#kill(), 3000).unref();
    await ended;
    this.socket.terminate();
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}
