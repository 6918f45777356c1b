// The AI SDK's own chat over its `DefaultChatTransport`, unmodified, talks to `attache serve`. Exit code 0 only if each step
// came out.
//
// Environment: TEST_PEERS, TEST_ADDRESS, TEST_TOKEN, TEST_WORKSPACE.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { TEST_PEERS: peers, TEST_ADDRESS: address, TEST_TOKEN: token, TEST_WORKSPACE: cwd } = process.env;
const require = createRequire(pathToFileURL(`${peers}/ai/package.json`));
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await import(
  pathToFileURL(require.resolve("ai")).href
);

/** What `useChat` keeps in React's state. */
class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = [...this.messages.slice(0, index), structuredClone(message), ...this.messages.slice(index + 1)];
  };
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor(options = {}) {
    const transport = new DefaultChatTransport({
      api: `http://${address}/api/chat`,
      headers: { Authorization: `Bearer ${token}` },
      ...options.transport,
    });
    super({ ...options, transport, state: new State() });
  }

  get text() {
    return this.lastMessage.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
  }
}

async function step(name, work) {
  try {
    await work();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`not ok ${name}\n# ${String(error?.stack ?? error).replaceAll("\n", "\n# ")}`);
    process.exit(1);
  }
}

async function until(what, condition) {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (await condition()) return;
    await new Promise((go) => setTimeout(go, 10));
  }
  throw new Error(`waited for: ${what}`);
}

const request = (method, path) =>
  fetch(`http://${address}${path}`, { method, headers: { Authorization: `Bearer ${token}` } });
const toolOf = (message, type) => message.parts.find((part) => part.type === type);
const chat = new Chat({ id: "first" });

await step("a prompt streams", async () => {
  await chat.sendMessage({ text: "hello" });
  assert.equal(chat.error, undefined);
  assert.equal(chat.status, "ready");
  assert.equal(chat.lastMessage.role, "assistant");
  assert.match(chat.lastMessage.id, /^msg_/);
  assert.equal(chat.text, "Hello, editor.");
});

await step("a second prompt of the same chat goes on", async () => {
  await chat.sendMessage({ text: "read it" });
  assert.equal(chat.text, "It says what it says.");
  assert.equal(toolOf(chat.lastMessage, "tool-read").state, "output-available");
  assert.equal(chat.messages.length, 4);
});

await step("an attachment arrives", async () => {
  const url = `data:text/plain;base64,${Buffer.from("attached").toString("base64")}`;
  await chat.sendMessage({ text: "hello", files: [{ type: "file", mediaType: "text/plain", filename: "a.txt", url }] });
  assert.equal(chat.error, undefined);
  assert.equal(chat.text, "Hello, editor.");
});

