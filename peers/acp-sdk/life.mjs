// The official client SDK lives a whole session: queue, steering, rewind with files, fork, plan mode and the way out of
// it, subagents, compaction. Exit code 0 only if each step came out.
//
// Environment: TEST_BINARY, ATTACHE_HOME (configured with life.script), TEST_WORKSPACE (an empty directory).
// Output: as that of drive.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Connection, print } from "./connection.mjs";
import { step, stepsDone } from "./step.mjs";

const { TEST_BINARY: binary, TEST_WORKSPACE: cwd } = process.env;
assert(binary && cwd && process.env.ATTACHE_HOME, "TEST_BINARY, ATTACHE_HOME and TEST_WORKSPACE must be set");

const place = { cwd, mcpServers: [] };
const file = join(cwd, "b.txt");
const onDisk = () => readFileSync(file, "utf8");

async function open() {
  const connection = new Connection(binary);
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
  const clientInfo = { name: "attache-test", version: "1.0.0" };
  await connection.request("initialize", { protocolVersion: 1, clientCapabilities, clientInfo });
  return connection;
}

let agent = await open();
const { sessionId: session } = await agent.request("session/new", place);

await step("a first turn writes a file", async () => {
  agent.willAnswer("allow_once");
  assert.equal((await agent.prompt(session, "write it")).stopReason, "end_turn");
  assert.equal(onDisk(), "first\nsecond\n");
});

/** The ends of prompts, in the order of their answers. */
const ended = [];
function follow(name, answer) {
  return answer.then(({ stopReason }) => ended.push(`${name} ${stopReason}`));
}

await step("five prompts wait, the third is cancelled, and one steers the running turn", async () => {
  const mark = agent.updates.length;
  const all = [follow("work", agent.prompt(session, "work"))];
  await agent.until("the first words", () => agent.text(mark, session) === "Working.");
  const names = ["one", "two", "three", "four", "five"];
  for (const name of names) all.push(follow(name, agent.prompt(session, name)));
  const { queued } = await agent.request("_attache/queue/list", { sessionId: session });
  assert.deepEqual(queued.map((message) => message.prompt[0].text), names);
  await agent.request("_attache/queue/cancel", { sessionId: session, messageId: queued[2].messageId });
  const steering = {
    sessionId: session,
    prompt: [{ type: "text", text: "steer it" }],
    _meta: { "attache/steer": true },
  };
  all.push(follow("steer", agent.request("session/prompt", steering)));
  await Promise.all(all);
  assert.deepEqual(ended, [
    "three cancelled",
    "work end_turn",
    "steer end_turn",
    "one end_turn",
    "two end_turn",
    "four end_turn",
    "five end_turn",
  ]);
  assert.equal(agent.text(mark, session), "Working.Steered.1245");
  assert.equal((await agent.request("_attache/queue/list", { sessionId: session })).queued.length, 0);
});

let changed;
await step("a rewind takes the file back, an unrewind brings the change again", async () => {
  agent.willAnswer("allow_once");
  const answer = await agent.prompt(session, "change it");
  changed = answer._meta["attache/messageId"];
  assert.equal(onDisk(), "1st\nsecond\n");
  const rewound = await agent.request("_attache/session/rewind", { sessionId: session, messageId: changed });
  assert.deepEqual(rewound.prompt, [{ type: "text", text: "change it" }]);
  assert.deepEqual(rewound.files, { restored: [file], conflicts: [], notCovered: [] });
  assert.equal(onDisk(), "first\nsecond\n");
  const back = await agent.request("_attache/session/unrewind", { sessionId: session });
  assert.deepEqual([back.restored, back.files.restored], [rewound.hidden, [file]]);
  assert.equal(onDisk(), "1st\nsecond\n");
});

let fork;
await step("a copy ends with the turn it was asked for", async () => {
  const { queued } = await agent.request("_attache/queue/list", { sessionId: session });
  assert.equal(queued.length, 0);
  const params = { sessionId: session, ...place, _meta: { "attache/messageId": changed } };
  fork = (await agent.request("session/fork", params)).sessionId;
  assert.notEqual(fork, session);
  assert.equal((await agent.prompt(session, "only in the first")).stopReason, "end_turn");
});

