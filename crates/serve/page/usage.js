// What answers used and cost: bars by day, and sums by model and by workspace.

import { json } from "./api.js";
import { draw, el, replace } from "./dom.js";
import { compact, dollars, place, whole } from "./format.js";

const RANGES = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [365, "A year"]];
const COLOURS = 6;
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 220, 52, 24, 8];

const tokens = (row) => row.prompt_tokens + row.completion_tokens + row.reasoning_tokens + row.cache_read + row.cache_write;

export async function showUsage(main, isCurrent, days = 30, measure = null) {
  const { rows, first_day: first, last_day: last } = await json("/api/sessions/usage", { days });
  if (!isCurrent()) return;
  const cost = rows.reduce((sum, row) => sum + (row.cost_usd ?? 0), 0);
  const by = measure ?? (cost > 0 ? "cost" : "tokens");
  const value = by === "cost" ? (row) => row.cost_usd ?? 0 : tokens;
  const shown = by === "cost" ? (number) => (number ? dollars(number) : "$0") : compact;
  const models = sums(rows, (row) => row.model ?? "(not known)", value);
  const again = (range, what) => void showUsage(main, isCurrent, range, what);
  const choice = (name, label, options, current, change) => el("div", { class: "choice", role: "group", "aria-label": label }, options.map(([id, text]) =>
    el("button", { type: "button", "aria-pressed": String(id === current), on: { click: () => change(id) } }, text)));
  const total = rows.reduce((sum, row) => sum + tokens(row), 0);
  const answers = rows.reduce((sum, row) => sum + row.answers, 0);
  replace(main, el("div", { class: "page" },
    el("div", { class: "page-head" }, el("h1", { tabindex: -1, id: "title" }, "Usage"),
      choice("range", "Time", RANGES, days, (range) => again(range, measure)),
      choice("measure", "Measure", [["cost", "Cost"], ["tokens", "Tokens"]], by, (what) => again(days, what))),
    el("div", { class: "figures" }, figure("Cost", dollars(cost) || "—"), figure("Tokens", compact(total)), figure("Answers", whole(answers)), figure("Models", whole(models.length))),
    rows.length ? el("figure", { class: "chart" }, chart(rows, days, first, last, models, value, shown, by), legend(models)) : el("p", { class: "lonely" }, "Nothing was used in this time, as far as the models have told."),
    rows.length ? el("div", { class: "tables" }, table("By model", models, rows, (row) => row.model ?? "(not known)", by), table("By workspace", sums(rows, (row) => row.workspace_root, value), rows, (row) => row.workspace_root, by)) : null));
}

function figure(name, value) {
  return el("div", { class: "figure" }, el("span", { class: "faint" }, name), el("strong", null, value));
}

// Names with their sums, the largest first.
function sums(rows, name, value) {
  const all = new Map();
  for (const row of rows) all.set(name(row), (all.get(name(row)) ?? 0) + value(row));
  return [...all].sort(([, one], [, other]) => other - one);
}

const colour = (models, name) => `series-${Math.min(COLOURS, models.findIndex(([model]) => model === name) + 1)}`;

function chart(rows, days, first, last, models, value, shown, by) {
  const names = daysBetween(first, last);
  const stacks = new Map(names.map((name) => [name, []]));
  for (const [model] of models) {
    for (const name of names) {
      const sum = rows.filter((row) => row.day === name && (row.model ?? "(not known)") === model).reduce((all, row) => all + value(row), 0);
      if (sum > 0) stacks.get(name).push([model, sum]);
    }
  }
  const heights = [...stacks.values()].map((stack) => stack.reduce((sum, [, part]) => sum + part, 0));
  const top = nice(Math.max(...heights, by === "cost" ? 0.0001 : 1));
  const room = HEIGHT - BOTTOM - TOP;
  const step = (WIDTH - LEFT) / names.length;
  const y = (amount) => TOP + room - (amount / top) * room;
  const parts = [0, 0.5, 1].flatMap((share) => [
    draw("line", { x1: LEFT, x2: WIDTH, y1: y(top * share), y2: y(top * share), class: "grid" }),
    draw("text", { x: LEFT - 8, y: y(top * share) + 4, "text-anchor": "end", class: "axis" }, shown(top * share)),
  ]);
  names.forEach((name, index) => {
    let at = 0;
    const sum = stacks.get(name).reduce((all, [, part]) => all + part, 0);
    const bar = draw("g", {}, draw("title", {}, `${name}: ${shown(sum)}`));
    for (const [model, part] of stacks.get(name)) {
      bar.append(draw("rect", { x: LEFT + step * index + step * 0.14, width: Math.max(1, step * 0.72), y: y(at + part), height: Math.max(0.75, y(at) - y(at + part)), class: colour(models, model) }));
      at += part;
    }
    parts.push(bar);
    if (index % Math.ceil(names.length / 7) === 0) parts.push(draw("text", { x: LEFT + step * (index + 0.5), y: HEIGHT - 6, "text-anchor": "middle", class: "axis" }, name.slice(5)));
  });
  const most = names[heights.indexOf(Math.max(...heights))];
  return draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${by === "cost" ? "Cost" : "Tokens"} by day, ${days} days; most on ${most}: ${shown(Math.max(...heights))}. The tables have the numbers.` }, ...parts);
}

function daysBetween(first, last) {
  const names = [];
  for (let at = Date.parse(`${first}T12:00:00Z`); at <= Date.parse(`${last}T12:00:00Z`); at += 86_400_000) names.push(new Date(at).toISOString().slice(0, 10));
  return names;
}

// The next number that people like to read on an axis.
function nice(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= number);
}

function legend(models) {
  return el("figcaption", { class: "legend" }, models.slice(0, COLOURS).map(([name], index) => el("span", null, el("span", { class: `dot series-${index + 1}` }), index === COLOURS - 1 && models.length > COLOURS ? "others" : name)));
}

function table(title, names, rows, name) {
  const lines = names.map(([key]) => {
    const own = rows.filter((row) => name(row) === key);
    const sum = (field) => own.reduce((all, row) => all + (row[field] ?? 0), 0);
    return el("tr", null, el("th", { title: key }, key.startsWith("/") ? place(key) : key), [own.reduce((all, row) => all + row.answers, 0), sum("prompt_tokens"), sum("completion_tokens") + sum("reasoning_tokens"), sum("cache_read")].map((number) => el("td", { title: whole(number) }, compact(number))), el("td", null, dollars(sum("cost_usd")) || "—"));
  });
  return el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": title }, el("table", null, el("caption", null, title),
    el("thead", null, el("tr", null, ["", "Answers", "Input", "Output", "Cached", "Cost"].map((text) => (text ? el("th", null, text) : el("td", null))))), el("tbody", null, lines)));
}
