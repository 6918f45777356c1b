// The official client SDK talks to `attache serve` over a WebSocket (Node's own) or streamable HTTP (Node's fetch), with
// two clients on one session. Exit code 0 only if each step came out.
//
// Environment: TEST_TRANSPORT (websocket or http), TEST_ADDRESS, TEST_TOKEN, TEST_WORKSPACE.

import assert from "node:assert/strict";
import { client } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { print } from "./connection.mjs";
import { step } from "./step.mjs";

const { TEST_TRANSPORT: transport, TEST_ADDRESS: address, TEST_TOKEN: token, TEST_WORKSPACE: cwd } = process.env;
const place = { cwd, mcpServers: [] };
const headers = { Authorization: `Bearer ${token}` };

/** Node's own WebSocket, which takes headers in its second argument. */
class HeadedWebSocket extends WebSocket {
  constructor(url, protocols, options) {
    super(url, { protocols: protocols ?? [], headers: options?.headers });
  }
}

function open() {
  return transport === "websocket"
    ? createWebSocketStream(`ws://${address}/acp`, { WebSocket: HeadedWebSocket, headers })
    : createHttpStream(`http://${address}/acp`, { headers });
}

class Remote {
  constructor(answer) {
    this.updates = [];
    this.asked = 0;
    const app = client({ name: "attache-test" })
      .onRequest("session/request_permission", ({ params }) => {
        this.asked += 1;
        return answer(params);
      })
      .onNotification("session/update", ({ params }) => {
        this.updates.push(params);
      });
    this.connection = app.connect(open());
    this.agent = this.connection.agent;
  }

  request(method, params) {
    return Promise.race([
      this.agent.request(method, params),
      new Promise((_, reject) => setTimeout(() => reject(new Error(`nothing after 20 s: ${method}`)), 20_000).unref()),
    ]);
  }

  prompt(sessionId, text) {
    return this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  text(sessionId) {
    return this.updates
      .filter((params) => params.sessionId === sessionId && params.update.sessionUpdate === "agent_message_chunk")
      .map((params) => params.update.content.text)
      .join("");
  }
}

const choose = (kind) => (params) => ({
  outcome: { outcome: "selected", optionId: params.options.find((option) => option.kind === kind).optionId },
});
const initialize = (remote) => remote.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
/** Answers when the other client has been asked, too. */
const first = new Remote(async (params) => {
  for (let tries = 0; second.asked === 0 && tries < 500; tries += 1) await new Promise((go) => setTimeout(go, 10));
  return choose("allow_once")(params);
});
const second = new Remote(() => new Promise(() => {}));
let session;

await step("initialize", async () => {
  const answer = await initialize(first);
  assert.equal(answer.protocolVersion, 1);
  assert.equal(answer.agentInfo.name, "attache");
  await initialize(second);
});

await step("session/new", async () => {
  session = (await first.request("session/new", place)).sessionId;
  assert.match(session, /^ses_/);
});

await step("a prompt streams before it is answered", async () => {
  const answer = await first.prompt(session, "hello");
  assert.equal(answer.stopReason, "end_turn");
  assert.equal(first.text(session), "Hello, editor.");
});

await step("an error is an error", async () => {
  await assert.rejects(first.request("session/load", { ...place, sessionId: "ses_unknown" }), (error) => error.code === -32002);
});

await step("a second client loads the session", async () => {
  await second.request("session/load", { ...place, sessionId: session });
  assert.equal(second.text(session), "Hello, editor.");
});

await step("both are asked, the first answer wins, both see the end", async () => {
  const mark = first.updates.length;
  const answer = await first.prompt(session, "write it");
  assert.equal(answer.stopReason, "end_turn");
  assert.equal(first.asked, 1);
  const statuses = first.updates.slice(mark).map((params) => params.update.status).filter(Boolean);
  assert(statuses.includes("completed"), statuses.join());
  assert.equal(second.asked, 1);
});

await step("the second client prompts the same session", async () => {
  const before = first.text(session).length;
  const answer = await second.prompt(session, "hello");
  assert.equal(answer.stopReason, "end_turn");
  for (let tries = 0; first.text(session).length === before && tries < 200; tries += 1) {
    await new Promise((go) => setTimeout(go, 10));
  }
  assert(first.text(session).endsWith("Hello, editor."), first.text(session));
});

await step("session/list", async () => {
  const { sessions } = await first.request("session/list", {});
  assert(sessions.some((listed) => listed.sessionId === session));
});

await step("session/cancel ends a turn", async () => {
  const running = first.prompt(session, "wait");
  await new Promise((go) => setTimeout(go, 200));
  await first.agent.notify("session/cancel", { sessionId: session });
  assert.equal((await running).stopReason, "cancelled");
});

print("done");
process.exit(0);
