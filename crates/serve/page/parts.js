// Shows parts of messages: texts, thoughts, calls with what they changed, plans, notes. Stored ones and live ones
// come here in one shape.

import { el, icon, legible, picture, webLink } from "./dom.js";
import { duration } from "./format.js";
import { markdown } from "./markdown.js";

// Characters that are laid out at once; the rest is there on request.
const SHOWN = 12_000;
const LINES = 400;

// Paths below it are told from there.
let root = "/";

export function showPathsFrom(directory) {
  root = directory;
}

const KINDS = { read: "read", edit: "edit", search: "search", execute: "execute", fetch: "fetch", think: "think", switch_mode: "think", other: "other" };
const TOOLS = { read: "read", glob: "search", grep: "search", write: "edit", edit: "edit", apply_patch: "edit", bash: "execute", web_fetch: "fetch", web_search: "search", task: "task", todo: "check" };

// A stored part; `undefined` where nothing of it is for people.
export function storedPart({ part, decision, state }, role) {
  const kind = part.type;
  if (kind === "text") return role === "user" ? said(part.text) : prose(part.text);
  if (kind === "reasoning") return part.text.trim() ? thought(part.text) : undefined;
  if (kind === "step-start") return undefined;
  if (kind === "file") return attachment(part);
  if (kind === "source-url") return el("p", { class: "note" }, "Source: ", webLink(part.url, part.title || part.url));
  if (kind === "source-document") return el("p", { class: "note" }, `Source: ${part.title}`);
  if (kind === "dynamic-tool" || kind.startsWith("tool-")) return storedCall(part, decision, state);
  if (kind.startsWith("data-")) return dataPart(kind.slice(5), part.data ?? {});
  return el("p", { class: "note" }, `[${kind}]`);
}

const FAILED = ["output-error", "output-denied"];

function storedCall(part, decision, state) {
  const shown = part.toolMetadata?.attache ?? {};
  const name = part.toolName ?? part.type.slice(5);
  const isOver = part.state === "output-available" && part.preliminary !== true;
  return call({
    name,
    title: shown.title || name,
    kind: TOOLS[name] ?? KINDS[shown.kind],
    outcome: FAILED.includes(part.state) ? "failed" : isOver ? "done" : "open",
    state,
    decision,
    took: shown.metadata?.duration_ms,
    exit: shown.metadata?.exit_code,
    input: part.input,
    content: shown.content ?? [],
    output: isOver ? part.output : undefined,
    error: part.errorText,
    denied: shown.denied_within,
  });
}

export function call(it) {
  const hasDiff = it.content.some((block) => block.type === "diff");
  const head = el("summary", null,
    el("span", { class: "call-icon" }, icon(it.kind ?? "other")),
    el("code", { class: "call-name" }, it.name),
    el("span", { class: "call-title" }, it.title === it.name ? summary(it.input) : it.title.replaceAll("`", "")),
    it.exit ? el("span", { class: "tag tag-bad" }, `exit ${it.exit}`) : null,
    it.took !== undefined ? el("span", { class: "faint" }, duration(it.took)) : null,
    el("span", { class: `tag tag-${it.outcome}` }, it.state ?? ""),
  );
  const details = el("details", { class: `call call-${it.outcome}`, open: (hasDiff && it.outcome === "done") || it.outcome === "failed" }, head);
  // What is closed costs nothing.
  const fill = () => {
    if (details.open && details.childElementCount === 1) details.append(callBody(it, hasDiff));
  };
  details.addEventListener("toggle", fill);
  fill();
  return details;
}

