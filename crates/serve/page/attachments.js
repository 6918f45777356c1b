// Files that go with a prompt: chosen, dropped or pasted; shown beside it, and made into blocks of it.

import { button, el, icon, replace } from "./dom.js";

// Together they have to fit into one message, where they are a third longer.
const MOST_BYTES = 18 * 1024 * 1024;
const TEXTS = /^text\/|^application\/(json|xml|javascript|toml|yaml|x-sh)\b|\+(json|xml)$/;

export class Attachments {
  #files = [];

  // `fail(error)` tells why one was not taken.
  constructor(fail) {
    this.fail = fail;
    this.list = el("ul", { class: "attachments", "aria-label": "Attachments", hidden: true });
    this.input = el("input", { type: "file", id: "files", multiple: true, hidden: true, "aria-label": "Files to attach", tabindex: -1 });
    this.input.addEventListener("change", () => {
      this.add(this.input.files);
      this.input.value = "";
    });
    this.button = button("Attach files", "attach", () => this.input.click());
  }

  get isEmpty() {
    return this.#files.length === 0;
  }

  // Also what is dropped onto this element or pasted into it.
  takeFrom(element) {
    element.addEventListener("paste", (event) => {
      if (event.clipboardData?.files.length) {
        event.preventDefault();
        this.add(event.clipboardData.files);
      }
    });
    element.addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    element.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
  }

  add(files) {
    for (const file of files) {
      const size = this.#files.reduce((sum, one) => sum + one.size, file.size);
      if (size > MOST_BYTES) this.fail(new Error(`${file.name} is too large: all attachments of a prompt may have ${MOST_BYTES / 1024 / 1024} MB together.`));
      else this.#files.push(file);
    }
    this.#show();
  }

  // Those for the next prompt; there are none then.
  take() {
    const files = this.#files;
    this.#files = [];
    this.#show();
    return files;
  }

  // A prompt that was not sent has them still.
  putBack(files) {
    this.#files = [...files, ...this.#files];
    this.#show();
  }

  #show() {
    this.list.hidden = this.isEmpty;
    replace(this.list, this.#files.map((file) => el("li", null, icon("file"), el("span", { class: "ellipsis" }, file.name), el("span", { class: "faint numbers" }, sizeOf(file)),
      button(`Leave out ${file.name}`, "close", () => {
        this.#files = this.#files.filter((one) => one !== file);
        this.#show();
      }))));
  }
}

function sizeOf({ size }) {
  return size < 1024 ? `${size} B` : size < 1024 * 1024 ? `${Math.round(size / 1024)} KB` : `${(size / 1024 / 1024).toFixed(1)} MB`;
}

// One block of a prompt for each file.
export function blocksOf(files) {
  return Promise.all(files.map(async (file) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const mimeType = file.type || undefined;
    if (mimeType?.startsWith("image/") && mimeType !== "image/svg+xml") return { type: "image", mimeType, data: base64(bytes) };
    if (mimeType?.startsWith("audio/")) return { type: "audio", mimeType, data: base64(bytes) };
    const uri = `file:///${encodeURIComponent(file.name)}`;
    const text = mimeType === undefined || TEXTS.test(mimeType) || mimeType === "image/svg+xml" ? asText(bytes) : undefined;
    return { type: "resource", resource: text === undefined ? { uri, mimeType: mimeType ?? "application/octet-stream", blob: base64(bytes) } : { uri, mimeType: mimeType ?? "text/plain", text } };
  }));
}

function asText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
