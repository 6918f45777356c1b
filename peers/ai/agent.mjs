// A chat app of the AI SDK with a mock model and tools, as apps are made from its documentation: streamText behind one route.
// The last word of the last message decides what the model does. Ends when its input does.
//
// Arguments: the folder in whose node_modules `ai` is, and the port (0: any).

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, port] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const ai = await import(pathToFileURL(require.resolve("ai")).href);
const test = await import(pathToFileURL(require.resolve("ai/test")).href);
const { z } = await import(pathToFileURL(require.resolve("zod")).href);
const MockModel = test.MockLanguageModelV4 ?? test.MockLanguageModelV3;

const usage = {
  inputTokens: { total: 12, noCache: 10, cacheRead: 2, cacheWrite: 0 },
  outputTokens: { total: 5, text: 4, reasoning: 1 },
};
const finish = (reason) => ({ type: "finish", finishReason: { unified: reason, raw: reason }, usage });
const text = (id, ...deltas) => [
  { type: "text-start", id },
  ...deltas.map((delta) => ({ type: "text-delta", id, delta })),
  { type: "text-end", id },
];
const call = (toolCallId, toolName, input) => [
  { type: "tool-input-start", id: toolCallId, toolName },
  { type: "tool-input-delta", id: toolCallId, delta: JSON.stringify(input) },
  { type: "tool-input-end", id: toolCallId },
  { type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) },
];

/** What the user said last, and what came of calls behind it. */
function lastOf(prompt) {
  let results = [];
  for (const message of prompt.toReversed()) {
    if (message.role === "user") {
      const said = message.content.filter((part) => part.type === "text").map((part) => part.text);
      return { said, files: message.content.filter((part) => part.type === "file"), results: results.reverse() };
    }
    if (message.role === "tool") {
      results.push(...message.content.filter((part) => part.type === "tool-result").toReversed().map((part) => part.output));
    }
  }
  return { said: [], files: [], results };
}

function answer(prompt) {
  const { said, files, results } = lastOf(prompt);
  const told = results.map((output) => (output.type === "execution-denied" ? `denied ${output.reason ?? ""}` : output.value));
  switch ((said.at(-1) ?? "").split(" ").at(-1)) {
    case "weather":
      if (told.length > 0) return [...text("t", `It is ${JSON.stringify(told[0])}.`), finish("stop")];
      return [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "look it up" },
        { type: "reasoning-end", id: "r" },
        ...call("call-1", "weather", { city: "Oslo" }),
        finish("tool-calls"),
      ];
    case "refund":
      if (told.length > 0) return [...text("t", `Refund: ${told.join("; ")}.`), finish("stop")];
      return [...text("t", "I will refund."), ...call("call-1", "refund", { amount: 5 }), finish("tool-calls")];
    case "refunds":
      if (told.length > 0) return [...text("t", `Refunds: ${told.join("; ")}.`), finish("stop")];
      return [...call("call-1", "refund", { amount: 1 }), ...call("call-2", "refund", { amount: 2 }), finish("tool-calls")];
    case "page":
      return [...call("call-1", "page", { url: "https://example.org" }), finish("tool-calls")];
    case "history": {
      const roles = prompt.filter((message) => message.role !== "system").map((message) => message.role);
      return [...text("t", roles.join(" ")), finish("stop")];
    }
    case "attached":
      return [...text("t", JSON.stringify({ said, files: files.map((file) => file.mediaType) })), finish("stop")];
    case "fail":
      return [...text("t", "half"), { type: "error", error: new Error("the model is broken") }];
    case "long":
      return [...text("t", ...Array.from({ length: 2000 }, (_, index) => `w${index} `)), finish("stop")];
    default:
      return [...text("t", "Hello", " world"), finish("stop")];
  }
}

const model = new MockModel({
  doStream: async ({ prompt, abortSignal }) => ({
    stream: new ReadableStream({
      async start(controller) {
        const slow = (lastOf(prompt).said.at(-1) ?? "").endsWith("long");
        controller.enqueue({ type: "stream-start", warnings: [] });
        for (const part of answer(prompt)) {
          if (abortSignal?.aborted) return controller.error(new DOMException("aborted", "AbortError"));
          if (slow) await new Promise((resolve) => setTimeout(resolve, 2));
          controller.enqueue(part);
        }
        controller.close();
      },
    }),
  }),
});

const tools = {
  weather: ai.tool({ description: "Weather", inputSchema: z.object({ city: z.string() }), execute: async () => ({ sky: "clear" }) }),
  refund: ai.tool({
    description: "Refund",
    inputSchema: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: async ({ amount }) => `refunded ${amount}`,
  }),
  page: ai.tool({ description: "Opens a page in the browser of the user", inputSchema: z.object({ url: z.string() }) }),
};

const bodies = [];
const server = createServer(async (request, response) => {
  if (request.method === "GET") return response.end(JSON.stringify(bodies));
  let body = "";
  for await (const piece of request) body += piece;
  const asked = JSON.parse(body);
  bodies.push({ body: asked, authorization: request.headers.authorization });
  const abort = new AbortController();
  response.on("close", () => abort.abort());
  const said = asked.messages ?? [asked.message];
  // Held to the SDK's own schema before it is used.
  const messages = await ai.validateUIMessages({ messages: said, tools });
  const result = ai.streamText({
    model,
    tools,
    messages: await ai.convertToModelMessages(messages, { tools }),
    stopWhen: ai.stepCountIs(5),
    abortSignal: abort.signal,
    onError: () => {},
  });
  result.pipeUIMessageStreamToResponse(response, {
    originalMessages: messages,
    sendReasoning: true,
    onError: (error) => error.message ?? String(error),
    messageMetadata: ({ part }) => (part.type === "finish" ? { totalUsage: part.totalUsage } : undefined),
  });
});
process.on("unhandledRejection", (error) => console.error(error));
server.listen(Number(port ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit(0));
