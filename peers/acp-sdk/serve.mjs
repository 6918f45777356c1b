// The smallest agent behind the official SDK's own server over HTTP and WebSocket: answers each prompt with as many updates as
// its first argument says, each with the text of its second. Prints where it listens. Compared with by the bench.

import { createServer } from "node:http";
import { agent } from "@agentclientprotocol/sdk";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { WebSocketServer } from "ws";

const [count, text] = [Number(process.argv[2]), process.argv[3]];

const createAgent = () => agent({ name: "bench" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest("session/new", () => ({ sessionId: "bench" }))
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId } = params;
    for (let index = 0; index < count; index += 1) {
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });
    }
    return { stopReason: "end_turn" };
  });

const acp = new AcpServer({ createAgent });
const server = createServer(createNodeHttpHandler(acp));
server.on("upgrade", createNodeWebSocketUpgradeHandler(acp, new WebSocketServer({ noServer: true, perMessageDeflate: false })));
server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
