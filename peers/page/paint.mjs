// How long a session takes until something of it is on the screen, and how smooth it is to move through.
// `TEST_ADDRESS TEST_LINK TEST_SESSION node paint.mjs`: one JSON object.

import { Tab } from "./browser.mjs";

const { TEST_ADDRESS: address, TEST_LINK: link, TEST_SESSION: session } = process.env;
const tab = await Tab.open({ width: 1360, height: 860 });
await tab.goto(`http://${address}${link ?? "/"}`);
await tab.until(() => document.querySelector(".side"), "the page");
const paints = [];
for (let round = 0; round < 7; round++) {
  await tab.goto("about:blank");
  await tab.goto(`http://${address}/#/session/${session}`);
  const at = await tab.until(() => {
    const row = [...document.querySelectorAll(".rows .row > *")].find((one) => !one.classList.contains("skeleton"));
    window.painted ??= row ? performance.now() : undefined;
    return window.painted;
  }, "the first row");
  paints.push(at);
}
const moved = await tab.run(async () => {
  const scroller = document.querySelector(".conversation");
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const frames = [];
  let last = performance.now();
  for (let step = 0; step < 200; step++) {
    scroller.scrollTop -= 400;
    await frame();
    frames.push(performance.now() - last);
    last = performance.now();
  }
  const jumps = [];
  let unseen = 0;
  for (let step = 0; step < 20; step++) {
    const begun = performance.now();
    scroller.scrollTop = Math.random() * scroller.scrollHeight;
    await frame();
    while ([...document.querySelectorAll(".skeleton")].some((one) => { const { top, bottom } = one.getBoundingClientRect(); return bottom > 60 && top < 700; }) && performance.now() - begun < 20_000) await frame();
    const took = performance.now() - begun;
    jumps.push(took);
    if (took >= 20_000) unseen++;
  }
  return { frames, jumps, unseen, rows: document.querySelectorAll(".row").length, height: scroller.scrollHeight };
});
const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const at = (numbers, share) => Math.round(sorted(numbers)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))]);
console.log(JSON.stringify({
  first_paint_ms: { median: at(paints, 0.5), worst: at(paints, 1) },
  frame_ms: { median: at(moved.frames, 0.5), p99: at(moved.frames, 0.99) },
  jump_ms: { median: at(moved.jumps, 0.5), worst: at(moved.jumps, 1) },
  unseen: moved.unseen, rows: moved.rows, height: moved.height, troubles: tab.troubles,
}));
await tab.close();
