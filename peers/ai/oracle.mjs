// Folds chunk streams the way the AI SDK's clients do, for comparison with our reducer. It decides nothing itself.
//
// stdin: one JSON object per line, {"chunks": [...]} or {"partial": "cut JSON text"}.
// stdout: one line for each, in order:
//   {"valid": bool, "errors": [..], "message": {id, metadata?, parts} | null, "error": string | null} or {"value": ..}.
// `errors` says which chunks the schema refuses; `error` is what stopped the fold.
// The packages are taken from $TEST_PEERS/ai, where they were installed from the lock file beside this one.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const peers = process.env.TEST_PEERS;
if (!peers) {
  console.error("TEST_PEERS is not set: run cargo xtask test");
  process.exit(2);
}
const require = createRequire(pathToFileURL(`${peers}/ai/package.json`));
const { uiMessageChunkSchema, readUIMessageStream, parsePartialJson } = await import(
  pathToFileURL(require.resolve("ai")).href
);

const schema = uiMessageChunkSchema();

async function refused(chunks) {
  const errors = [];
  for (const [index, chunk] of chunks.entries()) {
    const result = await schema.validate(chunk);
    if (!result.success) {
      errors.push(`chunk ${index}: ${chunk?.type}`);
    }
  }
  return errors;
}

// Some chunks change the message without showing it. A last part that always shows makes them visible; it is taken off again.
const END = { type: "file", url: "oracle:end", mediaType: "text/plain" };

async function fold(chunks) {
  let message = null;
  let error = null;
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of [...chunks, END]) controller.enqueue(chunk);
      controller.close();
    },
  });
  const onError = (cause) => {
    // An error chunk is reported here too, as a plain Error, and does not stop the fold.
    if (cause?.name !== "Error") error = String(cause?.message ?? cause);
  };
  for await (const snapshot of readUIMessageStream({ stream, onError })) message = snapshot;
  const last = message?.parts.at(-1);
  if (last?.type === END.type && last.url === END.url) message.parts.pop();
  return { message, error };
}

async function answer(request) {
  if ("partial" in request) {
    return { value: (await parsePartialJson(request.partial)).value };
  }
  const errors = await refused(request.chunks);
  const folded = errors.length === 0 ? await fold(request.chunks) : { message: null, error: null };
  return { valid: errors.length === 0, errors, ...folded };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line.trim() === "") continue;
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
