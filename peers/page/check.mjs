// Looks at the page of a running server with a real browser, as its user would. One line `ok …` for each thing that holds.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { audit } from "./audit.mjs";
import { Tab } from "./browser.mjs";

const { TEST_ADDRESS: address, TEST_LINK: link, TEST_PICTURES: pictures, TEST_PART: part } = process.env;
const tab = await Tab.open({ width: 1360, height: 860 });
const problems = [];
const home = mkdtempSync(join(tmpdir(), "attached-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A picture for the documentation, if they are wanted.
async function picture(name) {
  if (!pictures) return;
  await pause(500);
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, `${name}.webp`), await tab.picture());
}

async function judge(where) {
  await pause(250);
  problems.push(...(await tab.run(audit)).map((problem) => `${where}: ${problem}`));
}

async function begin() {
  await tab.run(() => document.activeElement?.blur());
  await tab.key("n");
  await tab.click("dialog button[type=submit]");
  await tab.until(() => !document.querySelector("dialog") && location.hash.startsWith("#/session/") && document.querySelector("#prompt"), "a session");
  await pause(400);
  return tab.run(() => location.hash.split("/")[2].split("?")[0]);
}

async function say(text) {
  await tab.click("#prompt");
  await tab.type(text);
  await tab.key("Enter");
}

const open = (hash) => tab.run((hash) => { location.hash = hash; }, hash);
const idle = () => tab.until(() => document.querySelector(".stop").hidden, "the turn to end");
const rested = async (text) => {
  await tab.see(text);
  await idle();
};

// A call whose text has this, unfolded.
const calledWith = (text) => tab.until((text) => {
  for (const one of document.querySelectorAll(".rows .call:not([open])")) one.open = true;
  return [...document.querySelectorAll(".rows .call")].map(({ innerText }) => innerText).find((told) => told.includes(text));
}, `a call with ${text}`, text);

