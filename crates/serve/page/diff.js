// Two sessions side by side in time: turn by turn what differs.

import { json, session } from "./api.js";
import { el, replace } from "./dom.js";
import { minutes } from "./format.js";
import { diffLine } from "./parts.js";

export async function showDiff(main, one, other, isCurrent) {
  const rows = el("div", { class: "compared" });
  const status = el("p", { class: "faint", role: "status" }, "Comparing …");
  const more = el("button", { type: "button", class: "quiet", hidden: true }, "More turns");
  const heads = await Promise.all([one, other].map((id) => json(session(id))));
  if (!isCurrent()) return;
  const named = (head, mark) => el("a", { class: `compared-session compared-${mark}`, route: `/session/${head.id}` },
    el("span", { class: "mark", "aria-hidden": "true" }, mark === "old" ? "−" : "+"), el("span", { class: "name" }, head.title ?? "Untitled session"), el("span", { class: "faint" }, minutes(head.created_at)));
  replace(main, el("div", { class: "page" }, el("h1", { tabindex: -1, id: "title" }, "Comparison"), el("div", { class: "compared-heads" }, named(heads[0], "old"), named(heads[1], "new")), status, rows, more));
  let cursor = null;
  let same = 0;
  let all = 0;
  const next = async () => {
    const page = await json("/api/sessions/diff", { a: one, b: other, cursor });
    if (!isCurrent()) return;
    for (const turn of page.turns) {
      all++;
      same += turn.same ? 1 : 0;
      rows.append(turnElement(turn));
    }
    cursor = page.next;
    more.hidden = !cursor;
    status.textContent = `${same} of ${all} turns are the same${cursor ? " so far" : ""}.`;
  };
  more.addEventListener("click", () => void next());
  await next();
}

function turnElement(turn) {
  if (turn.same) return el("p", { class: "compared-same" }, el("span", null, `Turn ${turn.number}`), el("span", { class: "faint ellipsis" }, `the same: ${(turn.says ?? "").trim()}`));
  const only = turn.sides[0] && turn.sides[1] ? "" : turn.sides[0] ? " — only in the first" : " — only in the second";
  return el("figure", { class: "diff" }, el("figcaption", null, `Turn ${turn.number}${only}`),
    el("pre", { tabindex: 0, role: "region", "aria-label": `Turn ${turn.number}` }, turn.lines.map((line) => diffLine(line[0], line.slice(2))), turn.more ? el("span", { class: "line faint" }, `… ${turn.more} more lines`) : null));
}
