// What the agent asks people: permissions, its own questions, forms of MCP servers, addresses to visit. One card for each,
// until it is answered here or elsewhere.

import { el, webLink } from "./dom.js";
import { Form } from "./form.js";
import { liveCall } from "./live.js";

const ASKS = { permission: "The agent asks for permission", answer: "The agent asks you", mode: "The agent proposes another mode" };

export class Questions {
  #asked = [];

  // `answer(id, result)` sends what was said; `said` is called after it.
  constructor(answer, said) {
    this.answer = answer;
    this.said = said;
    this.element = el("div", { class: "questions", role: "region", "aria-label": "Questions of the agent", "aria-live": "assertive" });
  }

  ask(id, method, params) {
    const call = params.toolCall?.toolCallId ?? params.toolCallId;
    const question = { id, method, call, choices: [], address: params.elicitationId };
    question.card = method === "session/request_permission" ? this.#permission(question, params) : this.#elicitation(question, params);
    this.#asked.push(question);
    this.element.append(question.card);
    return question.card;
  }

  withdrawn(id) {
    this.#remove((one) => one.id === id);
  }

  // The server of this address says that it was visited.
  visited(address) {
    this.#remove((one) => one.address !== undefined && one.address === address);
  }

  // Those of calls end with their turn; others are about the session.
  endTurn() {
    this.#remove((one) => one.call !== undefined);
  }

  clear() {
    this.#remove(() => true);
  }

  // The digit of a choice, while no text is typed.
  choose(digit) {
    const choice = this.#asked[0]?.choices[digit - 1];
    choice?.();
    return choice !== undefined;
  }

  #remove(isMeant) {
    this.#asked = this.#asked.filter((one) => {
      if (!isMeant(one)) return true;
      one.card.remove();
      return false;
    });
  }

  #say(question, result) {
    this.answer(question.id, result);
    this.withdrawn(question.id);
    this.said();
  }

  #card(title, ...content) {
    return el("section", { class: "question", tabindex: -1, "aria-label": title }, el("h2", null, title), content);
  }

  // Buttons that answer at once, with their digits.
  #choices(question, choices) {
    question.choices = choices.map(({ result }) => () => this.#say(question, result));
    return el("div", { class: "choices" }, choices.map(({ name, hint, style, result }, index) =>
      el("button", { type: "button", class: `choice-button ${style}`, title: hint, on: { click: () => this.#say(question, result) } },
        name, index < 9 ? el("kbd", { "aria-hidden": "true" }, String(index + 1)) : null)));
  }

  #permission(question, { toolCall, options }) {
    const shown = liveCall({ status: "pending", ...toolCall });
    shown.open = true;
    shown.dispatchEvent(new Event("toggle"));
    const choices = options.map(({ kind, name, optionId }) => ({
      name, style: `${kind.startsWith("allow") ? "allow" : "reject"} ${kind}`, result: { outcome: { outcome: "selected", optionId } },
    }));
    return this.#card(ASKS[toolCall._meta?.attache?.asks] ?? ASKS.permission, el("div", { class: "asked" }, shown), this.#choices(question, choices));
  }

  #elicitation(question, params) {
    const message = el("p", { class: "asked-text" }, params.message);
    const leave = [
      { name: "Decline", hint: "It goes on without an answer", style: "decline", result: { action: "decline" } },
      { name: "Cancel", hint: "No answer, and what waits for it ends", style: "cancel", result: { action: "cancel" } },
    ];
    if (params.mode === "url") return this.#address(question, params, message, leave);
    const form = params.mode === "form" ? Form.of(params.requestedSchema ?? {}) : undefined;
    if (form === undefined) return this.#card(ASKS.answer, message, el("p", { class: "error-line" }, "This page can't show what is asked for."), this.#choices(question, leave));
    const title = question.call === undefined ? "A question about this session" : ASKS.answer;
    const only = form.onlyChoice;
    if (only) {
      const accepted = only.options.map(({ value, title, description }) => ({ name: title, hint: description, style: "allow", result: { action: "accept", content: { [only.name]: value } } }));
      const told = only.options.some(({ description }) => description) ? el("dl", { class: "told" }, only.options.filter(({ description }) => description).map(({ title, description }) => el("div", null, el("dt", null, title), el("dd", null, description)))) : null;
      const about = only.description && only.description !== params.message ? el("p", { class: "faint" }, only.description) : null;
      return this.#card(title, message, about, told, this.#choices(question, [...accepted, ...leave]));
    }
    const buttons = this.#choices(question, leave);
    // Digits are for answers, and this one is typed.
    question.choices = [];
    for (const key of buttons.querySelectorAll("kbd")) key.remove();
    buttons.prepend(el("button", { type: "submit", class: "choice-button allow_once" }, "Answer"));
    form.element.append(buttons);
    form.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const content = form.content();
      if (content) this.#say(question, { action: "accept", content });
    });
    return this.#card(title, message, form.element);
  }

  #address(question, { url }, message, leave) {
    const link = webLink(url, "Open it in a new window");
    const where = el("p", { class: "path" }, url);
    if (link.tagName !== "A") return this.#card(ASKS.answer, message, where, this.#choices(question, leave));
    link.classList.add("choice-button", "allow_once");
    link.addEventListener("click", () => this.answer(question.id, { action: "accept" }));
    link.addEventListener("click", () => setTimeout(() => this.withdrawn(question.id)));
    const buttons = this.#choices(question, leave);
    buttons.prepend(link);
    return this.#card("You are asked to visit an address", message, where, buttons);
  }
}
