// A model server nobody here wrote. Prints its address, answers until its input ends.
//
//   node serve.mjs FIXTURES.json [KEY]
//
// With a key, requests that carry another one are refused as the real servers refuse them.

import { LLMock } from "@copilotkit/aimock";

const [fixtures, key] = process.argv.slice(2);
const options = { port: 0, strict: true, chunkSize: 7, journalMaxEntries: 0 };
const mock = new LLMock(key ? { ...options, auth: { apiKeys: [key] } } : options);
mock.loadFixtureFile(fixtures);
await mock.start();
process.stdout.write(`${mock.url}\n`);
process.stdin.resume();
process.stdin.on("end", async () => {
  await mock.stop();
  process.exit(0);
});
