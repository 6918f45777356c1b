// What is known of a session beside its conversation: numbers, rules, its tools, its system prompt, its children.

import { json, session, text } from "./api.js";
import { el, replace } from "./dom.js";
import { STATES, compact, dollars, minutes, place, whole } from "./format.js";
import { plainText } from "./parts.js";

const TOKENS = [
  ["prompt_tokens", "Input", "input"],
  ["cache_read", "Cache read", "read"],
  ["cache_write", "Cache write", "write"],
  ["completion_tokens", "Output", "output"],
  ["reasoning_tokens", "Reasoning", "reasoning"],
];

export class Facts {
  element = el("aside", { class: "facts", "aria-label": "Details of the session", id: "facts" });
  #head = null;
  #answer = null;
  #tree = null;

  // `answer`: metadata of the last answer that was seen.
  show(head, answer) {
    this.#answer = answer ?? this.#answer;
    this.#head = head;
    const fresh = this.#tree?.id !== head.id;
    if (fresh) this.#tree = { id: head.id, element: el("div", null) };
    replace(this.element, this.#facts(), this.#tokens(), this.#tree.element, this.#tools(), this.#prompt(), this.#rules());
    if (fresh) void this.#children();
  }

  #facts() {
    const head = this.#head;
    const rows = [
      ["Workspace", el("span", { class: "path", title: head.workspace_root }, head.workspace_root)],
      ["Model", head.model ? `${head.model.provider_id}/${head.model.model_id}` : "none"],
      ["Mode", head.mode],
      ["Approval", head.approval],
      ["Made", minutes(head.created_at)],
      ["Changed", minutes(head.updated_at)],
      ["Session", el("code", null, head.id)],
    ];
    if (head.parent_id) rows.push(["Works for", el("a", { route: `/session/${head.parent_id}` }, "its parent")]);
    if (head.status.runsIn) rows.push(["Runs in", head.status.runsIn]);
    return section("Session", el("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value)))));
  }

  #tokens() {
    const head = this.#head;
    const total = TOKENS.reduce((sum, [key]) => sum + head[key], 0);
    const bar = el("div", { class: "bar", role: "img", "aria-label": `${whole(total)} tokens` }, TOKENS.map(([key, , mark]) => {
      const piece = el("span", { class: `bar-${mark}` });
      piece.style.flexGrow = String(total ? head[key] / total : 0);
      return piece;
    }));
    const rows = TOKENS.filter(([key]) => head[key] > 0).map(([key, name, mark]) => el("div", null, el("dt", null, el("span", { class: `dot bar-${mark}` }), name), el("dd", { title: whole(head[key]) }, compact(head[key]))));
    if (head.cost_usd) rows.push(el("div", { class: "sum" }, el("dt", null, "Cost"), el("dd", null, dollars(head.cost_usd))));
    return section("Tokens", total ? bar : null, el("dl", { class: "pairs" }, rows.length ? rows : el("p", { class: "faint" }, "None counted yet.")));
  }

  #tools() {
    const tools = this.#answer?.tools ?? [];
    if (!tools.length) return null;
    return section("Tools the model was offered", el("ul", { class: "chips" }, tools.map((tool) => el("li", null, el("code", null, tool)))));
  }

  #prompt() {
    const digest = this.#answer?.system_prompt_digest;
    if (!digest) return null;
    const { id } = this.#head;
    const details = el("details", { class: "more" }, el("summary", null, "Show the system prompt"));
    details.addEventListener("toggle", async () => {
      const prompt = await text(session(id, `/prompts/${encodeURIComponent(digest)}`)).catch((error) => error.message);
      details.append(plainText(prompt, "output"));
    }, { once: true });
    return section("System prompt", el("p", { class: "faint digest" }, digest), details);
  }

  #rules() {
    const { rules, granted_directories: granted } = this.#head;
    const rows = rules.map(({ action, rule }) => el("li", null, el("span", { class: `tag tag-${action}` }, action), el("code", null, rule)));
    rows.push(...granted.map((directory) => el("li", null, el("span", { class: "tag tag-allow" }, "granted"), el("code", null, directory))));
    return section("Rules of this session", rows.length ? el("ul", { class: "rules" }, rows) : el("p", { class: "faint" }, "None beside those of the configuration and the agent. What decided about a call is told with the call."));
  }

  async #children() {
    const { id, element } = this.#tree;
    const { sessions } = await json(session(id, "/children")).catch(() => ({ sessions: [] }));
    if (this.#tree?.id !== id || !sessions.length) return;
    const tree = el("ul", { class: "tree", role: "tree", "aria-label": "Subagents" }, sessions.map((child) => branch(child, 1)));
    tree.addEventListener("keydown", walk);
    tree.querySelector("[role=treeitem]").tabIndex = 0;
    replace(element, section("Subagents", tree));
  }
}

function section(title, ...content) {
  return el("section", null, el("h3", null, title), ...content);
}

// A child, and below it its own, which are read when it is opened.
function branch(child, level) {
  const group = el("ul", { role: "group" });
  const item = el("li", { role: "treeitem", "aria-level": level, "aria-expanded": "false", tabindex: -1 });
  const name = child.title ?? child.agent;
  const state = STATES[child.status.state];
  const open = async () => {
    const isOpen = item.getAttribute("aria-expanded") === "true";
    item.setAttribute("aria-expanded", String(!isOpen));
    group.hidden = isOpen;
    if (isOpen || group.childElementCount) return;
    const { sessions } = await json(session(child.id, "/children"));
    if (sessions.length) group.append(...sessions.map((grandchild) => branch(grandchild, level + 1)));
    else item.removeAttribute("aria-expanded");
  };
  item.addEventListener("attache-open", open);
  item.append(el("div", { class: "leaf" },
    el("button", { type: "button", class: "twist", tabindex: -1, "aria-hidden": "true", on: { click: open } }, "›"),
    el("a", { route: `/session/${child.id}`, tabindex: -1 }, name),
    el("span", { class: "faint" }, child.agent),
    state ? el("span", { class: "tag tag-open" }, state) : null), group);
  return item;
}

// The keys of a tree: up and down, right opens, left closes, Enter goes there.
function walk(event) {
  const items = [...event.currentTarget.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.closest("[hidden]"));
  const item = event.target.closest("[role=treeitem]");
  const at = items.indexOf(item);
  const isOpen = item?.getAttribute("aria-expanded") === "true";
  const to = { ArrowDown: items[at + 1], ArrowUp: items[at - 1], Home: items[0], End: items[items.length - 1] }[event.key];
  if (to) {
    item.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  } else if ((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen)) item.dispatchEvent(new Event("attache-open"));
  else if (event.key === "Enter") item.querySelector("a").click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

export const titleOf = (head) => head.title ?? "Untitled session";
export const placeOf = (head) => place(head.workspace_root);
