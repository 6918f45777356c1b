// The official client SDK drives `attache acp` through every method. Exit code 0 only if each step came out.
//
// Environment: TEST_BINARY, ATTACHE_HOME (configured with model.script), TEST_WORKSPACE (an empty directory).
// Output: `ok NAME` per step, and every line on the wire as `N> …` (ours) or `N< …` (the agent's).

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Connection, print } from "./connection.mjs";
import { step, stepsDone } from "./step.mjs";

const { TEST_BINARY: binary, TEST_WORKSPACE: cwd } = process.env;
assert(binary && cwd && process.env.ATTACHE_HOME, "TEST_BINARY, ATTACHE_HOME and TEST_WORKSPACE must be set");

const place = { cwd, mcpServers: [] };
const inWorkspace = (name) => join(cwd, name);
writeFileSync(inWorkspace("a.txt"), "alpha\nbeta\n");
let agent = new Connection(binary);
let session;
const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
const initialize = (connection, protocolVersion) =>
  connection.request("initialize", {
    protocolVersion,
    clientCapabilities,
    clientInfo: { name: "attache-test", version: "1.0.0" },
  });

await step("a request before initialize is refused", async () => {
  assert.equal((await agent.refusal("session/new", place)).code, -32600);
});

await step("initialize negotiates down and names what works", async () => {
  const answer = await initialize(agent, 7);
  assert.equal(answer.protocolVersion, 1);
  assert.equal(answer.agentInfo.name, "attache");
  const { loadSession, sessionCapabilities, promptCapabilities } = answer.agentCapabilities;
  assert.equal(loadSession, true);
  assert.equal(promptCapabilities.embeddedContext, true);
  for (const name of ["list", "delete", "resume", "close", "additionalDirectories", "fork", "runtimeContext"]) {
    assert.equal(typeof sessionCapabilities[name], "object", name);
  }
  agent.capabilities = answer.agentCapabilities;
  agent.authMethods = answer.authMethods ?? [];
});

await step("a second initialize is refused", async () => {
  const error = await agent.refusal("initialize", { protocolVersion: 1 });
  assert.equal(error.code, -32600);
});

await step("authenticate", async () => {
  const refused = await agent.refusal("authenticate", { methodId: "no-such-method" });
  assert.equal(refused.code, -32602);
  for (const method of agent.authMethods) assert.equal(typeof method.id, "string");
});

await step("logout", async () => {
  // Without credentials of our own there is nothing to forget, so that it always succeeds.
  assert.deepEqual(await agent.request("logout", {}), {});
});

await step("session/new", async () => {
  assert.equal((await agent.refusal("session/new", { cwd: "relative", mcpServers: [] })).code, -32602);
  assert.equal((await agent.refusal("session/new", { cwd: inWorkspace("missing"), mcpServers: [] })).code, -32602);
  const answer = await agent.request("session/new", place);
  session = answer.sessionId;
  assert.match(session, /^ses_[0-9a-f]{14}[0-9A-Za-z]{12}$/);
  assert.equal(answer.modes.currentModeId, "build");
  assert(answer.modes.availableModes.some((mode) => mode.id === "plan"));
  const categories = answer.configOptions.map((option) => option.category);
  assert(categories.includes("model") && categories.includes("mode"), String(categories));
});

await step("session/prompt streams text, thoughts and usage", async () => {
  const answer = await agent.prompt(session, "hello");
  assert.equal(answer.stopReason, "end_turn");
  assert.match(answer._meta["attache/messageId"], /^msg_/);
  assert.equal(agent.text(0, session), "Hello, editor.");
  assert.equal(agent.text(0, session, "agent_thought_chunk"), "They greet me.");
  const ids = new Set(agent.since(0, session, "agent_message_chunk").map((update) => update.messageId));
  assert.equal(ids.size, 1);
  const usage = agent.since(0, session, "usage_update").at(-1);
  assert.equal(usage.used, 135, "the five of the last step");
  assert(usage.size > usage.used);
});

await step("session/prompt keeps the message id of the client", async () => {
  const params = { sessionId: session, prompt: [{ type: "text", text: "again" }] };
  const answer = await agent.request("session/prompt", { ...params, _meta: { "attache/messageId": "client-minted-1" } });
  assert.equal(answer._meta["attache/messageId"], "client-minted-1");
});

await step("session/prompt takes links, embedded context and runtime context", async () => {
  const prompt = [
    { type: "text", text: "look" },
    { type: "resource_link", name: "a.txt", uri: `file://${inWorkspace("a.txt")}` },
    { type: "resource", resource: { uri: "file:///c.rs", mimeType: "text/rust", text: "fn c() {}" } },
  ];
  const runtimeContext = [{ title: "Cursor", text: "line 3" }];
  const answer = await agent.request("session/prompt", { sessionId: session, prompt, runtimeContext });
  assert.equal(answer.stopReason, "end_turn");
  const bad = { sessionId: session, prompt, runtimeContext: [{ title: "no text" }] };
  assert.equal((await agent.refusal("session/prompt", bad)).code, -32602);
});

