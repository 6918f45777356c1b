// One process of the agent and one connection of the official SDK to it; every line in either direction is printed.

import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { client, ndJsonStream } from "@agentclientprotocol/sdk";

const ANSWER_MS = 20_000;

/** Prints one line of the report at once: a crash must not swallow what led to it. */
export function print(text) {
  const bytes = Buffer.from(`${text}\n`);
  for (let written = 0; written < bytes.length; ) written += writeSync(1, bytes, written);
}

let connections = 0;

export class Connection {
  /** `handlers`: what this client does beyond answering questions, by method. */
  constructor(binary, handlers = {}) {
    this.number = ++connections;
    this.updates = [];
    this.asked = [];
    this.answers = [];
    this.waiters = new Set();
    this.updateLines = 0;
    this.child = spawn(binary, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
    this.exited = new Promise((resolve) => this.child.once("exit", (code, signal) => resolve({ code, signal })));
    const stream = ndJsonStream(
      Writable.toWeb(this.child.stdin),
      Readable.toWeb(this.child.stdout).pipeThrough(this.tee("<")),
    );
    const outgoing = stream.writable.getWriter();
    const writable = new WritableStream({
      write: (message) => {
        print(`${this.number}> ${JSON.stringify(message)}`);
        return outgoing.write(message);
      },
      close: () => outgoing.close(),
      abort: (reason) => outgoing.abort(reason),
    });
    let app = client({ name: "attache-test" })
      .onRequest("session/request_permission", ({ params }) => this.permission(params))
      .onNotification("session/update", ({ params }) => this.updated(params));
    for (const [method, handler] of Object.entries(handlers)) {
      app = app.onRequest(method, ({ params }) => handler(params));
    }
    this.connection = app.connect({ writable, readable: stream.readable });
    this.agent = this.connection.agent;
  }

  /** Passes bytes on and prints the lines they complete, before anybody acts on them. */
  tee(arrow) {
    let rest = Buffer.alloc(0);
    return new TransformStream({
      transform: (piece, controller) => {
        rest = Buffer.concat([rest, piece]);
        for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
          const line = rest.subarray(0, end).toString();
          if (line.includes('"session/update"')) this.updateLines += 1;
          print(`${this.number}${arrow} ${line}`);
          rest = rest.subarray(end + 1);
        }
        controller.enqueue(piece);
      },
    });
  }

  request(method, params, options) {
    return timed(this.agent.request(method, params, options), method);
  }

  /** The error a request must end in. */
  async refusal(method, params) {
    let result;
    try {
      result = await this.request(method, params);
    } catch (error) {
      if (typeof error?.code !== "number") throw error;
      return error;
    }
    throw new Error(`${method} should have failed, but answered ${JSON.stringify(result)}`);
  }

  prompt(sessionId, text, options) {
    return this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] }, options);
  }

  /** How the next permission requests are answered, in order: an option kind or "cancelled". */
  willAnswer(...kinds) {
    this.answers.push(...kinds);
  }

  permission(params) {
    this.asked.push(params);
    const kind = this.answers.shift();
    if (kind === undefined) throw new Error("asked for permission when nothing should ask");
    if (kind === "cancelled") return { outcome: { outcome: "cancelled" } };
    const option = params.options.find((candidate) => candidate.kind === kind);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  }

  updated(params) {
    this.updates.push(params);
    this.look();
  }

  /** Something has happened that somebody may wait for. */
  look() {
    for (const waiter of this.waiters) waiter();
  }

  /** Updates of one session since a mark, optionally of some kinds. */
  since(mark, sessionId, ...kinds) {
    return this.updates
      .slice(mark)
      .filter((params) => params.sessionId === sessionId)
      .map((params) => params.update)
      .filter((update) => kinds.length === 0 || kinds.includes(update.sessionUpdate));
  }

  text(mark, sessionId, kind = "agent_message_chunk") {
    return this.since(mark, sessionId, kind).map((update) => update.content.text).join("");
  }

  /** Waits until an update, or whoever calls `look`, makes the condition true. */
  until(what, condition) {
    const settled = new Promise((resolve) => {
      const look = () => {
        if (!condition()) return;
        this.waiters.delete(look);
        resolve();
      };
      this.waiters.add(look);
      look();
    });
    return timed(settled, what);
  }

  /** Closes the agent's input, as an editor does that exits. */
  async end() {
    this.child.stdin.end();
    const exit = await timed(this.exited, "the agent's exit");
    if (exit.code !== 0) throw new Error(`the agent ended with ${JSON.stringify(exit)}`);
    if (this.updateLines !== this.updates.length) {
      throw new Error(`${this.updateLines} updates came, but the SDK understood ${this.updates.length}`);
    }
  }
}

function timed(promise, what) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing after ${ANSWER_MS} ms: ${what}`)), ANSWER_MS);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
