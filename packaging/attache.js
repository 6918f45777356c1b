#!/usr/bin/env node
// Starts the program of this platform, which is in a package of its own, and is as little in its way as it can.
"use strict";

const { spawn } = require("node:child_process");

const name = `attache-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/attache`);
} catch {
  console.error(
    `attache: the package ${name} is not installed. Either there is none for ${process.platform} on ${process.arch} ` +
      "(docs/platforms.md says what there is), or npm left optional packages out: install again without --omit=optional.",
  );
  process.exit(1);
}

let child;
// Before the program is there: a signal between its start and this would end only the launcher.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`attache: ${program} can't be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Ends as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