/** One turn with one tool call: its updates, merged as an editor would. */
async function toolTurn(text) {
  const mark = agent.updates.length;
  const answer = await agent.prompt(session, text);
  const [first, ...rest] = agent.since(mark, session, "tool_call", "tool_call_update");
  const statuses = [first, ...rest].map((update) => update?.status).filter(Boolean);
  return { answer, first, call: Object.assign({}, first, ...rest), statuses, text: agent.text(mark, session), mark };
}

await step("a read needs no permission", async () => {
  const { answer, first, call } = await toolTurn("read it");
  assert.equal(answer.stopReason, "end_turn");
  assert.equal(first.sessionUpdate, "tool_call");
  assert.equal(first.status, "pending");
  assert.deepEqual([call.status, call.kind, call.name], ["completed", "read", "read"]);
  assert.deepEqual(call.rawInput, { path: "a.txt" });
  assert(JSON.stringify(call.content).includes("alpha"));
  assert(call.locations[0].path.endsWith("/a.txt"));
  assert.equal(agent.asked.length, 0);
});

await step("session/request_permission, allowed: the file is written", async () => {
  agent.willAnswer("allow_once");
  const { call, statuses } = await toolTurn("write it");
  assert.equal(call.status, "completed");
  assert(statuses.indexOf("in_progress") < statuses.indexOf("completed"));
  assert.equal(readFileSync(inWorkspace("b.txt"), "utf8"), "first\nsecond\n");
  const asked = agent.asked.at(-1);
  const kinds = asked.options.map((option) => option.kind).sort();
  // Always for this file, and for all edits in the workspace.
  assert.deepEqual(kinds, ["allow_always", "allow_always", "allow_once", "reject_always", "reject_once"]);
  assert.equal(asked.toolCall.toolCallId, call.toolCallId);
  const diff = call.content.find((block) => block.type === "diff");
  assert.deepEqual([diff.oldText ?? null, diff.newText], [null, "first\nsecond\n"]);
});

await step("session/request_permission, rejected: the file stays", async () => {
  agent.willAnswer("reject_once");
  const { answer, call, statuses, text } = await toolTurn("edit it");
  assert.deepEqual([answer.stopReason, call.status, text], ["end_turn", "failed", "I left it as it was."]);
  assert(!statuses.includes("in_progress") && !statuses.includes("completed"));
  assert.equal(readFileSync(inWorkspace("b.txt"), "utf8"), "first\nsecond\n");
});

await step("session/request_permission, cancelled: the prompt is cancelled", async () => {
  agent.willAnswer("cancelled");
  const { answer, call } = await toolTurn("edit it");
  assert.deepEqual([answer.stopReason, call.status], ["cancelled", "failed"]);
});

await step("a command ends with its output and exit status", async () => {
  agent.willAnswer("allow_once");
  const { call } = await toolTurn("run it");
  assert.deepEqual([call.status, call.kind], ["completed", "execute"]);
  const shown = JSON.stringify(call.content);
  assert(shown.includes("out") && shown.includes("err") && shown.includes("3"), shown);
});

await step("todo is a plan, not a tool call", async () => {
  const { first, mark } = await toolTurn("plan it");
  assert.equal(first, undefined);
  const plan = agent.since(mark, session, "plan").at(-1);
  assert.deepEqual(plan.entries.map((entry) => [entry.content, entry.status, entry.priority]), [
    ["one", "completed", "medium"],
    ["two", "in_progress", "high"],
  ]);
});

await step("stop reasons tell why", async () => {
  assert.equal((await agent.prompt(session, "too long")).stopReason, "max_tokens");
  assert.equal((await agent.prompt(session, "forbidden")).stopReason, "refusal");
});

await step("a failing model is an error with its reason", async () => {
  const error = await agent.refusal("session/prompt", { sessionId: session, prompt: [{ type: "text", text: "fail" }] });
  assert(error.message.includes("the model said no"), error.message);
  assert.equal((await agent.prompt(session, "hello")).stopReason, "end_turn");
});

/** Starts a turn that never ends by itself, and waits until it talks; wrapped, since await would wait for its end. */
async function startWaiting() {
  const mark = agent.updates.length;
  const turn = agent.prompt(session, "wait");
  await agent.until("the first words", () => agent.text(mark, session) === "Waiting.");
  return { turn };
}