function callBody(it, hasDiff) {
  const body = el("div", { class: "call-body" });
  if (it.decision) body.append(el("p", { class: "decision" }, el("span", { class: "label" }, "Decided"), it.decision));
  if (it.input !== undefined && it.input !== null && !hasDiff) body.append(labelled("Input", plainText(asText(it.input), "input")));
  for (const block of it.content) body.append(contentBlock(block));
  const hasContent = it.content.length > 0;
  if (it.error) body.append(labelled("Error", plainText(it.error, "error")));
  else if (it.output !== undefined && it.output !== null && !(hasContent && hasDiff)) {
    body.append(hasContent ? closed("What the model got", asText(it.output)) : labelled("Output", plainText(asText(it.output), "output")));
  }
  if (it.input !== undefined && it.input !== null && hasDiff) body.append(closed("Input", asText(it.input)));
  for (const { tool, title, why } of it.denied ?? []) body.append(el("p", { class: "decision" }, el("span", { class: "label" }, "Denied within"), `${tool} ${title}: ${why}`));
  return body;
}

function contentBlock(block) {
  switch (block.type) {
    case "diff":
      return diff(block.path, block.old_text ?? block.oldText ?? "", block.new_text ?? block.newText ?? "");
    case "text":
      return el("div", { class: "prose" }, markdown(cut(block.text)));
    case "content":
      return block.content?.type === "text" ? el("div", { class: "prose" }, markdown(cut(block.content.text)))
        : block.content?.type === "image" ? picture(block.content.mimeType, block.content.data, "picture")
        : el("p", { class: "note" }, block.content?.uri ?? `[${block.content?.type}]`);
    case "terminal":
      return block.printed ? el("div", { class: "prose" }, markdown(cut(block.printed))) : el("p", { class: "note" }, "It runs in a terminal of another client.");
    case "image":
      return picture(block.mime, block.data, "picture");
    case "link":
      return el("p", { class: "note" }, `File: ${block.path} (${block.mime})`);
    default:
      return el("p", { class: "note" }, `[${block.type}]`);
  }
}

function labelled(label, content) {
  return el("div", { class: "labelled" }, el("span", { class: "label" }, label), content);
}

function closed(label, text) {
  const details = el("details", { class: "more" }, el("summary", null, label));
  details.addEventListener("toggle", () => details.childElementCount === 1 && details.append(plainText(text, "output")), { once: true });
  return details;
}

export function plainText(text, kind) {
  const pre = el("pre", { class: kind, tabindex: 0, role: "region", "aria-label": kind });
  const shown = cut(text);
  pre.append(legible(shown));
  if (shown.length === text.length) return pre;
  const rest = el("button", { type: "button", class: "link", on: { click: () => { pre.textContent = legible(text); rest.remove(); } } }, `Show all ${Math.ceil(text.length / 1024)} KB`);
  return el("div", null, pre, rest);
}

function cut(text) {
  return text.length > SHOWN ? text.slice(0, SHOWN) : text;
}

function asText(value) {
  if (typeof value === "string") return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && typeof value.output === "string") return value.output;
  return JSON.stringify(value, null, 2);
}

function summary(input) {
  if (input === undefined || input === null) return "";
  const first = Object.values(input).find((value) => typeof value === "string") ?? "";
  return first.split("\n")[0].slice(0, 160);
}

// What changed between two texts, line by line.
export function diff(path, before, after) {
  const shown = path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
  const lines = changes(before === "" ? [] : before.replace(/\n$/, "").split("\n"), after === "" ? [] : after.replace(/\n$/, "").split("\n"));
  const added = lines.filter(([mark]) => mark === "+").length;
  const removed = lines.filter(([mark]) => mark === "-").length;
  const rows = lines.slice(0, LINES).map(([mark, text]) => diffLine(mark, text));
  if (lines.length > LINES) rows.push(el("span", { class: "line faint" }, `… ${lines.length - LINES} more lines`));
  return el("figure", { class: "diff" },
    el("figcaption", null, icon("file"), el("span", { class: "path", title: path }, shown), el("span", { class: "plus" }, `+${added}`), el("span", { class: "minus" }, `−${removed}`)),
    el("pre", { tabindex: 0, role: "region", "aria-label": `Changes of ${shown}` }, rows));
}

export function diffLine(mark, text) {
  const tag = mark === "+" ? "ins" : mark === "-" ? "del" : "span";
  return el(tag, { class: "line" }, el("span", { class: "mark", "aria-hidden": "true" }, mark), text || " ");
}

