// The official client SDK as an editor with files and terminals of its own. Exit code 0 only if each step came out.
//
// Environment: TEST_BINARY, ATTACHE_HOME (configured with editor.script), TEST_WORKSPACE (an empty directory).
// Output: as that of drive.mjs.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Connection, print } from "./connection.mjs";
import { step, stepsDone } from "./step.mjs";
import { Terminals } from "./terminals.mjs";

const { TEST_BINARY: binary, TEST_WORKSPACE: cwd } = process.env;
assert(binary && cwd && process.env.ATTACHE_HOME, "TEST_BINARY, ATTACHE_HOME and TEST_WORKSPACE must be set");

const inWorkspace = (name) => join(cwd, name);
const onDisk = (name) => readFileSync(inWorkspace(name), "utf8");

async function open(handlers, clientCapabilities) {
  const agent = new Connection(binary, handlers);
  const clientInfo = { name: "attache-test", version: "1.0.0" };
  await agent.request("initialize", { protocolVersion: 1, clientCapabilities, clientInfo });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });
  return { agent, session: sessionId };
}

/** A call as an editor has it after the updates since a mark. */
function merged(agent, session, mark) {
  return Object.assign({}, ...agent.since(mark, session, "tool_call", "tool_call_update"));
}

// Files.

const buffers = new Map();
const reads = [];
let review;
let silent = false;

const files = {
  "fs/read_text_file": ({ path }) => {
    reads.push(path);
    if (silent) return new Promise(() => {});
    return { content: buffers.get(path) ?? readFileSync(path, "utf8") };
  },
  "fs/write_text_file": ({ path, content }) =>
    new Promise((resolve, reject) => {
      review = {
        path,
        content,
        accept: () => {
          buffers.set(path, content);
          writeFileSync(path, content);
          resolve({});
        },
        decline: (reason) => reject(new Error(reason)),
      };
      agent.look();
    }),
};

/** Starts a turn that writes, and waits until the editor holds what shall be written. */
async function startReview(text) {
  review = undefined;
  const mark = agent.updates.length;
  agent.willAnswer("allow_once");
  const turn = agent.prompt(session, text);
  await agent.until("a write to review", () => review && merged(agent, session, mark).status === "in_progress");
  return { turn, mark };
}

writeFileSync(inWorkspace("a.txt"), "saved\n");
buffers.set(inWorkspace("a.txt"), "unsaved\n");
let { agent, session } = await open(files, { fs: { readTextFile: true, writeTextFile: true }, terminal: false });

await step("an unsaved buffer is what is read", async () => {
  const answer = await agent.prompt(session, "read it");
  const call = merged(agent, session, 0);
  assert.deepEqual([answer.stopReason, call.status, call.rawOutput], ["end_turn", "completed", { output: "1:unsaved\n" }]);
  assert.deepEqual(reads, [inWorkspace("a.txt")]);
});

await step("an edit is of the buffer, and waits for its review", async () => {
  const { turn, mark } = await startReview("edit it");
  const [diff] = merged(agent, session, mark).content;
  assert.deepEqual([diff.type, diff.oldText, diff.newText], ["diff", "unsaved\n", "reviewed\n"]);
  assert.deepEqual([review.path, review.content], [inWorkspace("a.txt"), "reviewed\n"]);
  assert.equal(onDisk("a.txt"), "saved\n", "nobody but the editor writes");
  review.accept();
  assert.equal((await turn).stopReason, "end_turn");
  assert.equal(merged(agent, session, mark).status, "completed");
  assert.equal(onDisk("a.txt"), "reviewed\n");
});

await step("a declined review fails the call, and the turn goes on", async () => {
  const { turn, mark } = await startReview("write it");
  review.decline("not like this");
  assert.equal((await turn).stopReason, "end_turn");
  assert.equal(merged(agent, session, mark).status, "failed");
  assert.equal(agent.text(mark, session), "Offered.");
  assert(!existsSync(inWorkspace("new.txt")));
});

await step("an editor that never answers fails the call after ten seconds, and the turn goes on", async () => {
  silent = true;
  const mark = agent.updates.length;
  const before = Date.now();
  assert.equal((await agent.prompt(session, "read it")).stopReason, "end_turn");
  assert(Date.now() - before >= 10_000, `${Date.now() - before} ms`);
  const call = merged(agent, session, mark);
  assert.equal(call.status, "failed");
  assert(JSON.stringify(call.content).includes("did not answer in time"), JSON.stringify(call.content));
  assert.equal(agent.text(mark, session), "I have read it.");
});

await step("the agent ends with its input", () => agent.end());
// Terminals.

const terminals = new Terminals();
({ agent, session } = await open(terminals.handlers, { terminal: true }));
terminals.changed = () => agent.look();

/** Starts a turn with a command, and waits until its terminal is shown and has printed this. */
async function startCommand(text, printed) {
  const mark = agent.updates.length;
  agent.willAnswer("allow_once");
  const turn = agent.prompt(session, text);
  const shown = () => merged(agent, session, mark).content?.find((block) => block.type === "terminal");
  const terminal = () => terminals.all.get(shown()?.terminalId);
  await agent.until(`a terminal with ${printed}`, () => terminal()?.output.includes(printed));
  assert.equal(merged(agent, session, mark).status, "in_progress");
  return { turn, mark, terminal: terminal() };
}

await step("a command runs in a terminal of the editor, shown while it runs", async () => {
  const { turn, mark, terminal } = await startCommand("build it", "started");
  assert(!terminal.output.includes("done"));
  writeFileSync(inWorkspace("go"), "");
  assert.equal((await turn).stopReason, "end_turn");
  const call = merged(agent, session, mark);
  assert.deepEqual([call.status, call.kind], ["completed", "execute"]);
  assert.deepEqual(call.rawOutput, { output: "started\ndone\n", exit_code: 3 });
  assert.deepEqual(call.content.map((block) => block.type), ["terminal"]);
  assert(existsSync(inWorkspace("built")));
  await agent.until("the release", () => terminal.calls.includes("release"));
  assert.deepEqual(terminal.calls, ["output", "release"]);
});

await step("cancel kills the command and releases its terminal", async () => {
  const { turn, mark, terminal } = await startCommand("wait for it", "waiting");
  const before = Date.now();
  await agent.agent.notify("session/cancel", { sessionId: session });
  assert.equal((await turn).stopReason, "cancelled");
  assert(Date.now() - before < 2500, `${Date.now() - before} ms`);
  assert.equal(merged(agent, session, mark).status, "failed");
  await agent.until("the release", () => terminal.calls.includes("release"));
  assert.equal(terminal.calls[0], "kill");
  await agent.until("the end of the command", () => terminal.exitStatus);
});

await step("the second agent ends with its input", () => agent.end());
print(`# ${stepsDone()} steps`);