await step("session/cancel", async () => {
  const { turn } = await startWaiting();
  const before = Date.now();
  await agent.agent.notify("session/cancel", { sessionId: session });
  assert.equal((await turn).stopReason, "cancelled");
  assert(Date.now() - before < 2500, `${Date.now() - before} ms`);
  await agent.agent.notify("session/cancel", { sessionId: session });
  assert.equal((await agent.prompt(session, "hello")).stopReason, "end_turn");
});

await step("$/cancel_request", async () => {
  const abort = new AbortController();
  const mark = agent.updates.length;
  const turn = agent.prompt(session, "wait", { cancellationSignal: abort.signal });
  await agent.until("the first words", () => agent.text(mark, session) === "Waiting.");
  abort.abort();
  const outcome = await turn.then((answer) => answer.stopReason, (error) => error.code);
  assert(outcome === "cancelled" || outcome === -32800, String(outcome));
});

await step("_attache/queue/* and _attache/session/status", async () => {
  const idle = await agent.request("_attache/session/status", { sessionId: session });
  assert.equal(idle.state, "idle");
  const { turn: running } = await startWaiting();
  const [edited, cancelled] = ["to be edited", "to be cancelled"].map((text) => agent.prompt(session, text));
  const typed = { sessionId: session, text: "/help x" };
  assert.deepEqual(await agent.request("_attache/commands/complete", typed), { completions: [] });
  const { queued } = await agent.request("_attache/queue/list", { sessionId: session });
  assert.deepEqual(queued.map((message) => message.prompt[0].text), ["to be edited", "to be cancelled"]);
  assert.equal((await agent.request("_attache/session/status", { sessionId: session })).state, "busy");
  const [first, second] = queued.map((message) => message.messageId);
  const prompt = [{ type: "text", text: "edited while it waited" }];
  await agent.request("_attache/queue/edit", { sessionId: session, messageId: first, prompt });
  await agent.request("_attache/queue/cancel", { sessionId: session, messageId: second });
  assert.equal((await cancelled).stopReason, "cancelled");
  const mark = agent.updates.length;
  await agent.agent.notify("session/cancel", { sessionId: session });
  assert.equal((await running).stopReason, "cancelled");
  assert.equal((await edited).stopReason, "end_turn");
  assert.equal(agent.text(mark, session), "I saw the edited words.");
});

await step("session/set_mode", async () => {
  const mark = agent.updates.length;
  await agent.request("session/set_mode", { sessionId: session, modeId: "plan" });
  await agent.until("the new mode", () => agent.since(mark, session, "current_mode_update").length > 0);
  assert.equal(agent.since(mark, session, "current_mode_update").at(-1).currentModeId, "plan");
  assert.equal((await agent.refusal("session/set_mode", { sessionId: session, modeId: "nowhere" })).code, -32602);
});

await step("a plan that is agreed to is carried out in the same turn", async () => {
  const mark = agent.updates.length;
  // A command that only reads asks where there is no full sandbox, and nowhere else: its answer may be left.
  agent.answers.length = 0;
  agent.willAnswer("reject_once", "allow_once", "allow_once");
  const kept = await agent.prompt(session, "propose it");
  assert.equal(kept.stopReason, "end_turn");
  assert.deepEqual(agent.since(mark, session, "current_mode_update"), []);
  const answer = await agent.prompt(session, "propose it again");
  assert.equal(answer.stopReason, "end_turn");
  assert.deepEqual(agent.since(mark, session, "current_mode_update").map((update) => update.currentModeId), ["build"]);
  const asked = agent.asked.find((params) => params.toolCall.kind === "switch_mode");
  assert(JSON.stringify(asked.toolCall.content).includes("Write `planned.txt`"));
  assert.equal(readFileSync(inWorkspace("planned.txt"), "utf8"), "as planned\n");
  await agent.request("session/set_mode", { sessionId: session, modeId: "plan" });
});

await step("session/set_config_option", async () => {
  const set = (configId, value) => ({ sessionId: session, configId, value });
  const { configOptions } = await agent.request("session/set_config_option", set("mode", "build"));
  assert.equal(configOptions.find((option) => option.id === "mode").currentValue, "build");
  const model = configOptions.find((option) => option.category === "model");
  const again = await agent.request("session/set_config_option", set(model.id, model.currentValue));
  assert.equal(again.configOptions.length, configOptions.length);
  assert.equal((await agent.refusal("session/set_config_option", set("nothing", "x"))).code, -32602);
  assert.equal((await agent.refusal("session/set_config_option", set(model.id, "no/such"))).code, -32602);
});

