// The AI SDK's chat through a proxy that cuts connections at random bytes: whatever is cut, each answer is whole in the end,
// nothing lost and nothing twice.
//
// Environment: TEST_PEERS, TEST_ADDRESS (the proxy), TEST_TOKEN, TEST_ROUNDS. Prints how often a stream was read again.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { TEST_PEERS: peers, TEST_ADDRESS: address, TEST_TOKEN: token, TEST_ROUNDS: rounds } = process.env;
const require = createRequire(pathToFileURL(`${peers}/ai/package.json`));
const { AbstractChat, DefaultChatTransport } = await import(pathToFileURL(require.resolve("ai")).href);

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = [...this.messages.slice(0, index), structuredClone(message), ...this.messages.slice(index + 1)];
  };
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor(id) {
    const headers = { Authorization: `Bearer ${token}` };
    super({ id, transport: new DefaultChatTransport({ api: `http://${address}/api/chat`, headers }), state: new State() });
  }

  get text() {
    if (this.lastMessage?.role !== "assistant") return "";
    return this.lastMessage.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
  }
}

setTimeout(() => {
  console.error("stuck");
  process.exit(1);
}, 60_000).unref();
const expected = "number ".repeat(400);
let resumed = 0;
for (let round = 0; round < Number(rounds); round += 1) {
  const chat = new Chat(`cut-${round}`);
  await chat.sendMessage({ text: "count" });
  const [asked] = chat.messages;
  for (let tries = 0; chat.text !== expected; tries += 1) {
    assert(tries < 500, `round ${round}: ${chat.text.length} characters, ${chat.error}`);
    assert(expected.startsWith(chat.text), `round ${round}: something came twice or is missing: ${chat.text.slice(-60)}`);
    chat.clearError();
    resumed += 1;
    const before = chat.text;
    await chat.resumeStream();
    if (chat.error === undefined && chat.text === before) {
      // Nothing runs any more, or the prompt never arrived: it is asked again under its own id.
      await chat.regenerate({ messageId: asked.id });
    }
  }
  assert.equal(chat.messages.filter((message) => message.role === "assistant").length, 1);
}
console.log(`ok ${resumed}`);
process.exit(0);