await step("an approval is asked for and given, and the answer goes on in the same message", async () => {
  const asking = new Chat({ id: "asking", sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await asking.sendMessage({ text: "write it" });
  assert.equal(asking.status, "ready");
  const part = toolOf(asking.lastMessage, "tool-write");
  assert.equal(part.state, "approval-requested");
  assert(!existsSync(join(cwd, "b.txt")));
  const { id } = asking.lastMessage;
  await asking.addToolApprovalResponse({ id: part.approval.id, approved: true });
  await until("the end of the answer", () => asking.status === "ready" && asking.text.includes("Written."));
  assert.equal(asking.lastMessage.id, id);
  assert.equal(asking.messages.length, 2);
  assert.equal(toolOf(asking.lastMessage, "tool-write").state, "output-available");
  assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "first\nsecond\n");
});

await step("a denied call does not run", async () => {
  const asking = new Chat({ id: "denying", sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await asking.sendMessage({ text: "edit it" });
  const part = toolOf(asking.lastMessage, "tool-edit");
  assert.equal(part.state, "approval-requested");
  await asking.addToolApprovalResponse({ id: part.approval.id, approved: false, reason: "not today, it is late" });
  await until("the end of the answer", () => asking.status === "ready" && asking.text.includes("I left it"));
  // The reason is part of what the model was told; the export shows what it knows.
  assert.equal((await request("GET", "/api/chat/denying/stream")).status, 204);
  assert.equal(toolOf(asking.lastMessage, "tool-edit").state, "output-denied");
  assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "first\nsecond\n");
});

for (const [name, approvals] of [["given", [true, true]], ["split", [true, false]]]) {
  await step(`all approvals of a step are asked for before its stream ends, and answered at once: ${name}`, async () => {
    let posts = 0;
    const counted = (...request) => {
      posts += 1;
      return fetch(...request);
    };
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
    const asking = new Chat({ id: `both ${name}`, sendAutomaticallyWhen, transport: { fetch: counted } });
    await asking.sendMessage({ text: "write both" });
    const parts = () => asking.lastMessage.parts.filter((part) => part.type === "tool-write");
    assert.deepEqual(parts().map((part) => part.state), ["approval-requested", "approval-requested"]);
    const ids = parts().map((part) => part.approval.id);
    for (const [index, approved] of approvals.entries()) {
      await asking.addToolApprovalResponse({ id: ids[index], approved });
    }
    await until("the end of the answer", () => asking.status === "ready" && asking.text.includes("Both are settled."));
    assert.equal(posts, 2);
    const expected = approvals.map((approved) => (approved ? "output-available" : "output-denied"));
    assert.deepEqual(parts().map((part) => part.state), expected);
    assert.equal(asking.messages.length, 2);
  });
}
assert.equal(readFileSync(join(cwd, "d.txt"), "utf8"), "d\n");

await step("regenerate answers the last prompt anew", async () => {
  const before = chat.lastMessage.id;
  const count = chat.messages.length;
  await chat.regenerate();
  assert.equal(chat.error, undefined);
  assert.equal(chat.text, "Hello, editor.");
  assert.equal(chat.messages.length, count);
  assert.notEqual(chat.lastMessage.id, before);
  await chat.regenerate();
  assert.equal(chat.text, "Hello, editor.");
});

await step("an edited prompt replaces what followed it", async () => {
  const [first] = chat.messages;
  await chat.sendMessage({ text: "plan it", messageId: first.id });
  assert.equal(chat.error, undefined);
  assert.equal(chat.text, "Planned.");
  assert.equal(chat.messages.length, 2);
});

await step("a stream is read again from the beginning of its run, and stopped", async () => {
  const running = new Chat({ id: "running" });
  const sent = running.sendMessage({ text: "wait" });
  await until("the first words", () => running.lastMessage?.role === "assistant" && running.text === "Waiting.");
  await running.stop();
  await sent;
  const reloaded = new Chat({ id: "running", messages: [] });
  reloaded.messages = running.messages.slice(0, 1);
  const resumed = reloaded.resumeStream();
  await until("the same words", () => reloaded.lastMessage?.role === "assistant" && reloaded.text === "Waiting.");
  assert.equal(reloaded.lastMessage.id, running.lastMessage.id);
  assert.equal((await request("POST", "/api/chat/running/stop")).status, 204);
  await resumed;
  assert.equal(reloaded.status, "ready");
  assert.equal((await request("GET", "/api/chat/running/stream")).status, 204);
  const none = new Chat({ id: "nobody" });
  await none.resumeStream();
  assert.equal(none.error, undefined);
});

await step("an approval that was asked for before a reload can be given after it", async () => {
  const first = new Chat({ id: "reloaded" });
  await first.sendMessage({ text: "edit it" });
  const options = { id: "reloaded", sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };
  const again = new Chat(options);
  again.messages = first.messages.slice(0, 1);
  await again.resumeStream();
  const part = toolOf(again.lastMessage, "tool-edit");
  assert.equal(part.state, "approval-requested");
  await again.addToolApprovalResponse({ id: part.approval.id, approved: true });
  await until("the end of the answer", () => again.status === "ready" && again.text.includes("I left it"));
  assert.equal(readFileSync(join(cwd, "b.txt"), "utf8"), "1st\nsecond\n");
});

await step("a failed turn is an error with its reason", async () => {
  const failing = new Chat({ id: "failing" });
  await failing.sendMessage({ text: "fail" });
  assert.equal(failing.status, "error");
  assert.match(failing.error.message, /the model said no/);
  await failing.sendMessage({ text: "hello" });
  assert.equal(failing.text, "Hello, editor.");
});

console.log("done");
process.exit(0);
