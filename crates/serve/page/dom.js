// Makes elements. What others wrote becomes text and nothing else: there is no way here to make markup of it.

const SVG = "http://www.w3.org/2000/svg";

// Attributes that this page sets; none of them runs anything.
const ATTRIBUTES = new Set([
  "id", "class", "type", "name", "value", "placeholder", "title", "role", "tabindex", "for", "rows", "open", "lang",
  "disabled", "selected", "checked", "autocomplete", "spellcheck", "enterkeyhint", "maxlength", "download", "hidden",
  "required", "minlength", "min", "max", "step", "multiple",
]);
const DRAWN = new Set([
  "viewBox", "d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "width", "height", "class", "role", "id",
  "text-anchor", "tabindex", "preserveAspectRatio",
]);

export function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "route") element.setAttribute("href", `#${value}`);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("aria-") || ATTRIBUTES.has(name)) element.setAttribute(name, value === true ? "" : String(value));
    else throw new Error(`no attribute of this page: ${name}`);
  }
  append(element, children);
  return element;
}

export function draw(tag, properties, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("aria-") || DRAWN.has(name)) element.setAttribute(name, String(value));
    else throw new Error(`no attribute of a drawing: ${name}`);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(legible(String(child))));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// What can't be seen, or would turn the text beside it around, is written out.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

export function legible(text) {
  return text.replace(UNSEEN, (character, at) => {
    // Joins the pieces of one picture.
    if (character === "\u200d" && at > 0 && /[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}]$/u.test(text.slice(Math.max(0, at - 2), at))) return character;
    if (character === "\r") return "";
    return `\u27e8U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

// An address of the web leads there, in a window that knows nothing of this one; any other is only told.
export function webLink(url, ...children) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    return el("code", null, url);
  }
  if ((parsed.protocol !== "https:" && parsed.protocol !== "http:") || parsed.username || parsed.password) return el("code", null, url);
  const link = el("a", { class: "web", title: parsed.href }, ...(children.length ? children : [url]));
  link.href = parsed.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

// A picture that is in the text itself, of a kind that can't run anything.
export function picture(mime, base64, name) {
  if (!["image/png", "image/jpeg", "image/gif", "image/webp"].includes(mime) || !/^[A-Za-z0-9+/=]+$/.test(base64)) {
    return el("p", { class: "note" }, `Picture: ${name} (${mime})`);
  }
  const image = el("img", { class: "picture" });
  image.alt = legible(name || "picture");
  image.src = `data:${mime};base64,${base64}`;
  return image;
}

const ICONS = {
  search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.7 10.7 14 14",
  back: "M10 3 5 8l5 5",
  plus: "M8 3v10M3 8h10",
  info: "M8 7.2v4M8 4.8v.2M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z",
  chart: "M3 13V8M8 13V3M13 13V6",
  theme: "M8 2.5v11M8 2.5a5.5 5.5 0 0 1 0 11zM8 13.5a5.5 5.5 0 0 1 0-11",
  send: "M3 8h9M8.5 4.5 12 8l-3.5 3.5",
  stop: "M4.5 4.5h7v7h-7z",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M8 3v10M4 9l4 4 4-4",
  diff: "M5 2v9M2 8l3 3 3-3M11 14V5M8 8l3-3 3 3",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  export: "M8 2v8M5 7l3 3 3-3M3 13h10",
  keys: "M2 4.5h12v7H2zM4.5 7h.1M8 7h.1M11.5 7h.1M5 9.5h6",
  read: "M2 8s2.2-4 6-4 6 4 6 4-2.2 4-6 4-6-4-6-4zM8 9.6a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2z",
  edit: "M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2z",
  execute: "M3 4l4 4-4 4M8.5 12H13",
  fetch: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2 8h12M8 2c2 2 2 10 0 12M8 2c-2 2-2 10 0 12",
  think: "M5 9.5A3.6 3.6 0 1 1 11 9.5c-.7.6-1 1-1 2H6c0-1-.3-1.4-1-2zM6.5 14h3",
  other: "M8 2.5 13 5.3v5.4L8 13.5 3 10.7V5.3z",
  task: "M4 3v7a2 2 0 0 0 2 2h6M9.5 9.5 12 12l-2.5 2.5M4 5.5h6",
  check: "M3 8.5 6.5 12 13 4.5",
  attach: "M12.5 7.5 7.6 12.4a2.9 2.9 0 0 1-4.1-4.1l5.3-5.3a1.9 1.9 0 0 1 2.7 2.7L6.3 10.9a.9.9 0 0 1-1.3-1.3L9.6 5",
};

export function icon(name) {
  return draw("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, draw("path", { d: ICONS[name] ?? ICONS.other }));
}

export function button(label, name, listener, more) {
  return el("button", { type: "button", class: "icon-button", "aria-label": label, title: label, on: { click: listener }, ...more }, icon(name));
}
