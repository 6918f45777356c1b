// The page: which view is shown, keys, colours, the login that ran out.

import { Acp } from "./acp.js";
import { json, takeKey } from "./api.js";
import { button, el, icon, replace } from "./dom.js";
import { showDiff } from "./diff.js";
import { SessionList } from "./list.js";
import { SessionView } from "./session.js";
import { showUsage } from "./usage.js";

const KEYS = [
  ["/", "Search all sessions"], ["[ ]", "Session before, session behind"], ["j k", "Next row, row before"], ["o", "Open or close the row"],
  ["g G", "Beginning, end"], ["c", "Write a prompt"], ["1 … 9", "Answer a question"], ["Esc", "Stop the turn, leave a field"],
  ["d", "Details"], ["n", "New session"], ["u", "Usage"], ["t", "Dark or light"], ["?", "These keys"],
];

takeKey();
const acp = new Acp();
const main = el("main", { id: "main", tabindex: -1 });
const list = new SessionList({ begin: () => void begin(), theme: changeTheme, help: () => dialog("Keys", keysTable()) });
let view = null;
let shown = 0;

function theme() {
  const kept = localStorage.getItem("attache-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
}

function changeTheme() {
  const { theme: kept } = document.documentElement.dataset;
  const isDark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("attache-theme", document.documentElement.dataset.theme);
}

async function route() {
  const number = ++shown;
  const isCurrent = () => number === shown;
  view?.close();
  view = null;
  const [path, query] = location.hash.slice(1).split("?");
  const [, name, first, second] = path.split("/").map((piece) => {
    try {
      return decodeURIComponent(piece);
    } catch {
      return piece;
    }
  });
  document.body.dataset.view = name || "list";
  list.choose(name === "session" ? first : null);
  try {
    if (name === "session" && first) await openSession(first, new URLSearchParams(query).get("message"));
    else if (name === "diff" && first && second) await showDiff(main, first, second, isCurrent);
    else if (name === "usage") await showUsage(main, isCurrent);
    else welcome();
  } catch (error) {
    if (isCurrent()) replace(main, el("div", { class: "page" }, el("p", { class: "lonely", role: "alert" }, error.message), el("p", { class: "lonely" }, el("a", { route: "/" }, "All sessions"))));
  }
  document.title = `${main.querySelector("#title")?.textContent ?? "attache"} · attache`;
}

async function openSession(id, message) {
  const opened = new SessionView(id, acp, { compare: (one) => void compare(one) });
  view = opened;
  replace(main, opened.element);
  if (matchMedia("(min-width: 1200px)").matches) opened.toggleFacts(true);
  await opened.open(message);
}

function welcome() {
  replace(main, el("div", { class: "lonely" }, el("span", { class: "big" }, icon("execute")), el("h1", { tabindex: -1, id: "title" }, "Sessions"),
    el("p", null, "Choose one on the left, search in all of them with ", el("kbd", null, "/"), ", or begin a new one."),
    el("p", null, el("button", { type: "button", class: "primary", on: { click: () => void begin() } }, "New session"))));
}

async function begin() {
  if (!list.workspace) await list.refresh();
  const known = [...new Set([list.workspace, ...list.all.map((one) => one.workspace_root)])].filter(Boolean);
  const input = el("input", { type: "text", id: "directory", value: known[0] ?? "", spellcheck: "false", autocomplete: "off", "aria-describedby": "directory-says" });
  const says = el("p", { class: "error-line", id: "directory-says", role: "alert" });
  const form = el("form", null, el("label", { for: "directory" }, "Directory that it works in"), input,
    known.length > 1 ? el("ul", { class: "known" }, known.slice(0, 6).map((place) => el("li", null, el("button", { type: "button", class: "quiet path", on: { click: () => { input.value = place; input.focus(); } } }, place)))) : null,
    says, el("div", { class: "choices" }, el("button", { type: "submit", class: "primary" }, "Begin")));
  const box = dialog("New session", form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { sessionId } = await acp.request("session/new", { cwd: input.value.trim(), mcpServers: [] });
      box.close();
      location.hash = `/session/${sessionId}`;
      setTimeout(() => view?.focusPrompt(), 300);
    } catch (error) {
      replace(says, error.message);
    }
  });
  input.select();
}

async function compare(one) {
  const { sessions } = await json("/api/sessions");
  const others = sessions.filter(({ id }) => id !== one);
  const box = dialog("Compare with", others.length ? el("ul", { class: "known" }, others.map((other) => el("li", null, el("button", { type: "button", class: "quiet", on: { click: () => {
    box.close();
    location.hash = `/diff/${one}/${other.id}`;
  } } }, other.title ?? "Untitled session")))) : el("p", { class: "faint" }, "There is no other session."));
}

function keysTable() {
  return el("dl", { class: "keys" }, KEYS.map(([keys, what]) => el("div", null, el("dt", null, keys.split(" ").map((key) => (key === "…" ? " … " : el("kbd", null, key)))), el("dd", null, what))));
}

function dialog(title, ...content) {
  const box = el("dialog", { "aria-label": title }, el("header", null, el("h2", null, title), button("Close", "close", () => box.close())), ...content);
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

const ACTIONS = {
  "/": () => list.focusSearch(),
  "[": () => go(list.beside(-1)),
  "]": () => go(list.beside(1)),
  j: () => view?.step(1),
  k: () => view?.step(-1),
  o: () => view?.fold(),
  g: () => view?.toBeginning(),
  G: () => view?.toEnd(),
  c: () => view?.focusPrompt(),
  d: () => view?.toggleFacts(),
  n: () => void begin(),
  u: () => (location.hash = "/usage"),
  t: changeTheme,
  "?": () => dialog("Keys", keysTable()),
  Escape: () => view?.cancel(),
};

function go(id) {
  if (id) location.hash = `/session/${id}`;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (/^[1-9]$/.test(event.key) && view?.choose(Number(event.key))) return event.preventDefault();
  const action = ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

addEventListener("attache-logged-out", () => {
  replace(main, el("div", { class: "lonely" }, el("h1", { id: "title" }, "You are logged out"), el("p", null, "A login lasts 12 hours, and ends with the server. A new link:"),
    el("pre", { class: "code" }, `curl -X POST -H "Authorization: Bearer $(attache serve --show-token)" ${location.origin}/login`)));
});
addEventListener("hashchange", () => void route());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

theme();
document.getElementById("app").replaceChildren(list.element, main);
void list.refresh();
void route();
