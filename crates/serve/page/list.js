// The list of sessions and the search in all of them.

import { json } from "./api.js";
import { button, el, icon, replace } from "./dom.js";
import { STATES, ago, compact, dollars, isActive, minutes, place } from "./format.js";

const WAIT = 160;
const REFRESH = 2500;

export class SessionList {
  #items = el("ul", { class: "sessions", "aria-label": "Sessions" });
  #status = el("p", { class: "faint list-status", role: "status", "aria-live": "polite" });
  #more = el("button", { type: "button", class: "quiet more-sessions", hidden: true, on: { click: () => void this.#next() } }, "Older sessions");
  #input = el("input", { type: "search", id: "search", placeholder: "Search all sessions", autocomplete: "off", spellcheck: "false", "aria-label": "Search all sessions", enterkeyhint: "search", maxlength: 300 });
  #sessions = [];
  #cursor = null;
  #asking = null;
  #timer = null;
  #chosen = null;
  workspace = null;

  constructor(actions) {
    this.element = el("nav", { class: "side", "aria-label": "Sessions" },
      el("header", { class: "side-head" },
        el("a", { class: "brand", route: "/" }, "attache"),
        el("div", { class: "actions" },
          button("New session (n)", "plus", actions.begin),
          el("a", { class: "icon-button", route: "/usage", "aria-label": "Usage (u)", title: "Usage (u)" }, icon("chart")),
          button("Dark or light (t)", "theme", actions.theme),
          button("Keys (?)", "keys", actions.help))),
      el("div", { class: "search" }, icon("search"), this.#input, el("kbd", { "aria-hidden": "true" }, "/")),
      this.#status, el("div", { class: "side-scroll" }, this.#items, this.#more));
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#search(), WAIT);
    });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.#input.value = "";
        this.#input.blur();
        void this.#search();
      } else if (event.key === "ArrowDown" || event.key === "Enter") {
        this.#items.querySelector("a")?.focus();
        event.preventDefault();
      }
    });
    this.#items.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const links = [...this.#items.querySelectorAll("a")];
      links[links.indexOf(event.target) + step]?.focus();
      event.preventDefault();
    });
    setInterval(() => {
      if (!document.hidden && !this.#input.value.trim()) void this.refresh();
    }, REFRESH);
  }

  focusSearch() {
    this.#input.focus();
    this.#input.select();
  }

  choose(id) {
    this.#chosen = id;
    for (const link of this.#items.querySelectorAll("a[data-session]")) this.#mark(link);
  }

  #mark(link) {
    if (link.dataset.session === this.#chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }

  // The session before or behind the one that is shown.
  beside(step) {
    const ids = this.#sessions.map(({ id }) => id);
    return ids[ids.indexOf(this.#chosen) + step];
  }

  get all() {
    return this.#sessions;
  }

  async refresh() {
    if (this.#input.value.trim()) return;
    try {
      const page = await json("/api/sessions");
      if (this.#input.value.trim()) return;
      this.workspace = page.workspace;
      const fresh = new Set(page.sessions.map(({ id }) => id));
      const older = this.#cursor && this.#sessions.length > page.sessions.length ? this.#sessions.filter(({ id, updated_at }) => !fresh.has(id) && updated_at <= (page.sessions.at(-1)?.updated_at ?? 0)) : [];
      this.#sessions = [...page.sessions, ...older];
      if (!older.length) this.#cursor = page.next;
      this.#draw();
    } catch (error) {
      this.#status.textContent = error.message;
    }
  }

  async #next() {
    const page = await json("/api/sessions", { cursor: this.#cursor });
    this.#cursor = page.next;
    this.#sessions.push(...page.sessions);
    this.#draw();
  }

  #draw() {
    const text = JSON.stringify([this.#sessions, this.#cursor, Math.floor(Date.now() / 60_000)]);
    if (text === this.drawn) return;
    this.drawn = text;
    const focused = document.activeElement?.dataset?.session;
    replace(this.#items, this.#sessions.map((session) => this.#card(session)));
    this.#more.hidden = !this.#cursor;
    this.#status.textContent = this.#sessions.length ? "" : "No session yet. Begin one with +.";
    if (focused) this.#items.querySelector(`a[data-session="${CSS.escape(focused)}"]`)?.focus();
  }

  #card(session) {
    const state = STATES[session.status.state];
    const tokens = session.prompt_tokens + session.completion_tokens + session.reasoning_tokens + session.cache_read + session.cache_write;
    const link = el("a", { route: `/session/${session.id}`, data: { session: session.id } },
      el("span", { class: "line-one" }, el("span", { class: "name" }, session.title ?? "Untitled session"), el("span", { class: "faint when", title: minutes(session.updated_at) }, ago(session.updated_at))),
      el("span", { class: "line-two" },
        state ? el("span", { class: `state state-${session.status.state}` }, state) : null,
        el("span", { class: "faint ellipsis" }, place(session.workspace_root)),
        el("span", { class: "faint numbers" }, session.cost_usd ? dollars(session.cost_usd) : tokens ? compact(tokens) : "")));
    this.#mark(link);
    return el("li", { class: isActive(session.status) ? "active" : "" }, link);
  }

  async #search() {
    this.#asking?.abort();
    this.drawn = null;
    const words = this.#input.value.trim();
    if (!words) {
      this.#status.textContent = "";
      return this.refresh();
    }
    if (!/[\p{L}\p{N}]/u.test(words)) return;
    this.#asking = new AbortController();
    try {
      const { hits } = await json("/api/sessions/search", { q: words }, this.#asking.signal);
      this.#more.hidden = true;
      this.#status.textContent = hits.length === 0 ? "Nothing has these words." : hits.length === 1 ? "1 place" : `${hits.length} places`;
      replace(this.#items, hits.map((hit) => this.#hit(hit)));
    } catch (error) {
      if (error.name !== "AbortError") this.#status.textContent = error.message;
    }
  }

  #hit(hit) {
    const at = hit.message_id ? `?message=${encodeURIComponent(hit.message_id)}` : "";
    const link = el("a", { route: `/session/${hit.session_id}${at}`, data: { session: hit.session_id } },
      el("span", { class: "line-one" }, el("span", { class: "name" }, hit.title ?? "Untitled session"), el("span", { class: "faint when" }, ago(hit.at))),
      el("span", { class: "snippet" }, el("span", { class: "faint" }, `${hit.role ?? "title"}: `), hit.snippet.map((piece) => (piece.hit ? el("mark", null, piece.text) : piece.text))));
    return el("li", null, link);
  }
}
