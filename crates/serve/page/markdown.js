// Shows what models write as Markdown: the little of it that helps to read, made of elements, never of markup.

import { el, webLink } from "./dom.js";

const FENCE = /^(\s*)(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

export function markdown(text) {
  const blocks = [];
  const lines = text.split("\n");
  let paragraph = [];
  const close = () => {
    if (paragraph.length) blocks.push(el("p", null, ...spans(paragraph.join("\n"))));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      close();
      const code = [];
      const ends = new RegExp(`^\\s*${fence[2][0]}{${fence[2].length},}\\s*$`);
      while (++at < lines.length && !ends.test(lines[at])) code.push(lines[at]);
      blocks.push(el("pre", { class: "code", tabindex: 0, "aria-label": fence[3] ? `Code: ${fence[3]}` : "Code", role: "region" }, code.join("\n")));
    } else if (heading) {
      close();
      blocks.push(el("p", { class: `heading heading-${Math.min(3, heading[1].length)}` }, ...spans(heading[2])));
    } else if (ITEM.test(line) && paragraph.length === 0) {
      const items = [];
      const isOrdered = /^\s*\d/.test(line);
      for (; at < lines.length; at++) {
        const item = ITEM.exec(lines[at]);
        if (item) items.push({ depth: Math.min(4, Math.floor(item[1].length / 2)), text: item[3] });
        else if (items.length && /^\s+\S/.test(lines[at])) items[items.length - 1].text += `\n${lines[at].trim()}`;
        else break;
      }
      at--;
      blocks.push(el(isOrdered ? "ol" : "ul", null, items.map(({ depth, text }) => el("li", { class: `depth-${depth}` }, ...spans(text)))));
    } else if (/^\s*\|.*\|\s*$/.test(line)) {
      close();
      const rows = [];
      for (; at < lines.length && /^\s*\|.*\|\s*$/.test(lines[at]); at++) rows.push(lines[at].trim());
      at--;
      blocks.push(table(rows));
    } else if (line.trim() === "") close();
    else paragraph.push(line);
  }
  close();
  return blocks;
}

function table(rows) {
  const cells = (row) => row.slice(1, -1).split("|").map((cell) => cell.trim());
  const isRule = (row) => /^\|[\s:|-]+\|$/.test(row);
  if (rows.length < 2 || !isRule(rows[1])) return el("pre", { class: "code" }, rows.join("\n"));
  const line = (row, tag) => el("tr", null, cells(row).map((cell) => el(tag, null, ...spans(cell))));
  return el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Table" }, el("table", null, el("thead", null, line(rows[0], "th")), el("tbody", null, rows.slice(2).map((row) => line(row, "td")))));
}

const SPAN = /(`+)([^`]|[^`][\s\S]{0,600}?[^`])\1(?!`)|\*\*([^*\n]{1,500})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,300})\*(?![\w*])|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)|(https?:\/\/[^\s<>"')\]]{1,2000})/g;

function spans(text) {
  const pieces = [];
  let last = 0;
  for (const found of text.matchAll(SPAN)) {
    if (found.index > last) pieces.push(text.slice(last, found.index));
    if (found[2] !== undefined) pieces.push(el("code", null, found[2]));
    else if (found[3] !== undefined) pieces.push(el("strong", null, found[3]));
    else if (found[4] !== undefined) pieces.push(el("em", null, found[4]));
    else if (found[6] !== undefined) pieces.push(webLink(found[6], found[5]));
    else pieces.push(webLink(found[7]));
    last = found.index + found[0].length;
  }
  pieces.push(text.slice(last));
  return pieces;
}