await step("plan mode is left through plan_exit, and the same turn carries the plan out", async () => {
  await agent.request("session/set_mode", { sessionId: session, modeId: "plan" });
  const mark = agent.updates.length;
  const asked = agent.asked.length;
  agent.willAnswer("allow_once", "allow_once");
  assert.equal((await agent.prompt(session, "plan it")).stopReason, "end_turn");
  const [question, write] = agent.asked.slice(asked);
  assert.match(JSON.stringify(question.toolCall.content), /Number the lines/);
  assert.deepEqual(question.options.map((option) => option.kind), ["allow_once", "reject_once"]);
  assert.match(write.toolCall.title, /b\.txt/);
  const [first, ...others] = agent.since(mark, session, "tool_call");
  assert.deepEqual([first.kind, others.length], ["switch_mode", 1]);
  const [mode, ...modes] = agent.since(mark, session, "current_mode_update");
  assert.deepEqual([mode.currentModeId, modes.length], ["build", 0]);
  const option = agent
    .since(mark, session, "config_option_update")
    .at(-1)
    .configOptions.find((candidate) => candidate.id === "mode");
  assert.equal(option.currentValue, "build", "modes and the option are in sync");
  assert.equal(onDisk(), "1 first\n2 second\n");
  assert.equal(agent.text(mark, session), "Carried out.");
});

await step("three subagents work at once, in sessions that lists leave out", async () => {
  const mark = agent.updates.length;
  assert.equal((await agent.prompt(session, "look everywhere")).stopReason, "end_turn");
  const updates = agent.since(mark, session, "tool_call", "tool_call_update");
  const ids = new Set(updates.map((update) => update.toolCallId));
  assert.equal(ids.size, 3);
  const firstWith = (status) => [...ids].map((id) => updates.findIndex((update) => update.toolCallId === id && update.status === status));
  assert(Math.max(...firstWith("in_progress")) < Math.min(...firstWith("completed")), "all run before one ends");
  const results = [...ids].map((id) => updates.findLast((update) => update.toolCallId === id).rawOutput.output);
  assert.deepEqual(results, ["Here.", "There.", "Nowhere."]);
  const list = async (_meta) => (await agent.request("session/list", { cwd, _meta })).sessions;
  const own = await list({});
  const children = (await list({ "attache/children": true })).filter((row) => row._meta?.attache?.parentId === session);
  assert.deepEqual([own.length, children.length], [2, 3]);
});

await step("one works in the background: its result is a message of its own, between two turns", async () => {
  const mark = agent.updates.length;
  assert.equal((await agent.prompt(session, "keep an eye on it")).stopReason, "end_turn");
  assert.equal(agent.text(mark, session), "Begun.");
  await agent.until("the result", () => agent.text(mark, session).includes("It moved."));
  assert.match(agent.text(mark, session), /^Begun\.Background task “watch it” \(explore, ses_\w+\) has ended:\n\nIt moved\.$/);
  const { state } = await agent.request("_attache/session/status", { sessionId: session });
  assert.equal(state, "idle");
});

await step("/compact summarises, and the session goes on", async () => {
  const mark = agent.updates.length;
  assert.equal((await agent.prompt(session, "/compact the file")).stopReason, "end_turn");
  assert.match(agent.text(mark, session), /^Summarised: about \d+ tokens/);
  assert.match(agent.text(mark, session, "agent_thought_chunk"), /summarised to make room/);
  assert.equal((await agent.prompt(session, "five")).stopReason, "end_turn");
});

const live = agent.text(0, session);
await step("the agent ends with its input", () => agent.end());

await step("another process loads the copy and the first, each as it was", async () => {
  agent = await open();
  await agent.request("session/load", { sessionId: fork, ...place });
  assert.equal(agent.text(0, fork), "Written.Working.Steered.1245Changed.");
  assert(!agent.text(0, fork, "user_message_chunk").includes("only in the first"));
  await agent.request("session/load", { sessionId: session, ...place });
  assert.equal(agent.text(0, session), live);
  const mark = agent.updates.length;
  assert.equal((await agent.prompt(fork, "one")).stopReason, "end_turn");
  assert.equal(agent.text(mark, fork), "1");
});

await step("the second process ends with its input", () => agent.end());
print(`# ${stepsDone()} steps`);
