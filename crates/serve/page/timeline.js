// A list of many rows of which only those in sight exist. Heights are known once a row was seen and guessed before;
// what is looked at stays where it is while others grow.

import { el } from "./dom.js";

const BEYOND = 900;

export class Timeline {
  #scroller;
  #room;
  #source;
  #heights = [];
  #sums = [0];
  #rows = new Map();
  #observer;
  #isFollowing = false;
  #scheduled = false;
  #target = null;

  // `source`: `count`, `guess(index)`, `row(index)`, an element or `undefined` for one that is empty, `seen(first, last)`.
  constructor(scroller, source) {
    this.#scroller = scroller;
    this.#source = source;
    this.#room = el("div", { class: "rows", role: "feed", "aria-label": "Conversation" });
    scroller.append(this.#room);
    this.#observer = new ResizeObserver((entries) => this.#measured(entries));
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#resize = new ResizeObserver(() => this.#schedule());
    this.#resize.observe(scroller);
  }

  #resize;

  close() {
    this.#observer.disconnect();
    this.#resize.disconnect();
  }

  get isFollowing() {
    return this.#isFollowing;
  }

  // Rows from this one on are others now, or new.
  changed(from = 0) {
    const { count } = this.#source;
    this.#heights.length = Math.min(this.#heights.length, count);
    for (let index = from; index < count; index++) if (this.#heights[index] === undefined) this.#heights[index] = this.#source.guess(index);
    this.#build();
    for (const [index, row] of this.#rows) if (index >= from) this.#drop(index, row);
    this.#schedule();
  }

  // This row is another now, as high as it was until it is measured.
  again(index) {
    const row = this.#rows.get(index);
    if (!row) return;
    const fresh = this.#make(index);
    this.#observer.unobserve(row);
    const { activeElement } = document;
    if (row.contains(activeElement)) fresh.tabIndex = 0;
    row.replaceWith(fresh);
    this.#rows.set(index, fresh);
    this.#place(index, fresh);
    this.#observer.observe(fresh);
    if (row === activeElement) fresh.focus({ preventScroll: true });
  }

  follow() {
    this.#isFollowing = true;
    this.#schedule();
  }

  show(index) {
    this.#isFollowing = false;
    this.#target = index;
    this.#scroller.scrollTop = Math.max(0, this.#top(index) - 24);
    this.#schedule();
  }

  // The row that has the focus, or the first in sight.
  get current() {
    for (const [index, row] of this.#rows) if (row.contains(document.activeElement)) return index;
    return this.#at(this.#scroller.scrollTop + 30);
  }

  focus(index) {
    if (index < 0 || index >= this.#source.count) return;
    this.#isFollowing = false;
    const top = this.#top(index);
    const bottom = top + (this.#heights[index] ?? 0);
    const { scrollTop, clientHeight } = this.#scroller;
    if (top < scrollTop || bottom > scrollTop + clientHeight) this.#scroller.scrollTop = Math.max(0, top - 60);
    this.#render();
    this.#rows.get(index)?.focus({ preventScroll: true });
  }

  row(index) {
    return this.#rows.get(index);
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    if (this.#target === null) this.#isFollowing = scrollHeight - scrollTop - clientHeight < 40;
    this.#source.moved?.(this.#isFollowing);
    this.#schedule();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#render();
    });
  }

  #render() {
    const { count } = this.#source;
    if (this.#isFollowing) this.#bottom();
    const { scrollTop, clientHeight } = this.#scroller;
    const first = this.#at(Math.max(0, scrollTop - BEYOND));
    const last = Math.min(count - 1, this.#at(scrollTop + clientHeight + BEYOND));
    for (const [index, row] of this.#rows) {
      if ((index < first || index > last) && !row.contains(document.activeElement)) this.#drop(index, row);
    }
    for (let index = first; index <= last; index++) {
      if (this.#rows.has(index)) continue;
      const row = this.#make(index);
      let next = null;
      for (let after = index + 1; after <= last && !next; after++) next = this.#rows.get(after) ?? null;
      this.#room.insertBefore(row, next);
      this.#rows.set(index, row);
      this.#place(index, row);
      this.#observer.observe(row);
    }
    this.#room.style.height = `${this.#total()}px`;
    if (this.#isFollowing) this.#bottom();
    if (count > 0) this.#source.seen?.(first, last);
    if (this.#target !== null && this.#rows.has(this.#target)) this.#target = null;
  }

  #bottom() {
    this.#room.style.height = `${this.#total()}px`;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #make(index) {
    const content = this.#source.row(index);
    const row = el("div", { class: "row", tabindex: -1 }, content);
    if (content) {
      row.setAttribute("role", "article");
      row.setAttribute("aria-posinset", index + 1);
      row.setAttribute("aria-setsize", this.#source.count);
    }
    return row;
  }

  #drop(index, row) {
    this.#observer.unobserve(row);
    row.remove();
    this.#rows.delete(index);
  }

  #place(index, row) {
    row.style.transform = `translateY(${this.#top(index)}px)`;
  }

  #measured(entries) {
    const { scrollTop } = this.#scroller;
    let above = 0;
    let isChanged = false;
    for (const { target, borderBoxSize } of entries) {
      const index = this.#indexOf(target);
      if (index === undefined) continue;
      const height = borderBoxSize[0].blockSize;
      const change = height - this.#heights[index];
      if (Math.abs(change) < 0.5) continue;
      if (this.#top(index) + this.#heights[index] <= scrollTop + 1) above += change;
      this.#heights[index] = height;
      this.#add(index, change);
      isChanged = true;
    }
    if (!isChanged) return;
    for (const [index, row] of this.#rows) this.#place(index, row);
    this.#room.style.height = `${this.#total()}px`;
    if (this.#isFollowing) this.#bottom();
    else if (above !== 0) this.#scroller.scrollTop = scrollTop + above;
    this.#schedule();
  }

  #indexOf(target) {
    for (const [index, row] of this.#rows) if (row === target) return index;
    return undefined;
  }

  // Sums of heights in a binary indexed tree: any place is found in a few steps, however many rows there are.
  #build() {
    const count = this.#heights.length;
    const sums = new Array(count + 1).fill(0);
    for (let index = 1; index <= count; index++) {
      sums[index] += this.#heights[index - 1];
      const parent = index + (index & -index);
      if (parent <= count) sums[parent] += sums[index];
    }
    this.#sums = sums;
  }

  #add(index, change) {
    for (let at = index + 1; at < this.#sums.length; at += at & -at) this.#sums[at] += change;
  }

  #top(index) {
    let sum = 0;
    for (let at = Math.min(index, this.#sums.length - 1); at > 0; at -= at & -at) sum += this.#sums[at];
    return sum;
  }

  #total() {
    return this.#top(this.#sums.length - 1);
  }

  #at(offset) {
    let at = 0;
    let left = offset;
    for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.#sums.length - 1))); step > 0; step >>= 1) {
      if (at + step < this.#sums.length && this.#sums[at + step] <= left) {
        at += step;
        left -= this.#sums[at];
      }
    }
    return Math.max(0, Math.min(at, this.#source.count - 1));
  }
}
