// The turn that runs, from what the agent tells its clients: rows that grow, in the shape of stored ones.

import { call, plan, prose, said, thought } from "./parts.js";
import { el } from "./dom.js";

const WORDS = { pending: "pending", in_progress: "running", completed: "completed", failed: "failed" };
const TOOL_KINDS = { read: "read", edit: "edit", delete: "edit", move: "edit", search: "search", execute: "execute", fetch: "fetch", think: "think", switch_mode: "think" };

export class LiveTurn {
  rows = [];
  #calls = new Map();

  clear() {
    this.rows = [];
    this.#calls.clear();
  }

  // Keeps what belongs to the last prompt on: what was before is stored by now.
  keepLast() {
    let at = this.rows.length - 1;
    while (at > 0 && this.rows[at].kind !== "user") at--;
    this.rows = this.rows.slice(Math.max(0, at));
    this.#calls = new Map(this.rows.flatMap((row, index) => (row.kind === "call" ? [[row.call.toolCallId, index]] : [])));
  }

  // Gives the place of the row that is another now, or `undefined` if the update is none of the conversation.
  take(update) {
    const text = update.content?.type === "text" ? update.content.text : undefined;
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        return this.#grow("user", update.messageId, text ?? attached(update.content));
      case "agent_message_chunk":
        return this.#grow("text", update.messageId, text ?? attached(update.content));
      case "agent_thought_chunk":
        return this.#grow("thought", update.messageId, text ?? "");
      case "tool_call":
      case "tool_call_update":
        return this.#call(update);
      case "plan":
        return this.#plan(update.entries ?? []);
      case "notice":
        return this.#push({ kind: "notice", text: [update.title, update.description].filter(Boolean).join(" — ") });
      default:
        return undefined;
    }
  }

  #grow(kind, message, text) {
    const last = this.rows[this.rows.length - 1];
    if (last?.kind === kind && last.message === message) {
      last.text += text;
      return this.rows.length - 1;
    }
    return this.#push({ kind, message, text });
  }

  #push(row) {
    this.rows.push(row);
    return this.rows.length - 1;
  }

  #call(update) {
    const known = this.#calls.get(update.toolCallId);
    if (known === undefined) {
      const at = this.#push({ kind: "call", call: { content: [], ...update } });
      this.#calls.set(update.toolCallId, at);
      return at;
    }
    const { call: before } = this.rows[known];
    for (const [key, value] of Object.entries(update)) if (value !== undefined && value !== null) before[key] = value;
    return known;
  }

  #plan(entries) {
    const at = this.rows.findLastIndex((row) => row.kind === "plan");
    if (at < 0 || this.rows.slice(at).some((row) => row.kind === "user")) return this.#push({ kind: "plan", entries });
    this.rows[at].entries = entries;
    return at;
  }

  element(index) {
    const row = this.rows[index];
    switch (row.kind) {
      case "user":
        return el("div", { class: "message message-user" }, el("div", { class: "message-head" }, el("span", { class: "who" }, "You"), el("span", { class: "faint" }, row.isQueued ? "waits in the queue" : "now")), said(row.text));
      case "text":
        return prose(row.text);
      case "thought":
        return row.text.trim() ? thought(row.text) : undefined;
      case "plan":
        return plan(row.entries);
      case "notice":
        return el("p", { class: "notice" }, row.text);
      default:
        return liveCall(row.call);
    }
  }
}

export function attached(content) {
  if (!content) return "";
  const uri = content.uri ?? content.resource?.uri;
  return `[${content.name ?? (uri ? nameOf(uri) : content.type)}] `;
}

function nameOf(uri) {
  const last = uri.split("/").pop() || uri;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

export function liveCall(update) {
  const isOver = ["completed", "failed"].includes(update.status);
  const denied = update._meta?.attache?.denied;
  return call({
    name: update.name ?? update._meta?.attache?.tool ?? update.kind ?? "tool",
    title: update.title ?? "",
    kind: TOOL_KINDS[update.kind],
    outcome: update.status === "failed" ? "failed" : isOver ? "done" : "open",
    state: WORDS[update.status] ?? update.status,
    decision: denied,
    input: update.rawInput,
    content: update.content ?? [],
    output: isOver && !(update.content?.length) ? update.rawOutput : undefined,
  });
}
