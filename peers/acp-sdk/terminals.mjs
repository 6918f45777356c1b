// The terminals of an editor: real processes, their output, and what the agent asked of them.

import { spawn } from "node:child_process";

export class Terminals {
  constructor() {
    this.all = new Map();
    this.changed = () => {};
    this.handlers = {
      "terminal/create": (params) => this.create(params),
      "terminal/output": ({ terminalId }) => this.get(terminalId).read(),
      "terminal/wait_for_exit": ({ terminalId }) => this.get(terminalId).ended,
      "terminal/kill": ({ terminalId }) => this.get(terminalId).kill(),
      "terminal/release": ({ terminalId }) => this.get(terminalId).release(),
    };
  }

  create(params) {
    const id = `term_${this.all.size + 1}`;
    this.all.set(id, new Terminal(params, () => this.changed()));
    return { terminalId: id };
  }

  /** A released terminal is shown on, but no longer answers. */
  get(id) {
    const terminal = this.all.get(id);
    if (!terminal || terminal.calls.includes("release")) throw new Error(`no terminal ${id}`);
    return terminal;
  }
}

class Terminal {
  constructor({ command, args = [], env = [], cwd, outputByteLimit }, changed) {
    this.calls = [];
    this.output = "";
    this.truncated = false;
    this.changed = changed;
    // As editors do: what they are given comes on top of what they have.
    const environment = { ...process.env, EDITOR_SECRET: "canary" };
    for (const { name, value } of env) environment[name] = value;
    this.child = spawn(command, args, { cwd, env: environment, stdio: "pipe", detached: true });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => this.append(text, outputByteLimit));
    }
    this.ended = new Promise((resolve) => {
      this.child.once("error", (error) => this.append(`${error}\n`, outputByteLimit));
      this.child.once("close", (exitCode, signal) => {
        this.exitStatus = { exitCode: exitCode < 0 ? null : exitCode, signal };
        resolve(this.exitStatus);
        changed();
      });
    });
  }

  append(text, limit) {
    this.output += text;
    if (this.output.length > limit) {
      this.output = this.output.slice(-limit);
      this.truncated = true;
    }
    this.changed();
  }

  read() {
    this.calls.push("output");
    return { output: this.output, truncated: this.truncated, exitStatus: this.exitStatus };
  }

  kill() {
    this.calls.push("kill");
    this.end();
    return {};
  }

  release() {
    this.calls.push("release");
    this.end();
    this.changed();
    return {};
  }

  /** The whole group, as a terminal that is closed. */
  end() {
    if (!this.exitStatus && this.child.pid) process.kill(-this.child.pid, "SIGKILL");
  }
}