const steps = {
  async "a link logs the browser in, once"() {
    await tab.goto(`http://${address}/`);
    await tab.see("the token is missing");
    tab.troubles.length = 0;
    await tab.goto(`http://${address}${link}`);
    await tab.until(() => document.querySelector(".side"), "the page");
    assert.equal(await tab.run(() => document.cookie), "", "a script sees the cookie");
    assert.equal(await tab.run((link) => fetch(link, { credentials: "omit" }).then(({ status }) => status), link), 401);
    tab.troubles.length = 0;
    await tab.see("No session yet");
    // The cookie goes to every port of this host; the key does not, and is not left in the address.
    assert.equal(await tab.run(() => location.hash), "");
    const statuses = await tab.run(async () => {
      const key = localStorage.getItem("attache-page-key");
      const asked = [{}, { "x-attache-page": "0" }, { "x-attache-page": key }].map((headers) => fetch("/api/sessions", { headers }));
      return (await Promise.all(asked)).map(({ status }) => status);
    });
    assert.deepEqual(statuses, [401, 401, 200]);
    tab.troubles.length = 0;
    await judge("empty");
  },

  async "the judge sees what is wrong"() {
    await tab.run(() => {
      const wrong = document.createElement("div");
      wrong.id = "wrong";
      const words = document.createElement("p");
      words.textContent = "hard to read";
      words.style.color = "#bbb";
      words.style.background = "#fff";
      wrong.append(words, document.createElement("button"));
      document.querySelector("main").append(wrong);
    });
    const found = await tab.run(audit);
    assert.ok(found.some((one) => one.startsWith("contrast")) && found.some((one) => one.startsWith("no name")), found.join("\n"));
    await tab.run(() => document.querySelector("#wrong").remove());
    assert.deepEqual(await tab.run(audit), []);
  },

  async "a permission is asked and answered, and the file is changed"() {
    await begin();
    await say("write it down");
    await tab.until(() => document.querySelector(".question .choice-button"), "a question");
    await tab.see("The agent asks for permission");
    await judge("question");
    await tab.run(() => document.querySelector(".question").focus());
    await tab.key("1");
    await rested("Written.");
    assert.equal(await tab.run(() => document.querySelector(".question")), null);
    await tab.until(() => document.querySelector(".diff ins")?.innerText.includes("# Notes"), "the diff");
    // The rule behind it is known once it is stored.
    await tab.see("Decided");
    await tab.see("the user's answer");
  },

  async "a denied call is told with its reason"() {
    await begin();
    await say("run it");
    await tab.until(() => document.querySelector(".question"), "a question");
    await tab.click(".question .reject_once");
    await tab.until(() => document.querySelector(".call-failed"), "a call that failed");
    await idle();
    await tab.see("denied");
  },

  async "a question is answered by a click, a key or not at all"() {
    await begin();
    await say("ask me");
    await tab.until(() => document.querySelector(".question .choice-button"), "a question");
    await tab.see("One file, no server");
    await judge("one choice");
    await tab.run(() => document.querySelector(".question").focus());
    await tab.key("2");
    await rested("One answer noted.");
    await calledWith("What the model got");
    assert.deepEqual(await tab.run(() => [...document.querySelectorAll(".call-body > .prose > *")].map(({ innerText }) => innerText)), ["Which database shall it be?", "PostgreSQL"]);
    await say("ask me in vain");
    await tab.click(".question .decline");
    await rested("I use my judgement.");
    assert.equal(await tab.run(() => document.querySelector(".question")), null);
  },

  async "several questions are one form"() {
    await begin();
    await say("Set up the storage of the limiter");
    await tab.until(() => document.querySelectorAll(".question .field").length === 3, "the form");
    await judge("form");
    await tab.click(".question [type=submit]");
    await pause(300);
    assert.ok(await tab.run(() => document.querySelector(".question") !== null), "an empty form was taken");
    await tab.click(".question input[value=SQLite]");
    await tab.click(".question input[value=Format]");
    await tab.click(".question input[value=Tests]");
    await tab.click(".question textarea");
    await tab.type("request_counts");
    await picture("form");
    await tab.click(".question [type=submit]");
    await rested("All answers noted.");
    const told = await calledWith("request_counts");
    assert.ok(/SQLite/.test(told) && /Format/.test(told) && /Tests/.test(told), told);
  },

  async "a form holds its fields to their schema"() {
    const found = await tab.run(async () => {
      const { Form } = await import(new URL("form.js", document.querySelector("script[src]").src).href);
      const properties = {
        name: { type: "string", minLength: 2, pattern: "^[a-z]+$" },
        mail: { type: "string", format: "email" },
        count: { type: "integer", minimum: 1, maximum: 9, default: 3 },
        share: { type: "number" },
        sure: { type: "boolean", default: true },
        colour: { type: "string", enum: ["red", "green"] },
        many: { type: "string", oneOf: [..."abcdefghij"].map((letter) => ({ const: letter, title: letter.toUpperCase() })) },
        some: { type: "array", maxItems: 1, items: { anyOf: [{ const: "x", title: "X" }, { const: "y", title: "Y" }] } },
      };
      const form = Form.of({ properties, required: ["name", "colour"] });
      document.querySelector("main").append(form.element);
      const [name, mail, count] = form.element.querySelectorAll("textarea, input:not([type=radio], [type=checkbox])");
      const [red, green] = form.element.querySelectorAll("[type=radio]");
      const [, x, y] = form.element.querySelectorAll("[type=checkbox]");
      const tried = [form.content()];
      green.checked = true;
      for (const value of ["A1", "a", ""]) {
        name.value = value;
        tried.push(form.content());
      }
      name.value = "ab";
      mail.value = "nobody";
      tried.push(form.content());
      mail.value = "";
      count.value = "10";
      tried.push(form.content());
      count.value = "4";
      x.checked = y.checked = true;
      tried.push(form.content());
      y.checked = false;
      const content = form.content();
      form.element.remove();
      return { tried, content, unknown: Form.of({ properties: { a: { type: "_picture" } } }) === undefined, red: red.required };
    });
    assert.deepEqual(found.tried, Array(7).fill(null));
    assert.deepEqual(found.content, { name: "ab", count: 4, sure: true, colour: "green", some: ["x"] });
    assert.ok(found.unknown && found.red);
  },

  async "an address is shown before it is visited, and others than those of the web are no links"() {
    const found = await tab.run(async () => {
      const { Questions } = await import(new URL("questions.js", document.querySelector("script[src]").src).href);
      const said = [];
      const questions = new Questions((id, result) => said.push([id, result]), () => {});
      document.querySelector("main").append(questions.element);
      const ask = (id, url) => questions.ask(id, "elicitation/create", { mode: "url", sessionId: "s", toolCallId: `call-${id}`, elicitationId: `e${id}`, message: "Log in", url });
      ask(1, "https://login.example/path?x=1");
      ask(2, "javascript:window.broken=1");
      const links = [...questions.element.querySelectorAll("a")].map(({ href, rel, target }) => [href, rel, target]);
      const shown = questions.element.innerText;
      questions.element.querySelectorAll(".question")[1].querySelector(".decline").click();
      questions.visited("e1");
      const left = questions.element.childElementCount;
      questions.element.remove();
      return { links, shown, said, left };
    });
    assert.deepEqual(found.links, [["https://login.example/path?x=1", "noopener noreferrer", "_blank"]]);
    assert.ok(found.shown.includes("https://login.example/path?x=1") && found.shown.includes("javascript:"));
    assert.deepEqual([found.said, found.left], [[[2, { action: "decline" }]], 0]);
  },

  async "a question waits for whoever comes back to the session"() {
    await begin();
    await say("run it");
    await tab.until(() => document.querySelector(".question"), "a question");
    const session = await tab.run(() => location.hash);
    await open("/usage");
    await tab.until(() => !document.querySelector(".question"), "another view");
    await pause(1500);
    await open(session.slice(1));
    await tab.until(() => document.querySelectorAll(".question").length === 1, "the question");
    await tab.click(".question .allow_once");
    await rested("It ran.");
  },

  async "whether a project's configuration counts is asked, also while nothing runs"() {
    await tab.run(() => document.activeElement?.blur());
    await tab.key("n");
    await tab.until(() => document.querySelector("dialog #directory") !== null, "the dialog");
    await tab.run(() => { document.querySelector("dialog #directory").value += "/project"; });
    await tab.click("dialog button[type=submit]");
    await tab.until(() => document.querySelector(".question")?.innerText.includes("Do you trust the configuration of"), "the question");
    await tab.see("max_steps = 50");
    await judge("trust");
    await pause(1500);
    await tab.run(() => document.querySelector(".question").focus());
    await tab.key("1");
    await tab.until(() => document.querySelector(".question") === null, "no question");
    await say("hello");
    await rested("Ok.");
    assert.equal(await tab.run(() => document.querySelector(".question")), null);
  },

  async "files go with a prompt"() {
    await begin();
    const files = ["notes.txt", "pixel.png", "left out.bin"].map((name) => join(home, name));
    writeFileSync(files[0], "Bursts are held.\n");
    writeFileSync(files[1], Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"));
    writeFileSync(files[2], Buffer.from([0, 1, 2, 255]));
    await tab.choose("#files", files);
    await tab.until(() => document.querySelectorAll(".attachments li").length === 3, "the files");
    await judge("attachments");
    await tab.click('[aria-label="Leave out left out.bin"]');
    assert.equal(await tab.run(() => document.querySelectorAll(".attachments li").length), 2);
    await say("Look at these");
    await tab.see("notes.txt");
    await rested("Ok.");
    await tab.until(() => document.querySelector("img.picture")?.src.startsWith("data:image/png"), "the picture");
    await tab.until(() => [...document.querySelectorAll(".rows summary")].some(({ textContent }) => textContent.includes("notes.txt")), "the text");
    assert.ok(await tab.run(() => document.querySelector(".attachments").hidden && !document.body.innerText.includes("left out.bin")));
    // One that is dropped, and one that is too large.
    await tab.run(() => {
      const given = new DataTransfer();
      given.items.add(new File(["dropped"], "dropped.txt", { type: "text/plain" }));
      given.items.add(new File([new Uint8Array(19 * 1024 * 1024)], "huge.bin"));
      document.querySelector(".composer").dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }));
    });
    await tab.see("huge.bin is too large");
    assert.equal(await tab.run(() => document.querySelector(".attachments").innerText.includes("dropped.txt")), true);
    await tab.click('[aria-label="Leave out dropped.txt"]');
  },

  async "a turn shows its parts, tokens, cost, tools and system prompt"() {
    await begin();
    await say("Why does the rate limiter let bursts through?");
    await tab.until(() => document.querySelector(".question"), "a question");
    await picture("permission");
    await tab.click(".question .allow_once");
    await tab.until(() => document.body.innerText.includes("All three tests pass") || document.querySelector(".question .call-title")?.textContent.includes("printf"), "the command");
    if (await tab.run(() => document.querySelector(".question") !== null)) await tab.click(".question .allow_once");
    await rested("All three tests pass");
    await tab.until(() => document.querySelector(".facts .bar"), "the tokens");
    await tab.see("21.9K tokens");
    await tab.see("Tools the model was offered");
    assert.ok(await tab.run(() => [...document.querySelectorAll(".chips code")].some(({ textContent }) => textContent === "bash")));
    await tab.click(".facts .more summary");
    await tab.until(() => document.querySelector(".facts pre")?.textContent.length > 500, "the system prompt");
    await tab.click(".facts .more summary");
    await judge("session");
    await picture("session");
    await tab.run(() => document.activeElement?.blur());
    await tab.key("g");
    await tab.until(() => document.querySelector(".thought"), "the thought");
    await picture("timeline");
    await judge("timeline");
  },

  async "subagents are a tree that keys open"() {
    await begin();
    await say("Make a plan for the release");
    await rested("the notes come next");
    const parent = await tab.run(() => location.hash);
    await open("/");
    await open(parent.slice(1));
    await tab.until(() => document.querySelector(".tree [role=treeitem]"), "the tree");
    await tab.until(() => document.querySelector(".plan .plan-completed"), "the plan");
    await judge("subagents");
    await picture("subagents");
    await tab.run(() => document.querySelector("[role=treeitem]").focus());
    await tab.key("ArrowRight");
    await tab.key("Enter");
    await tab.until((parent) => location.hash !== parent, "the child", parent);
    await tab.see("Two files changed");
    await tab.see("Works for");
  },

  async "a turn is seen while it runs, also by who comes later, and can be stopped"() {
    const session = await begin();
    await say("count slowly");
    await tab.see("number number number");
    const before = await tab.run(() => document.querySelector(".rows").innerText.length);
    await tab.until((before) => document.querySelector(".rows").innerText.length > before + 20, "more words", before);
    await open("/");
    await tab.see("running");
    await open(`/session/${session}`);
    await tab.see("number number number number");
    const again = await tab.until(() => document.querySelector(".rows").innerText.match(/number/g)?.length, "words");
    await tab.until((again) => document.querySelector(".rows").innerText.match(/number/g)?.length > again, "more words", again);
    await say("next, please");
    await tab.until(() => !document.querySelector(".queue").hidden, "the queue");
    await tab.see("next, please");
    await judge("queue");
    await tab.click(".queue button");
    await tab.until(() => document.querySelector(".queue").hidden, "the empty queue");
    await tab.click(".stop");
    await idle();
    await tab.until(() => !document.querySelector(".queue li"), "an empty queue");
    assert.ok(!(await tab.run(() => document.body.innerText.includes("Counted to the end"))));
  },

  async "what another client does is seen without a click"() {
    const session = await begin();
    await say("hello");
    await rested("Ok.");
    const rows = await tab.until(() => document.querySelector(".rows").innerText.match(/Ok\./g)?.length, "the first answer");
    const { cookie, ...answer } = await tab.run(async (session) => {
      const answer = await fetch("/api/chat", { method: "POST", headers: { "content-type": "application/json", "x-attache-page": localStorage.getItem("attache-page-key") }, body: JSON.stringify({ id: session, messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "from elsewhere" }] }] }) });
      return { status: answer.status, text: (await answer.text()).slice(0, 80) };
    }, session);
    assert.equal(answer.status, 200, `${answer.text} ${cookie}`);
    await tab.see("from elsewhere");
    await tab.until((rows) => document.querySelector(".rows").innerText.match(/Ok\./g)?.length > rows, "the second answer", rows);
  },

  async "hostile texts, names and titles stay texts"() {
    const title = "<img src=x onerror=window.broken=20> \u202eevil\u2066 {{7*7}}";
    await begin();
    await say(title);
    await tab.see("Ok.");
    await idle();
    await begin();
    await say("be hostile");
    for (let asked = 0; asked < 3; asked++) {
      await tab.until(() => document.querySelector(".question .allow_once") || document.body.innerText.includes("constructor.constructor"), "a question");
      if (await tab.run(() => document.querySelector(".question .allow_once") !== null)) await tab.click(".question .allow_once");
      await pause(300);
    }
    await rested("constructor.constructor");
    await pause(1500);
    for (const details of [1, 2]) {
      await tab.run(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
      await pause(200 * details);
    }
    await tab.see("window.broken=8");
    assert.equal(await tab.run(() => window.broken), undefined);
    const made = await tab.run(() => [...document.querySelectorAll("main script, main iframe, main style, main img, main svg[onload], main form[action], main object, main embed")].map(({ outerHTML }) => outerHTML.slice(0, 100)));
    assert.deepEqual(made, []);
    const links = await tab.run(() => [...document.querySelectorAll("main a[href]")].map(({ protocol }) => protocol).filter((protocol) => !["http:", "https:"].includes(protocol)));
    assert.deepEqual(links, []);
    await tab.run(() => document.activeElement?.blur());
    await tab.key("/");
    await tab.type("onerror");
    await tab.until(() => document.querySelector(".snippet mark"), "a hit");
    assert.equal(await tab.run(() => window.broken), undefined);
    await tab.see("\u27e8U+202E\u27e9");
    assert.ok(!(await tab.run(() => /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title))), "a character that turns text around is there");
    await judge("hostile");
    await tab.key("Escape");
  },

  async "words are found and lead to their place"() {
    await tab.run(() => document.activeElement?.blur());
    await tab.key("/");
    await tab.type("\"fixed windows\"");
    await tab.until(() => document.querySelector(".snippet mark"), "a hit");
    await judge("search");
    await tab.key("ArrowDown");
    await tab.key("Enter");
    await tab.until(() => location.hash.includes("message="), "the place");
    await tab.see("fixed windows");
    await picture("search");
    await tab.run(() => document.querySelector("#search").focus());
    await tab.key("Escape");
  },

  async "two sessions are compared turn by turn"() {
    const ids = [];
    for (const second of ["left", "right"]) {
      ids.push(await begin());
      await say("hello");
      await rested("Ok.");
      await say(second);
      await tab.until((second) => document.querySelector(".rows").innerText.includes(second), second, second);
      await pause(300);
      await idle();
    }
    await pause(1500);
    await open(`/diff/${ids[0]}/${ids[1]}`);
    await tab.see("1 of 2 turns are the same");
    assert.equal(await tab.run(() => document.querySelector("del.line").innerText.replace(/\s+/g, " ").trim()), "- left");
    assert.equal(await tab.run(() => document.querySelector("ins.line").innerText.replace(/\s+/g, " ").trim()), "+ right");
    await judge("diff");
    await picture("diff");
  },

  async "usage is drawn, and told in tables"() {
    await open("/usage");
    await tab.until(() => document.querySelector(".chart rect"), "a bar");
    assert.ok(await tab.run(() => document.querySelector(".chart svg").getAttribute("aria-label").includes("by day")));
    await tab.see("By workspace");
    await judge("usage");
    await picture("usage");
  },

  async "keys reach everything"() {
    await tab.run(() => document.activeElement?.blur());
    await tab.key("?");
    await tab.see("Search all sessions");
    await tab.until(() => document.querySelector("dialog[open]"), "the keys");
    await judge("keys");
    await tab.key("Escape");
    await tab.until(() => !document.querySelector("dialog"), "no dialog");
    await tab.run(() => document.querySelector(".sessions a").focus());
    await tab.key("ArrowDown");
    await tab.key("Enter");
    await tab.until(() => document.querySelector(".rows [role=article]"), "a session");
    await tab.run(() => document.activeElement?.blur());
    await tab.key("j");
    await tab.until(() => document.activeElement?.classList.contains("row"), "a row with the focus");
    await tab.key("c");
    await tab.until(() => document.activeElement?.id === "prompt", "the prompt");
    await tab.key("Escape");
    const was = await tab.run(() => document.querySelector(".session").classList.contains("with-facts"));
    await tab.key("d");
    await tab.until((was) => document.querySelector(".session").classList.contains("with-facts") !== was, "the details", was);
    await tab.key("d");
    // Tab goes through it without a trap.
    const visited = new Set();
    for (let step = 0; step < 40; step++) {
      await tab.key("Tab");
      visited.add(await tab.run(() => document.activeElement?.outerHTML.slice(0, 120)));
    }
    assert.ok(visited.size > 8, `${visited.size} places`);
  },

  async "it is the same at night and on a phone"() {
    await tab.size(1360, 860, true);
    await open("/usage");
    await tab.until(() => document.querySelector(".chart rect"), "a bar");
    await judge("usage at night");
    const limiter = await tab.run(() => [...document.querySelectorAll(".sessions a")].find(({ textContent }) => textContent.includes("rate limiter")).getAttribute("href"));
    await open(limiter.slice(1));
    await tab.see("All three tests pass");
    await judge("session at night");
    await picture("night");
    await tab.size(390, 844, false, true);
    await open("/");
    await tab.until(() => document.querySelector(".side").checkVisibility() && !document.querySelector("main").checkVisibility(), "the list alone");
    await judge("list on a phone");
    await picture("phone-list");
    await open(limiter.slice(1));
    await tab.see("All three tests pass");
    assert.ok(await tab.run(() => !document.querySelector(".side").checkVisibility()));
    await judge("session on a phone");
    await picture("phone");
    await open("/usage");
    await tab.until(() => document.querySelector(".chart rect"), "a bar");
    await judge("usage on a phone");
    await tab.size(1360, 860, false);
  },

  async "an export is downloaded"() {
    await tab.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: home });
    await tab.run(() => document.querySelector(".sessions a").click());
    await tab.click("[aria-label=Export]");
    await tab.until(() => document.querySelector(".menu").checkVisibility(), "the menu");
    await judge("menu");
    await tab.run(() => [...document.querySelectorAll(".menu button")].find(({ textContent }) => textContent === "HTML").click());
    for (let tries = 0; !readdirSync(home).some((name) => name.endsWith(".html")); tries++) {
      assert.ok(tries < 200, `there is ${readdirSync(home)}`);
      await pause(50);
    }
    const [name] = readdirSync(home).filter((name) => name.endsWith(".html"));
    assert.ok(readFileSync(join(home, name), "utf8").includes("<html"));
  },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
  if (part && !name.includes(part) && !name.startsWith("a link")) continue;
  try {
    await step();
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}: ${error.stack}`);
    if (pictures && mkdirSync(pictures, { recursive: true }) !== null) writeFileSync(join(pictures, "failed.png"), await tab.png());
  }
}
const refused = await tab.run(() => window.__refused);
const foreign = tab.requests.filter((url) => !/^(data:|about:|blob:)/.test(url) && new URL(url).host !== address);
for (const [name, found] of [["nothing was refused by the policy", refused], ["nothing was asked for elsewhere", foreign], ["names, contrast and sizes", [...new Set(problems)]], ["no error", tab.troubles]]) {
  if (found.length) {
    failed++;
    console.log(`FAILED ${name}:\n  ${found.join("\n  ")}`);
  } else console.log(`ok ${name}`);
}
await tab.close();
process.exit(failed ? 1 : 0);
