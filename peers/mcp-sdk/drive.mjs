// The official MCP client SDK uses attache as a server. Exit code 0 only if each step came out.
//
// Environment: TEST_BINARY, ATTACHE_HOME (configured with model.script), TEST_WORKSPACE (with a.txt), and for
// streamable HTTP TEST_URL and TEST_TOKEN. Output: `ok NAME` or `not ok NAME` for each step.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { TEST_BINARY: binary, TEST_WORKSPACE: workspace, TEST_URL: url, TEST_TOKEN: token } = process.env;
assert(binary && workspace && process.env.ATTACHE_HOME, "TEST_BINARY, ATTACHE_HOME and TEST_WORKSPACE must be set");

const WAIT_MS = 60_000;
const written = join(workspace, "b.txt");

function print(text) {
  const bytes = Buffer.from(`${text}\n`);
  for (let done = 0; done < bytes.length; ) done += writeSync(1, bytes, done);
}

async function step(name, work) {
  try {
    await work();
    print(`ok ${name}`);
  } catch (error) {
    print(`not ok ${name}\n# ${String(error?.stack ?? error).replaceAll("\n", "\n# ")}`);
    process.exit(1);
  }
}

/**
 * The SDK looks at notifications after the answer that came in the same piece, and then knows their token no more. That
 * is its own business; everything else that it finds wrong is ours.
 */
const isTooLate = (error) => String(error).includes("progress notification for an unknown token");

/** A connected client; `fill` answers forms, if it shows any. What went wrong on the wire is in `errors`. */
async function connect(fill) {
  const capabilities = fill ? { elicitation: {} } : {};
  const client = new Client({ name: "attache-test", version: "1.0.0" }, { capabilities });
  client.errors = [];
  client.onerror = (error) => isTooLate(error) || client.errors.push(error);
  if (fill) client.setRequestHandler(ElicitRequestSchema, ({ params }) => fill(params));
  client.wire = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
    : new StdioClientTransport({
        command: binary,
        args: ["mcp", "serve"],
        cwd: workspace,
        env: process.env,
        stderr: "inherit",
      });
  await client.connect(client.wire);
  return client;
}

const call = (client, name, args, options = {}) =>
  client.callTool({ name, arguments: args }, undefined, { timeout: WAIT_MS, ...options });
const ask = (client, prompt, more = {}, options = {}) => call(client, "ask", { prompt, ...more }, options);

/** The text of a call that has to fail. */
async function failure(client, name, args) {
  const result = await call(client, name, args);
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.content[0].text;
}

const client = await connect();
let session;

await step("the hello and the tools", async () => {
  assert.equal(client.getServerVersion().name, "attache");
  assert.match(client.getInstructions(), /ask/);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["ask", "sessions_search", "session_read"]);
  for (const tool of tools) assert(tool.description && tool.inputSchema.type === "object" && tool.outputSchema);
  assert.equal(tools[1].annotations.readOnlyHint, true);
  await client.ping();
});

await step("an answer as text and as data", async () => {
  const result = await ask(client, "hello", { workspace });
  assert.equal(result.isError, false);
  assert.equal(result.content[0].text, "Hello, other agent.");
  const { sessionId, stopReason, usage, denied } = result.structuredContent;
  session = sessionId;
  assert.match(result.content[1].text, new RegExp(session));
  assert.equal(stopReason, "end_turn");
  assert.deepEqual(usage, { input: 100, output: 20, reasoning: 5, cache_read: 7, cache_write: 3 });
  assert.deepEqual(denied, []);
});

await step("progress while it works", async () => {
  const news = [];
  const result = await ask(client, "read it", { workspace }, { onprogress: (line) => news.push(line) });
  assert.equal(result.content[0].text, "It says what it says.");
  const lines = news.map((line) => line.message);
  assert(lines.includes("writes") && lines.some((line) => line.includes("a.txt")), lines.join("\n"));
  const numbers = news.map((line) => line.progress);
  assert(numbers.every((number, index) => index === 0 || number > numbers[index - 1]), numbers.join(" "));
  assert(lines.every((line) => !line.includes("\n")));
});

await step("a call that nobody can allow is denied, and that is told", async () => {
  const result = await ask(client, "write it", { workspace });
  assert.equal(result.content[0].text, "That was it.");
  const [denial, ...rest] = result.structuredContent.denied;
  assert.equal(rest.length, 0);
  assert.equal(denial.tool, "write");
  assert.match(denial.title, /b\.txt/);
  assert.match(denial.why, /^refused because it changes a file; no connected person can allow it/);
  assert.match(result.content[1].text, /denied: .*b\.txt/);
  assert(!existsSync(written));
});

await step("a question of the agent finds nobody, and it goes on", async () => {
  const result = await ask(client, "ask me", { workspace });
  assert.equal(result.content[0].text, "So be it.");
  assert.match(result.structuredContent.denied[0].why, /no connected person/);
});

