// A small page with useChat in headless Chromium, from an origin of its own, talks to `attache serve`. One line `ok …` for
// each thing that holds; exit code 0 only if all do.
//
// Environment: TEST_PEERS, TEST_PACKAGES (the peer whose React and AI SDK are used), TEST_ADDRESS, TEST_TOKEN,
// TEST_WORKSPACE, TEST_PORT (where the page is served; its origin is one that may come in).

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";

const { TEST_PEERS: peers, TEST_PACKAGES: packages, TEST_ADDRESS: address, TEST_TOKEN: token, TEST_WORKSPACE: cwd, TEST_PORT: port } = process.env;
const { Tab } = await import(join(peers, "page/browser.mjs"));

const built = await build({
  stdin: { contents: readFileSync(new URL("app.jsx", import.meta.url), "utf8"), loader: "jsx", resolveDir: join(peers, packages) },
  bundle: true,
  write: false,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
});
const script = built.outputFiles[0].text;
const settings = JSON.stringify({ api: `http://${address}/api/chat`, token });
const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>chat</title></head>
<body><div id="root"></div><script type="application/json" id="settings">${settings}</script><script type="module" src="/app.js"></script></body></html>`;
const server = createServer((request, response) => {
  const isScript = request.url === "/app.js";
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
  response.end(isScript ? script : html);
});
await new Promise((go) => server.listen(Number(port), "127.0.0.1", go));

const tab = await Tab.open();
const headers = { Authorization: `Bearer ${token}` };
const state = () => tab.run(() => document.getElementById("status").textContent);
const text = () => tab.run(() => [...document.querySelectorAll(".assistant:last-of-type .text")].map((one) => one.textContent).join(""));
const rested = async (what) => {
  await tab.see(what);
  await tab.until(() => document.getElementById("status").textContent === "ready", "the end of the answer");
};
const runs = async (chat) => (await fetch(`http://${address}/api/chat/${chat}/stream`, { headers })).status;

async function open(chat, host = "127.0.0.1") {
  await tab.goto(`http://${host}:${port}/?chat=${chat}`);
  await tab.until(() => document.getElementById("status")?.textContent === "ready", "the page");
}

async function say(words) {
  await tab.click("#text");
  await tab.type(words);
  await tab.click("#send");
}

const steps = {
  async "a prompt streams"() {
    await open("first");
    await say("count");
    await tab.see("number number ");
    assert.equal(await state(), "streaming");
    const before = (await text()).length;
    await tab.until((before) => document.body.innerText.length > before + 50, "more of it", before);
    await rested("Counted.");
    assert.equal(await text(), `${"number ".repeat(60)}Counted.`);
  },

  async "a second prompt goes on, with its thoughts"() {
    await say("hello");
    await rested("Hello, reader.");
    await tab.see("They greet me.");
    assert.equal(await tab.run(() => document.querySelectorAll("section").length), 4);
  },

  async "a tool is called and its state is shown"() {
    await say("read it");
    await rested("It says what it says.");
    const [name, state] = await tab.run(() => { const { name, state } = document.querySelector(".tool").dataset; return [name, state]; });
    assert.deepEqual([name, state], ["read", "output-available"]);
  },

  async "an approval is asked for and given"() {
    await open("asking");
    await say("write it");
    await tab.until(() => document.querySelector(".allow") !== null, "the question");
    assert.ok(!existsSync(join(cwd, "b.txt")));
    await tab.click(".allow");
    await rested("Written.");
    assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "first\nsecond\n");
    assert.equal(await tab.run(() => document.querySelectorAll("section").length), 2);
    assert.equal(await tab.run(() => document.querySelector(".tool").dataset.state), "output-available");
  },

  async "what is denied does not run"() {
    await say("edit it");
    await tab.click(".deny");
    await rested("I left it as it was.");
    assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "first\nsecond\n");
    assert.equal(await tab.run(() => [...document.querySelectorAll(".tool")].at(-1).dataset.state), "output-denied");
  },

  async "an answer is stopped, also at the server"() {
    await open("stopping");
    await say("wait");
    await tab.see("Waiting.");
    assert.equal(await runs("stopping"), 200);
    await tab.click("#stop");
    await tab.until(() => document.getElementById("status").textContent === "ready", "the end of it");
    for (let tries = 0; (await runs("stopping")) !== 204; tries += 1) {
      assert.ok(tries < 200, "it still runs");
      await new Promise((go) => setTimeout(go, 50));
    }
    await say("hello");
    await rested("Hello, reader.");
  },

  async "a page that is loaded again in mid-answer has all of it"() {
    await open("reloaded");
    await say("count");
    await tab.see("number number number ");
    await tab.goto("about:blank");
    await tab.goto(`http://127.0.0.1:${port}/?chat=reloaded`);
    await tab.until(() => document.getElementById("status")?.textContent === "streaming", "the answer to go on");
    await rested("Counted.");
    assert.equal(await text(), `${"number ".repeat(60)}Counted.`);
    assert.equal(await tab.run(() => document.querySelectorAll(".assistant").length), 1);
    assert.equal(await tab.run(() => document.querySelectorAll(".user").length), 1);
  },

  async "a question that was asked before a reload is answered after it"() {
    await open("asked-before");
    await say("edit it");
    await tab.until(() => document.querySelector(".allow") !== null, "the question");
    await tab.goto("about:blank");
    await tab.goto(`http://127.0.0.1:${port}/?chat=asked-before`);
    await tab.until(() => document.body.dataset.read === "whole", "the answer so far");
    await tab.click(".allow");
    await rested("I left it as it was.");
    assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "1st\nsecond\n");
  },

  async "files go with a prompt"() {
    await open("attaching");
    const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
    writeFileSync(join(cwd, "pixel.png"), pixel);
    await tab.choose("#files", [join(cwd, "a.txt"), join(cwd, "pixel.png")]);
    await say("hello");
    await rested("Hello, reader.");
    await tab.see("a.txt (text/plain)");
    const { sessions } = await (await fetch(`http://${address}/api/sessions`, { headers })).json();
    const stored = await Promise.all(sessions.map(async ({ id }) => (await fetch(`http://${address}/api/sessions/${id}/turns`, { headers })).text()));
    assert.equal(stored.filter((turns) => turns.includes('"a.txt"') && turns.includes(pixel.toString("base64"))).length, 1);
  },

  async "an error is told with its reason"() {
    await open("failing");
    await say("fail");
    await tab.see("the model said no");
    assert.equal(await state(), "error");
    tab.troubles.length = 0;
  },

  async "a page of another origin gets nothing"() {
    assert.deepEqual(tab.troubles, []);
    await tab.goto(`http://localhost:${port}/?chat=foreign`);
    await tab.until(() => document.getElementById("text") !== null, "the page");
    await say("hello");
    await tab.until(() => document.getElementById("status").textContent === "error", "the refusal");
    assert.ok(tab.troubles.some((trouble) => trouble.includes("CORS")), tab.troubles.join());
    assert.equal(await runs("foreign"), 204);
  },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
  try {
    await step();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.message}\n${tab.troubles.join("\n")}`);
  }
}
await tab.close();
server.close();
process.exit(failed ? 1 : 0);
