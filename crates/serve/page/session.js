// One session: its conversation from the store, the turn that runs from the agent itself, and what a person says.

import { download, json, session } from "./api.js";
import { Attachments, blocksOf } from "./attachments.js";
import { button, el, icon, replace } from "./dom.js";
import { Facts, titleOf } from "./facts.js";
import { STATES, clock, compact, dollars, isActive, minutes } from "./format.js";
import { LiveTurn, attached } from "./live.js";
import { showPathsFrom, storedPart } from "./parts.js";
import { Questions } from "./questions.js";
import { Timeline } from "./timeline.js";

const LOOK = 1000;
const PAGE_ROWS = 400;
// About as many as are laid out at the end of a conversation.
const FIRST_ROWS = 30;
const KEPT_ROWS = 30_000;
const GUESSED = { user: 76, assistant: 64, system: 40 };
const EXPORTS = [["md", "Markdown"], ["html", "HTML"], ["jsonl", "JSONL, to import"], ["json", "JSON"], ["csv", "CSV"]];

export class SessionView {
  #id;
  #acp;
  #head = null;
  #messages = [];
  #starts = [];
  #turns = [];
  #stored = 0;
  #pages = new Map();
  #loading = new Set();
  #live = new LiveTurn();
  #facts = new Facts();
  #timeline = null;
  #timer = null;
  #isOpen = null;
  #isClosed = false;
  #questions = null;
  #attachments = null;
  #options = [];
  #parts = {};
  // What of the store is on the screen, to know when it is another.
  #shown = null;

  constructor(id, acp, actions) {
    this.#id = id;
    this.#acp = acp;
    this.#build(actions);
  }

  get id() {
    return this.#id;
  }

