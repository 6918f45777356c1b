// One named step of a drive: `ok NAME`, or the end of the process with the reason.

import { print } from "./connection.mjs";

let steps = 0;

export async function step(name, work) {
  try {
    await work();
    steps += 1;
    print(`ok ${name}`);
  } catch (error) {
    print(`not ok ${name}\n# ${String(error?.stack ?? error).replaceAll("\n", "\n# ")}`);
    process.exit(1);
  }
}

export const stepsDone = () => steps;