// The longest common lines of what is not the same at both ends; two long texts are replaced as a whole.
function changes(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const old = before.slice(start, before.length - end);
  const fresh = after.slice(start, after.length - end);
  const lines = before.slice(Math.max(0, start - 3), start).map((line) => [" ", line]);
  if (old.length * fresh.length > 250_000) lines.push(...old.map((line) => ["-", line]), ...fresh.map((line) => ["+", line]));
  else lines.push(...common(old, fresh));
  return lines.concat(before.slice(before.length - end, before.length - end + 3).map((line) => [" ", line]));
}

function common(old, fresh) {
  const width = fresh.length + 1;
  const table = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      table[i * width + j] = old[i] === fresh[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push([" ", old[i]]);
      i++;
      j++;
    } else if (i < old.length && (j === fresh.length || table[(i + 1) * width + j] >= table[i * width + j + 1])) lines.push(["-", old[i++]]);
    else lines.push(["+", fresh[j++]]);
  }
  return lines;
}

export function said(text) {
  const shown = el("div", { class: "said" });
  shown.append(legible(cut(text)));
  if (text.length > SHOWN) shown.append(el("p", { class: "faint" }, `… ${text.length - SHOWN} more characters`));
  return shown;
}

export function prose(text) {
  if (text.trim() === "") return undefined;
  const shown = el("div", { class: "prose" }, markdown(cut(text)));
  if (text.length > SHOWN) {
    const rest = el("button", { type: "button", class: "link", on: { click: () => { shown.replaceChildren(...markdown(text)); } } }, "Show the rest");
    shown.append(rest);
  }
  return shown;
}

export function thought(text) {
  const details = el("details", { class: "thought" }, el("summary", null, icon("think"), el("span", null, "Thought"), el("span", { class: "faint first" }, text.trim().split("\n")[0].slice(0, 120))));
  details.addEventListener("toggle", () => details.childElementCount === 1 && details.append(el("div", { class: "prose" }, markdown(cut(text)))), { once: true });
  return details;
}

function attachment({ mediaType, url, filename }) {
  const [, mime, data] = /^data:([a-z/+.-]+);base64,(.+)$/.exec(url ?? "") ?? [];
  if (mime?.startsWith("image/") && data) return picture(mime, data, filename ?? "picture");
  return el("p", { class: "note" }, icon("file"), `${filename ?? "Attachment"} (${mediaType})`);
}

export function plan(entries) {
  return el("ul", { class: "plan", "aria-label": "Plan" }, entries.map(({ content, status }) =>
    el("li", { class: `plan-${status}` }, el("span", { class: "box", role: "img", "aria-label": status }, status === "completed" ? icon("check") : ""), el("span", null, content))));
}

function dataPart(name, data) {
  switch (name) {
    case "plan":
      return plan(data.entries ?? []);
    case "usage":
    case "snapshot":
    case "title":
    case "mode":
      return undefined;
    case "context":
    case "environment":
      return closed(name === "context" ? `Context: ${data.uri ?? ""}` : "Told the model of its environment", data.text ?? "");
    case "file-ref":
      return el("p", { class: "note" }, icon("file"), data.name ?? data.uri ?? "file");
    case "command":
      return el("div", { class: "prose" }, markdown(cut(data.text ?? "")));
    case "compaction":
      return data.summary ? closed(data.status === "completed" ? "The conversation before was summarised" : `Summary: ${data.status}`, data.summary) : el("p", { class: "note" }, data.error ? `Not summarised: ${data.error}` : "Old results were shortened");
    case "notice":
      return el("p", { class: "notice" }, [data.title, data.description].filter(Boolean).join(" — "));
    case "hook":
      return el("p", { class: "notice" }, data.hook ? `The ${data.event} hook ${data.hook}: ${data.text ?? ""}` : data.text ?? "");
    default:
      return undefined;
  }
}
