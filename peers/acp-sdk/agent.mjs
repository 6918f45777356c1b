// A small agent on the official SDK: it says what it was asked, and does what the first word tells it: asks for a
// permission, uses files and terminals of its client, asks its user, waits.

import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { agent, ndJsonStream } from "@agentclientprotocol/sdk";

let sessions = 0;
let servers = [];
let cancelled = () => {};

async function say(client, sessionId, text) {
  const content = { type: "text", text };
  await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
}

async function update(client, sessionId, fields) {
  await client.notify("session/update", { sessionId, update: fields });
}

/** What the client does, or why not. */
async function ask(client, method, params) {
  try {
    return await client.request(method, params);
  } catch (error) {
    return { refused: error?.message ?? String(error) };
  }
}

/** One call that runs a command in a terminal of the client and shows it. */
async function inTerminal(client, sessionId, command) {
  const created = await ask(client, "terminal/create", { sessionId, command });
  if (created.refused) return created.refused;
  const { terminalId } = created;
  const call = { toolCallId: `run-${terminalId}`, title: command, kind: "execute", status: "in_progress" };
  const content = [{ type: "terminal", terminalId }];
  await update(client, sessionId, { sessionUpdate: "tool_call", ...call, rawInput: { command }, content });
  const exit = await client.request("terminal/wait_for_exit", { sessionId, terminalId });
  const { output } = await client.request("terminal/output", { sessionId, terminalId });
  const status = exit.exitCode === 0 ? "completed" : "failed";
  await update(client, sessionId, { sessionUpdate: "tool_call_update", toolCallId: call.toolCallId, status });
  await client.request("terminal/release", { sessionId, terminalId });
  return `${exit.exitCode} ${output}`;
}

const deeds = {
  read: async (client, sessionId, path) => {
    const answer = await ask(client, "fs/read_text_file", { sessionId, path, line: 2, limit: 1 });
    return answer.refused ?? answer.content;
  },
  write: async (client, sessionId, path) => {
    const answer = await ask(client, "fs/write_text_file", { sessionId, path, content: "written\n" });
    return answer?.refused ?? "done";
  },
  run: (client, sessionId, command) => inTerminal(client, sessionId, command),
  servers: async () => JSON.stringify(servers),
  form: async (client, sessionId) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const asked = { mode: "form", sessionId, message: "Who?", requestedSchema };
    return JSON.stringify(await ask(client, "elicitation/create", asked));
  },
  plan: async (client, sessionId) => {
    const entries = [{ content: "think", priority: "high", status: "in_progress" }];
    await update(client, sessionId, { sessionUpdate: "plan", entries });
    await update(client, sessionId, { sessionUpdate: "session_info_update", title: "A plan" });
    await update(client, sessionId, { sessionUpdate: "usage_update", used: 1200, size: 8000 });
    return "planned";
  },
  /** Writes a file itself, without asking anybody. */
  plant: async (client, sessionId, path) => {
    try {
      writeFileSync(path, "planted");
      return "planted";
    } catch (error) {
      return `refused: ${error.code}`;
    }
  },
  commands: async (client, sessionId) => {
    const availableCommands = [
      { name: "deploy", description: "Deploys it", input: { hint: "where" } },
      { name: "status", description: "Of the agent" },
    ];
    await update(client, sessionId, { sessionUpdate: "available_commands_update", availableCommands });
    return "listed";
  },
  /** Until it is cancelled. */
  wait: () => new Promise((resolve) => (cancelled = () => resolve(undefined))),
  /** Whatever it is told. */
  hang: () => new Promise(() => {}),
  die: () => process.exit(7),
};

async function prompt({ params, client }) {
  const { sessionId } = params;
  const words = params.prompt.map((block) => (block.type === "text" ? block.text : block.type)).join("|");
  const [deed, ...rest] = words.split(" ");
  if (Object.hasOwn(deeds, deed)) {
    if (deed !== "servers") await say(client, sessionId, "Well: ");
    const said = await deeds[deed](client, sessionId, rest.join(" "));
    if (said === undefined) return { stopReason: "cancelled" };
    await say(client, sessionId, said);
    return { stopReason: "end_turn" };
  }
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
  .onRequest("session/new", ({ params }) => {
    servers = params.mcpServers.map((server) => server.name);
    return { sessionId: `echo-${++sessions}` };
  })
  .onNotification("session/cancel", () => cancelled())
  .onRequest("session/prompt", prompt);

app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
