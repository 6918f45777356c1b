// A small agent on the official SDK: it says what it was asked, and asks for a permission when it is told to.

import { Readable, Writable } from "node:stream";
import { agent, ndJsonStream } from "@agentclientprotocol/sdk";

let sessions = 0;

async function say(client, sessionId, text) {
  const content = { type: "text", text };
  await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
}

async function prompt({ params, client }) {
  const { sessionId } = params;
  const words = params.prompt.map((block) => (block.type === "text" ? block.text : block.type)).join("|");
  await say(client, sessionId, "You said: ");
  await say(client, sessionId, words);
  if (!words.startsWith("delete")) return { stopReason: "end_turn" };
  const { outcome } = await client.request("session/request_permission", {
    sessionId,
    toolCall: { toolCallId: "call_1", title: "Delete everything", kind: "delete", status: "pending" },
    options: [
      { kind: "allow_once", name: "Yes", optionId: "yes" },
      { kind: "reject_once", name: "No", optionId: "no" },
    ],
  });
  await say(client, sessionId, `; the answer is ${outcome.optionId ?? outcome.outcome}`);
  return { stopReason: "end_turn" };
}

const app = agent({ name: "echo" })
  .onRequest("initialize", () => ({
    protocolVersion: 1,
    agentInfo: { name: "echo", version: "1.0.0" },
    agentCapabilities: { loadSession: false, promptCapabilities: { image: false } },
  }))
  .onRequest("session/new", () => ({ sessionId: `echo-${++sessions}` }))
  .onRequest("session/prompt", prompt);

app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