await step("session/list", async () => {
  const listed = (answer) => answer.sessions.map((entry) => entry.sessionId);
  const empty = (await agent.request("session/new", place)).sessionId;
  const all = listed(await agent.request("session/list", {}));
  assert(all.includes(session) && !all.includes(empty));
  assert(listed(await agent.request("session/list", { cwd })).includes(session));
  assert.deepEqual(listed(await agent.request("session/list", { cwd: "/nowhere/at/all" })), []);
  assert.equal((await agent.refusal("session/list", { cursor: "not ours" })).code, -32602);
});

await step("_attache/session/export", async () => {
  for (const format of ["jsonl", "json", "md", "csv"]) {
    const answer = await agent.request("_attache/session/export", { sessionId: session, format });
    assert.equal(answer.format, format);
    assert(answer.content.includes("Hello, editor."), format);
  }
  assert.equal((await agent.refusal("_attache/session/export", { sessionId: session, format: "pdf" })).code, -32602);
});

let fork;
await step("session/fork", async () => {
  fork = (await agent.request("session/fork", { sessionId: session, ...place })).sessionId;
  assert.notEqual(fork, session);
  const mark = agent.updates.length;
  assert.equal((await agent.prompt(fork, "hello")).stopReason, "end_turn");
  assert.equal(agent.text(mark, fork), "Hello, editor.");
});

await step("unknown methods", async () => {
  for (const method of ["session/dance", "_attache/nothing", "_other/thing"]) {
    assert.equal((await agent.refusal(method, {})).code, -32601, method);
  }
  await agent.agent.notify("_other/notification", { any: 1 });
});

const live = agent.since(0, session, "agent_message_chunk").map((update) => update.content.text).join("");
await step("the agent ends with its input", () => agent.end());

await step("session/load in a new process tells everything again", async () => {
  agent = new Connection(binary);
  assert.equal((await initialize(agent, 1)).protocolVersion, 1);
  const answer = await agent.request("session/load", { sessionId: session, ...place });
  assert.equal(answer.modes.currentModeId, "build");
  assert.equal(agent.text(0, session), live);
  assert(agent.text(0, session, "user_message_chunk").startsWith("hello"));
  const ends = agent.since(0, session, "tool_call", "tool_call_update").filter((update) => update.status);
  assert(!ends.some((update) => update.status === "in_progress"), "progress is not told again");
  assert.equal((await agent.prompt(session, "hello")).stopReason, "end_turn");
});

await step("session/resume tells nothing of the past", async () => {
  const mark = agent.updates.length;
  await agent.request("session/resume", { sessionId: fork, ...place });
  assert.equal((await agent.prompt(fork, "hello")).stopReason, "end_turn");
  assert.equal(agent.text(mark, fork), "Hello, editor.");
  assert.equal(agent.since(mark, fork, "user_message_chunk").length, 0);
});

/** The result, or nothing from a build that does not have the method; anything else is a fault. */
async function offered(method, params) {
  try {
    return await agent.request(method, params);
  } catch (error) {
    if (error?.code !== -32601) throw error;
    print(`# ${method} is not offered by this build`);
    return undefined;
  }
}

await step("_attache/session/rewind and unrewind", async () => {
  const answer = await agent.prompt(session, "hello");
  const target = { sessionId: session, messageId: answer._meta["attache/messageId"] };
  const rewound = await offered("_attache/session/rewind", target);
  const restored = await offered("_attache/session/unrewind", { sessionId: session });
  assert.equal(rewound === undefined, restored === undefined, "one without the other");
  if (!rewound) return;
  assert.deepEqual(rewound.prompt, [{ type: "text", text: "hello" }]);
  assert(rewound.hidden >= 2 && restored.restored === rewound.hidden);
  assert.equal((await agent.refusal("_attache/session/unrewind", { sessionId: session })).code, -32602);
});

await step("_attache/session/compact", async () => {
  await offered("_attache/session/compact", { sessionId: session });
  assert.equal((await agent.prompt(session, "hello")).stopReason, "end_turn");
});

await step("session/close and what follows it", async () => {
  await agent.request("session/close", { sessionId: session });
  const error = await agent.refusal("session/prompt", { sessionId: session, prompt: [{ type: "text", text: "x" }] });
  assert.deepEqual([error.code, error.data?.sessionId], [-32002, session]);
  await agent.request("session/load", { sessionId: session, ...place });
});

await step("session/delete and what follows it", async () => {
  await agent.request("session/delete", { sessionId: session });
  for (const method of ["session/load", "session/resume"]) {
    assert.equal((await agent.refusal(method, { sessionId: session, ...place })).code, -32002, method);
  }
  const { sessions } = await agent.request("session/list", {});
  assert.deepEqual(sessions.map((entry) => entry.sessionId), [fork]);
  await agent.request("session/delete", { sessionId: "ses_never_was_there" });
});

await step("the second process ends with its input", () => agent.end());
assert(existsSync(inWorkspace("b.txt")));
print(`# ${stepsDone()} steps`);
