// Makes a long session of a short one: `node large.mjs EXPORT.jsonl TURNS PARTS > LONG.jsonl`, to be imported.

import { readFileSync } from "node:fs";

const [, , path, turns, parts] = process.argv;
const lines = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const [head] = lines;
const prompts = lines.filter(({ type }) => type === "system_prompt");
const messages = lines.filter(({ type }) => type === "message");
const [question, answer] = ["user", "assistant"].map((role) => messages.find(({ data }) => data.role === role).data);
const partsOf = (message) => lines.filter(({ type, data }) => type === "part" && data.message_id === message.id).map(({ data }) => data);
const [asked, answered] = [partsOf(question), partsOf(answer)];
const id = (kind, number) => `${kind}_${number.toString(36).padStart(26, "0")}`;
const out = [];
const say = (type, data) => out.push(JSON.stringify({ type, data }));
const session = id("ses", Date.now());
out.push(JSON.stringify({ ...head, data: { ...head.data, id: session, metadata: { ...head.data.metadata, title: `${turns} turns of ${parts} parts` } } }));
const begun = BigInt(Date.now()) * 1_000_000n;
let [seq, number, told] = [0, 1, false];
const add = (message, own, count) => {
  if (message.role === "assistant" && !told) {
    for (const prompt of prompts) out.push(JSON.stringify(prompt));
    told = true;
  }
  const messageId = id("msg", begun + BigInt(number++));
  say("message", { ...message, id: messageId, session_id: session, seq: ++seq });
  for (let index = 0; index < count; index++) {
    const part = own[index % own.length];
    const call = part.tool_call_id ? `${part.tool_call_id}_${index}` : null;
    const data = { ...part.data };
    if (call) data.toolCallId = call;
    say("part", { ...part, id: id("prt", begun + BigInt(number++)), message_id: messageId, session_id: session, index, data, tool_call_id: call });
  }
};
for (let turn = 0; turn < Number(turns); turn++) {
  add(question, asked, asked.length);
  add(answer, answered, Number(parts));
}
say("end", { messages: seq, parts: out.filter((line) => line.startsWith('{"type":"part"')).length, blobs: 0 });
process.stdout.write(`${out.join("\n")}\n`);