await step("a person behind the client allows, always allows, rejects and answers", async () => {
  const forms = [];
  let reply = { action: "accept", content: { decision: "allow_once" } };
  const person = await connect((form) => {
    forms.push(form);
    return reply;
  });
  const result = await ask(person, "write it", { workspace });
  assert.deepEqual(result.structuredContent.denied, []);
  assert.equal(readFileSync(written, "utf8"), "first\n");
  assert.equal(forms.length, 1);
  assert.match(forms[0].message, /b\.txt[^]*first/);
  const offered = forms[0].requestedSchema.properties.decision;
  assert(offered.enum.includes("allow_once") && offered.enum.includes("reject"));
  assert.equal(offered.enum.length, offered.enumNames.length);
  rmSync(written);
  for (const rejected of [
    { action: "accept", content: { decision: "reject" } },
    { action: "decline" },
    { action: "cancel" },
  ]) {
    reply = rejected;
    const result = await ask(person, "write it", { workspace });
    assert.equal(result.structuredContent.denied.length, 1);
    assert(!existsSync(written));
  }
  reply = { action: "accept", content: { question_1: "blue" } };
  assert.equal((await ask(person, "ask me", { workspace })).content[0].text, "So be it.");
  assert.deepEqual(forms.at(-1).requestedSchema.properties.question_1.enum, ["red", "blue"]);
  assert.deepEqual(person.errors, []);
  await person.close();
});

await step("a session goes on", async () => {
  const result = await ask(client, "again", { session });
  assert.equal(result.structuredContent.sessionId, session);
  assert.equal(result.content[0].text, "ok");
  const there = await ask(client, "again", { session, workspace, agent: "plan" });
  assert.equal(there.structuredContent.sessionId, session);
});

await step("a cancelled ask ends its turn, a busy session says so, and others are asked meanwhile", async () => {
  const stop = new AbortController();
  let begun;
  const working = new Promise((resolve) => (begun = resolve));
  const onprogress = ({ message }) => message.includes("a.txt") && begun();
  const slow = ask(client, "work slowly on the walrus", { session }, { signal: stop.signal, onprogress });
  const ended = slow.then(() => assert.fail("it was answered"), (error) => error);
  await working;
  assert.match(await failure(client, "ask", { prompt: "me too", session }), /busy/);
  const others = await Promise.all(["hello", "x", "y"].map((prompt) => ask(client, prompt, { workspace })));
  assert.deepEqual(others.map((result) => result.content[0].text), ["Hello, other agent.", "ok", "ok"]);
  stop.abort("enough");
  assert.match(String(await ended), /enough/);
  for (let tries = 0; ; tries += 1) {
    const result = await ask(client, "again", { session });
    if (!result.isError) break;
    assert.match(result.content[0].text, /busy/);
    assert(tries < 200, "the session stays busy");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});

await step("sessions are found by their words", async () => {
  let hits = [];
  for (let tries = 0; hits.length === 0; tries += 1) {
    assert(tries < 200, "nothing is found");
    const result = await call(client, "sessions_search", { query: "walrus", limit: 5 });
    hits = result.structuredContent.hits;
    if (hits.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(hits[0].sessionId, session);
  assert.match(hits[0].snippet, /walrus/);
  assert.deepEqual((await call(client, "sessions_search", { query: "nosuchword" })).structuredContent.hits, []);
});

await step("a session is read page by page", async () => {
  const texts = [];
  let next = 1;
  while (next !== undefined) {
    const { structuredContent: page } = await call(client, "session_read", { session, from: next, limit: 2 });
    assert(page.messages.length > 0 && page.messages.length <= 2);
    assert.equal(page.workspace, workspace);
    assert.equal(page.messages[0].number, next);
    texts.push(...page.messages.map((message) => `${message.role}: ${message.text}`));
    for (const message of page.messages) {
      for (const { tool, state } of message.calls) texts.push(`${tool} ${state}`);
    }
    next = page.next;
  }
  assert.deepEqual(texts.slice(0, 4), ["user: hello", "assistant: Hello, other agent.", "user: again", "assistant: ok"]);
  assert(texts.includes("read output-available"), texts.join("\n"));
});

await step("bad input is told in words", async () => {
  writeFileSync(join(workspace, "plain"), "");
  for (const [args, reason] of [
    [{}, /prompt/],
    [{ prompt: " " }, /empty/],
    [{ prompt: 5 }, /string/],
    [{ prompt: "x", workdir: workspace }, /workdir/],
    [{ prompt: "x", workspace: "here" }, /absolute/],
    [{ prompt: "x", workspace: join(workspace, "none") }, /does not exist/],
    [{ prompt: "x", workspace: join(workspace, "plain") }, /not a directory/],
    [{ prompt: "x", agent: "biuld" }, /biuld/],
    [{ prompt: "x", session: "ses_none" }, /no session/],
    [{ prompt: "x", session: "../x" }, /no session/],
    [{ prompt: "x", session, workspace: "/" }, /works in/],
  ]) {
    assert.match(await failure(client, "ask", args), reason);
  }
  assert.match(await failure(client, "sessions_search", { query: "" }), /no word/);
  assert.match(await failure(client, "sessions_search", { query: "x", limit: 0 }), /limit/);
  assert.match(await failure(client, "session_read", { session: "ses_none" }), /no session/);
  assert.match(await failure(client, "session_read", { session, from: 0 }), /from/);
  assert.match(await failure(client, "session_read", { session, limit: 100000 }), /limit/);
  await assert.rejects(call(client, "tell", {}), /unknown tool/);
  await assert.rejects(client.listResources(), /[Mm]ethod not found|does not support/);
});

await step("a refused ask leaves no session behind", async () => {
  const { structuredContent } = await call(client, "session_read", { session, limit: 200 });
  assert.equal(structuredContent.messages.filter((message) => message.text === "x").length, 0);
});

await step("the end", async () => {
  assert.deepEqual(client.errors, []);
  if (url) {
    const name = client.wire.sessionId;
    await client.wire.terminateSession();
    const headers = { Authorization: `Bearer ${token}`, Accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const late = await fetch(url, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json", "Mcp-Session-Id": name },
      body,
    });
    assert.equal(late.status, 404);
  }
  await client.close();
});
