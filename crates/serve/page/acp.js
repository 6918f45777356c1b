// The page as a client of the agent: JSON-RPC over a WebSocket that comes back by itself.

import { pageKey } from "./api.js";

const PAUSES = [250, 1000, 2000, 5000, 15_000];
// What is asked of people.
const QUESTIONS = ["session/request_permission", "elicitation/create"];

export class AcpError extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

export class Acp extends EventTarget {
  #socket = null;
  #ready = null;
  #number = 0;
  #waiting = new Map();
  #tries = 0;
  #sessions = new Map();
  // Questions that nobody here has answered, by their ids: whoever looks at the session next is asked.
  #asked = new Map();

  // What a session is told goes to its listener: `update`, `ask`, `withdrawn`, `visited`, and `lost` when the connection was
  // cut.
  listen(session, listener) {
    this.#sessions.set(session, listener);
    for (const [id, { method, params }] of this.#asked) if (params.sessionId === session) listener.ask(id, method, params);
  }

  forget(session) {
    this.#sessions.delete(session);
  }

  async request(method, params) {
    await this.#connected();
    return this.#ask(method, params);
  }

  async notify(method, params) {
    await this.#connected();
    this.#send({ method, params });
  }

  answer(id, result) {
    this.#asked.delete(id);
    this.#send({ id, result });
  }

  #ask(method, params) {
    const id = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  #connected() {
    this.#ready ??= this.#connect().catch((error) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  async #connect() {
    const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/acp?page=${pageKey()}`;
    const socket = new WebSocket(address);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error("The server can't be reached.")), { once: true });
    });
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#take(JSON.parse(event.data)));
    socket.addEventListener("close", () => this.#lost(socket));
    await this.#ask("initialize", {
      protocolVersion: 1,
      clientInfo: { name: "attache-page", title: "The page of attache", version: "1" },
      clientCapabilities: { elicitation: { form: {}, url: {} } },
    });
    this.#tries = 0;
  }

  #lost(socket) {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#ready = null;
    for (const { reject } of this.#waiting.values()) reject(new Error("The connection was cut."));
    this.#waiting.clear();
    this.#asked.clear();
    if (this.#sessions.size === 0) return;
    const pause = PAUSES[Math.min(this.#tries++, PAUSES.length - 1)];
    setTimeout(() => this.#connected().then(() => this.#tell("lost"), () => this.#lost(this.#socket)), pause);
  }

  #tell(kind, ...what) {
    for (const listener of this.#sessions.values()) listener[kind]?.(...what);
  }

  #take(message) {
    if (message.method === undefined) {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error) waiting?.reject(new AcpError(message.error));
      else waiting?.resolve(message.result);
      return;
    }
    const listener = this.#sessions.get(message.params?.sessionId);
    if (message.method === "session/update") listener?.update(message.params.update);
    else if (QUESTIONS.includes(message.method) && message.params?.sessionId) {
      this.#asked.set(message.id, message);
      listener?.ask(message.id, message.method, message.params);
    } else if (message.method === "$/cancel_request") {
      this.#asked.delete(message.params?.requestId);
      this.#tell("withdrawn", message.params?.requestId);
    } else if (message.method === "elicitation/complete") this.#tell("visited", message.params?.elicitationId);
    else if (message.id !== undefined) this.#send({ id: message.id, error: { code: -32601, message: "this page can't do that" } });
  }
}