  #build(actions) {
    const parts = this.#parts;
    parts.title = el("h1", { tabindex: -1, id: "title" }, "…");
    parts.state = el("span", { class: "session-state", role: "status", "aria-live": "polite" });
    parts.scroller = el("div", { class: "conversation", tabindex: 0, role: "region", "aria-label": "Conversation" });
    parts.latest = el("button", { type: "button", class: "latest", hidden: true, on: { click: () => this.#timeline.follow() } }, icon("down"), "Latest");
    this.#questions = new Questions((id, result) => this.#acp.answer(id, result), () => parts.text.focus());
    this.#attachments = new Attachments((error) => this.#fail(error));
    parts.queue = el("ul", { class: "queue", "aria-label": "Prompts that wait", hidden: true });
    parts.error = el("p", { class: "error-line", role: "alert", hidden: true });
    parts.details = button("Details (d)", "info", () => this.toggleFacts(), { "aria-expanded": "false", "aria-controls": "facts" });
    parts.exports = el("div", { class: "menu", role: "menu", hidden: true }, EXPORTS.map(([format, name]) =>
      el("button", { type: "button", role: "menuitem", on: { click: () => void download(session(this.#id, `/export?format=${format}`)).catch((error) => this.#fail(error)) } }, name)));
    const exporting = button("Export", "export", () => {
      parts.exports.hidden = !parts.exports.hidden;
      exporting.setAttribute("aria-expanded", String(!parts.exports.hidden));
      if (!parts.exports.hidden) parts.exports.querySelector("button").focus();
    }, { "aria-haspopup": "menu", "aria-expanded": "false" });
    parts.exports.addEventListener("click", () => (parts.exports.hidden = true));
    parts.exports.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      parts.exports.hidden = true;
      exporting.focus();
      event.stopPropagation();
    });
    const head = el("header", { class: "head" },
      el("a", { class: "icon-button back", route: "/", "aria-label": "All sessions", title: "All sessions" }, icon("back")),
      el("div", { class: "head-text" }, parts.title, parts.state),
      el("div", { class: "actions" },
        button("Compare with another session", "diff", () => actions.compare(this.#id)),
        el("div", { class: "with-menu" }, exporting, parts.exports), parts.details));
    this.element = el("div", { class: "session" }, el("div", { class: "talk" }, head, parts.scroller, el("div", { class: "foot" }, parts.latest, this.#questions.element, parts.queue, parts.error, this.#composer())), this.#facts.element);
    const view = this;
    this.#timeline = new Timeline(parts.scroller, {
      guess: (index) => this.#guess(index),
      row: (index) => this.#row(index),
      seen: (first, last) => this.#seen(first, last),
      moved: (isFollowing) => (parts.latest.hidden = isFollowing || parts.scroller.scrollHeight < parts.scroller.clientHeight + 200),
      get count() {
        return view.#stored + view.#live.rows.length;
      },
    });
  }

  #composer() {
    const parts = this.#parts;
    parts.text = el("textarea", { id: "prompt", rows: 1, placeholder: "Ask for something", "aria-label": "Prompt", enterkeyhint: "send" });
    parts.send = el("button", { type: "submit", class: "send", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
    parts.stop = el("button", { type: "button", class: "stop", "aria-label": "Stop the turn", title: "Stop the turn (Esc)", hidden: true, on: { click: () => this.cancel() } }, icon("stop"));
    parts.options = el("div", { class: "options" });
    const files = this.#attachments;
    const form = el("form", { class: "composer" }, files.list, parts.text, files.input, el("div", { class: "composer-foot" }, files.button, parts.options, parts.stop, parts.send));
    files.takeFrom(form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#say();
    });
    parts.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        void this.#say();
      } else if (event.key === "Escape") {
        parts.text.blur();
        event.stopPropagation();
      }
    });
    parts.text.addEventListener("input", () => this.#fit());
    return form;
  }

  #fit() {
    const { text } = this.#parts;
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight, innerHeight * 0.4)}px`;
  }

  async open(message) {
    const [head, outline] = await Promise.all([this.#look(), json(session(this.#id, "/outline"))]);
    this.#shown = stored(head);
    showPathsFrom(head.workspace_root);
    this.#setOutline(outline.messages, head);
    const at = message ? this.#messages.findIndex(([, , , id]) => id === message) : -1;
    // What will be in sight is asked for before anything is laid out.
    const first = at >= 0 ? this.#starts[at] : Math.max(0, this.#stored - FIRST_ROWS);
    if (this.#stored > 0) void this.#load(first).catch((error) => this.#fail(error));
    this.#timeline.changed();
    if (at >= 0) this.#timeline.show(first);
    else this.#timeline.follow();
    if (outline.next !== null) await this.#restOfOutline(outline.next, message, at >= 0);
    this.#acp.listen(this.#id, {
      update: (update) => this.#update(update),
      ask: (...question) => this.#ask(...question),
      withdrawn: (id) => this.#questions.withdrawn(id),
      visited: (address) => this.#questions.visited(address),
      lost: () => this.#again(),
    });
    if (isActive(head.status)) await this.#join().catch((error) => this.#fail(error));
    this.#schedule();
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#acp.forget(this.#id);
    this.#timeline.close();
  }

  async #restOfOutline(next, message, isShown) {
    let after = next;
    const all = [...this.#messages];
    while (after !== null && !this.#isClosed) {
      const page = await json(session(this.#id, "/outline"), { after });
      all.push(...page.messages);
      after = page.next;
    }
    this.#setOutline(all, this.#head);
    this.#timeline.changed(0);
    const at = message ? this.#messages.findIndex(([, , , id]) => id === message) : -1;
    if (at >= 0 && !isShown) this.#timeline.show(this.#starts[at]);
  }

  // Of a turn that runs its clients are told; what is stored of it may be behind.
  #setOutline(messages, head) {
    const first = isActive(head.status) && head.live ? head.live.first_seq : Infinity;
    this.#messages = messages.filter(([seq]) => seq < first);
    this.#starts = [];
    let count = 0;
    let turn = 0;
    this.#turns = this.#messages.map(([, role]) => (role === "user" ? ++turn : turn));
    for (const [, , parts] of this.#messages) {
      this.#starts.push(count);
      count += 1 + parts;
    }
    this.#stored = count;
  }

  async #look() {
    const head = await json(session(this.#id));
    this.#head = head;
    const { title, state, stop, text } = this.#parts;
    const named = titleOf(head);
    if (title.textContent !== named) replace(title, named);
    const busy = isActive(head.status);
    const words = head.status.state === "error" ? `failed: ${head.status.message}` : STATES[head.status.state];
    const tokens = head.prompt_tokens + head.completion_tokens + head.reasoning_tokens + head.cache_read + head.cache_write;
    replace(state, words ? el("span", { class: `state state-${head.status.state}` }, words) : null,
      el("span", { class: "faint" }, [head.model?.model_id, tokens ? `${compact(tokens)} tokens` : "", dollars(head.cost_usd)].filter(Boolean).join(" · ")));
    stop.hidden = !busy;
    text.placeholder = busy ? "Say what is next; it waits in the queue" : "Ask for something";
    this.#facts.show(head);
    if (!this.#options.length) replace(this.#parts.options, el("span", { class: "faint standing" }, [head.mode, head.model?.model_id].filter(Boolean).join(" · ")));
    return head;
  }

  #schedule() {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#watch(), LOOK);
  }

  // Whether a turn has begun or ended meanwhile, here or by another client.
  async #watch() {
    try {
      const before = this.#head;
      if (document.hidden && !isActive(before.status)) return;
      const head = await this.#look();
      if (this.#isClosed) return;
      if (isActive(head.status) && !this.#isOpen) await this.#join();
      if (stored(head) !== this.#shown) await this.#settle();
      if (head.queued || before.queued) await this.#showQueue();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#schedule();
    }
  }

  // What was live is stored: it is shown from there, with what is known of it now.
  async #settle() {
    const head = this.#head;
    this.#shown = stored(head);
    const known = this.#messages.length > 1 ? this.#messages[this.#messages.length - 2][0] : null;
    const kept = this.#messages.length > 1 ? this.#messages.slice(0, -1) : [];
    const from = kept.length ? this.#starts[kept.length] : 0;
    const messages = [];
    let after = known;
    do {
      const page = await json(session(this.#id, "/outline"), { after });
      messages.push(...page.messages);
      after = page.next;
    } while (after !== null);
    if (isActive(head.status)) this.#live.keepLast();
    else {
      this.#live.clear();
      this.#questions.endTurn();
    }
    this.#setOutline([...kept, ...messages], head);
    for (const key of this.#pages.keys()) if (key >= from) this.#pages.delete(key);
    // Read before it is drawn, so that nothing flickers.
    if (this.#stored > from) await this.#load(from);
    this.#timeline.changed(from);
  }

  async #join() {
    this.#isOpen ??= this.#acp.request("session/resume", {
      sessionId: this.#id, cwd: this.#head.workspace_root, mcpServers: [], _meta: { "attache/keepPlace": true },
    }).then((opened) => this.#setOptions(opened.configOptions ?? []), (error) => {
      this.#isOpen = null;
      throw error;
    });
    return this.#isOpen;
  }

  async #again() {
    const wasOpen = this.#isOpen;
    this.#isOpen = null;
    this.#live.clear();
    this.#questions.clear();
    this.#timeline.changed(this.#stored);
    if (wasOpen) await this.#join().catch((error) => this.#fail(error));
  }

  #update(update) {
    if (update.sessionUpdate === "config_option_update") return this.#setOptions(update.configOptions ?? []);
    if (update.sessionUpdate === "session_info_update" && update.title) replace(this.#parts.title, update.title);
    const before = this.#live.rows.length;
    const at = this.#live.take(update);
    if (at === undefined) return;
    if (this.#live.rows.length > before) this.#timeline.changed(this.#stored + before);
    else this.#redraw(at);
  }

  // Words come faster than a screen can show them.
  #dirty = new Set();

  #redraw(at) {
    if (this.#dirty.size === 0) {
      requestAnimationFrame(() => {
        const dirty = [...this.#dirty];
        this.#dirty.clear();
        for (const row of dirty) if (row < this.#live.rows.length) this.#timeline.again(this.#stored + row);
      });
    }
    this.#dirty.add(at);
  }

  #ask(id, method, params) {
    const card = this.#questions.ask(id, method, params);
    void this.#look().catch((error) => this.#fail(error));
    if (document.activeElement === document.body || document.activeElement === this.#parts.scroller) card.focus();
  }

  choose(digit) {
    return this.#questions.choose(digit);
  }

  cancel() {
    if (isActive(this.#head.status)) void this.#acp.notify("session/cancel", { sessionId: this.#id });
  }

  async #say() {
    const text = this.#parts.text.value.trim();
    if (!text && this.#attachments.isEmpty) return;
    this.#parts.error.hidden = true;
    this.#parts.text.value = "";
    this.#fit();
    const files = this.#attachments.take();
    const prompt = await blocksOf(files).catch((error) => {
      this.#attachments.putBack(files);
      this.#fail(error);
    });
    if (prompt === undefined) return;
    if (text) prompt.push({ type: "text", text });
    try {
      await this.#join();
      const waits = isActive(this.#head.status);
      if (!waits) for (const content of prompt) this.#update({ sessionUpdate: "user_message_chunk", content });
      this.#timeline.follow();
      this.#parts.stop.hidden = false;
      setTimeout(() => void this.#look(), 150);
      const turn = this.#acp.request("session/prompt", { sessionId: this.#id, prompt });
      if (waits) setTimeout(() => void this.#showQueue(), 150);
      await turn;
    } catch (error) {
      this.#fail(error);
    }
    clearTimeout(this.#timer);
    await this.#watch();
  }

  async #showQueue() {
    const { queue } = this.#parts;
    const { queued } = await this.#acp.request("_attache/queue/list", { sessionId: this.#id });
    queue.hidden = queued.length === 0;
    replace(queue, queued.map(({ messageId, prompt }) => {
      const text = prompt.map((block) => block.text ?? attached(block)).join(" ");
      return el("li", null, el("span", { class: "faint" }, "Next"), el("span", { class: "ellipsis" }, text),
        button("Take it back", "close", async () => {
          await this.#acp.request("_attache/queue/cancel", { sessionId: this.#id, messageId }).catch((error) => this.#fail(error));
          await this.#showQueue();
        }));
    }));
  }

  #setOptions(options) {
    this.#options = options;
    replace(this.#parts.options, options.filter(({ type, category }) => type === "select" && ["mode", "model", "_approval"].includes(category)).map((option) => {
      const choices = option.options.flatMap((choice) => choice.options ?? [choice]);
      const select = el("select", { "aria-label": option.name, title: option.name }, choices.map(({ value, name }) => el("option", { value, selected: value === option.currentValue }, name)));
      select.addEventListener("change", async () => {
        try {
          const { configOptions } = await this.#acp.request("session/set_config_option", { sessionId: this.#id, configId: option.id, value: select.value });
          this.#setOptions(configOptions);
        } catch (error) {
          this.#fail(error);
          this.#setOptions(this.#options);
        }
      });
      return el("span", { class: "select" }, select);
    }));
  }

  #fail(error) {
    if (this.#isClosed) return;
    this.#parts.error.hidden = false;
    replace(this.#parts.error, error.message);
  }

  toggleFacts(isShown = !this.element.classList.contains("with-facts")) {
    this.element.classList.toggle("with-facts", isShown);
    this.#parts.details.setAttribute("aria-expanded", String(isShown));
  }

  focusPrompt() {
    this.#parts.text.focus();
  }

  step(by) {
    let at = this.#timeline.current + by;
    const count = this.#stored + this.#live.rows.length;
    while (at > 0 && at < count && this.#timeline.row(at)?.childElementCount === 0) at += by;
    this.#timeline.focus(at);
  }

  // Opens and closes what the row in focus folds away.
  fold() {
    const details = this.#timeline.row(this.#timeline.current)?.querySelector("details");
    if (details) details.open = !details.open;
  }

  toEnd() {
    this.#timeline.follow();
  }

  toBeginning() {
    this.#timeline.show(0);
  }

  // Rows: the head of a message, then its parts.
  #where(index) {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return { message: this.#messages[low], part: index - this.#starts[low] - 1, number: low };
  }

  #guess(index) {
    if (index >= this.#stored) return 40;
    const { message, part } = this.#where(index);
    return part < 0 ? (message[1] === "user" ? 34 : 38) : GUESSED[message[1]];
  }

  #row(index) {
    if (index >= this.#stored) return this.#live.element(index - this.#stored);
    const known = this.#pages.get(index);
    const { message, part, number } = this.#where(index);
    if (!known) return el("div", { class: "skeleton", "aria-hidden": "true" });
    if (known.isNothing) return undefined;
    if (part < 0) return messageHead(known.message, this.#turns[number]);
    const shown = storedPart(known.part, message[1]);
    if (!shown) return undefined;
    return message[1] === "user" ? el("div", { class: "message-user" }, shown) : shown;
  }

  #seen(first, last) {
    for (let index = first; index <= Math.min(last, this.#stored - 1); index++) {
      if (!this.#pages.has(index)) return void this.#load(index).catch((error) => this.#fail(error));
    }
  }

  // A page of rows from this one on, as many as fit into it.
  async #load(index) {
    const place = Math.floor(index / 50) * 50;
    const from = this.#pages.has(place) ? index : Math.max(place, this.#starts[0] ?? 0);
    if (this.#loading.has(from)) return;
    this.#loading.add(from);
    try {
      const { message, part } = this.#where(from);
      const after = `${part < 0 ? message[0] - 1 : message[0]}.${part < 0 ? Number.MAX_SAFE_INTEGER : part - 1}`;
      const page = await json(session(this.#id, "/turns"), { after });
      if (this.#isClosed) return;
      this.#keep(from, page);
    } finally {
      this.#loading.delete(from);
    }
  }

  #keep(from, page) {
    const fresh = [];
    const keep = (index, row) => {
      if (index >= this.#stored) return;
      if (!this.#pages.has(index)) fresh.push(index);
      this.#pages.set(index, row);
    };
    let end = from;
    for (const message of page.messages) {
      const number = this.#messages.findIndex(([seq]) => seq === message.seq);
      if (number < 0) continue;
      const start = this.#starts[number];
      keep(start, { message });
      for (const part of message.parts) {
        keep(start + 1 + part.index, { part });
        end = start + 2 + part.index;
      }
      if (message.role === "assistant") this.#facts.show(this.#head, message.metadata);
    }
    // What is not stored any more is not asked for again.
    const stop = page.next === null ? this.#stored : end;
    for (let index = from; index < Math.min(stop, from + PAGE_ROWS * 10); index++) if (!this.#pages.has(index)) keep(index, { isNothing: true });
    if (this.#pages.size > KEPT_ROWS) for (const key of [...this.#pages.keys()].slice(0, KEPT_ROWS / 3)) this.#pages.delete(key);
    for (const index of fresh) this.#timeline.again(index);
  }
}

function stored(head) {
  return isActive(head.status) ? `live ${head.live?.first_seq}` : `rest ${head.updated_at}`;
}

function messageHead({ role, metadata, created_at: at }, turn) {
  if (role === "user") {
    const end = metadata.turn_end && !["stop", "end_turn", "tool-calls"].includes(metadata.turn_end) ? el("span", { class: "tag tag-bad" }, metadata.turn_end) : null;
    return el("div", { class: "message-head message-user" }, el("span", { class: "who" }, metadata.trigger ? "Task" : "You"), el("span", { class: "faint", title: minutes(at) }, clock(at)), el("span", { class: "faint turn" }, `turn ${turn}`), end);
  }
  const { usage, cost_usd: cost, model } = metadata;
  const input = usage ? usage.input + usage.cache_read + usage.cache_write : 0;
  const title = usage ? `${usage.input} input, ${usage.cache_read} cache read, ${usage.cache_write} cache write, ${usage.output} output, ${usage.reasoning} reasoning` : undefined;
  return el("div", { class: "message-head" }, el("span", { class: "who" }, role === "system" ? "System" : "Agent"),
    model ? el("span", { class: "faint" }, model) : null,
    usage ? el("span", { class: "faint numbers", title }, `${compact(input)} in · ${compact(usage.output + usage.reasoning)} out`) : null,
    cost ? el("span", { class: "faint numbers" }, dollars(cost)) : null,
    metadata.refused ? el("span", { class: "tag tag-bad" }, "refused") : null);
}
