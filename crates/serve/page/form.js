// A form by the schema of an elicitation: one field for each property of a simple type. Sends nothing.

import { el } from "./dom.js";

const INPUTS = { email: "email", uri: "url", date: "date" };
// Of more choices one is picked from a list.
const RADIOS = 8;
const MATCHED_CHARS = 2000;
let forms = 0;

export class Form {
  #fields;

  // `undefined` if it asks for something that is no known field.
  static of(schema) {
    const properties = Object.entries(schema.properties ?? {});
    const known = properties.map(([name, property]) => field(name, property, (schema.required ?? []).includes(name)));
    return known.length === 0 || known.includes(undefined) ? undefined : new Form(known);
  }

  constructor(fields) {
    this.#fields = fields;
    this.element = el("form", { class: "asked-form" }, el("div", { class: "fields" }, fields.map(({ element }) => element)));
  }

  // The one field, where it is a choice among a few.
  get onlyChoice() {
    const [only] = this.#fields;
    return this.#fields.length === 1 && only.options !== undefined && only.options.length <= RADIOS ? only : undefined;
  }

  // What was filled in; `undefined` if something of it is wrong, which the field says.
  content() {
    for (const { check } of this.#fields) check?.();
    if (!this.element.reportValidity()) return undefined;
    return Object.fromEntries(this.#fields.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined));
  }
}

function field(name, property, isRequired) {
  const id = `field-${++forms}`;
  const base = { id, name, isRequired, title: property.title || name, description: property.description };
  switch (property.type) {
    case "string": {
      const options = optionsOf(property);
      return options ? oneOf(base, options, property) : text(base, property);
    }
    case "number":
    case "integer":
      return number(base, property);
    case "boolean":
      return flag(base, property);
    case "array": {
      const options = optionsOf({ oneOf: property.items?.anyOf ?? property.items?.oneOf, enum: property.items?.enum });
      return options && someOf(base, options, property);
    }
    default:
      return undefined;
  }
}

function optionsOf({ oneOf, enum: values, enumNames }) {
  const options = Array.isArray(oneOf) ? oneOf.map(({ const: value, title, description }) => ({ value, title: title || value, description }))
    : Array.isArray(values) ? values.map((value, index) => ({ value, title: enumNames?.[index] || value }))
    : undefined;
  return options?.every(({ value }) => typeof value === "string") && options.length ? options : undefined;
}

const hint = ({ id, description }) => (description ? el("p", { class: "faint", id: `${id}-says` }, description) : null);
const described = ({ id, description }) => (description ? `${id}-says` : undefined);

function labelled(base, input) {
  return el("div", { class: "field" }, el("label", { for: base.id }, base.title, base.isRequired ? null : el("span", { class: "faint" }, " (optional)")), hint(base), input);
}

function text(base, { format, minLength, maxLength, pattern, default: usual }) {
  const isShort = format !== undefined && format !== null;
  const common = { id: base.id, required: base.isRequired, minlength: minLength ?? undefined, maxlength: maxLength ?? undefined, "aria-describedby": described(base) };
  const input = isShort ? el("input", { type: INPUTS[format] ?? "text", autocomplete: "off", ...common }) : el("textarea", { rows: 2, ...common });
  input.value = usual ?? "";
  // What was put in by a program is not held to the lengths by browsers.
  const check = () => input.setCustomValidity(problem(input.value, { base, minLength, maxLength, pattern }));
  input.addEventListener("input", () => input.setCustomValidity(""));
  return { ...base, element: labelled(base, input), check, value: () => (input.value === "" && !base.isRequired ? undefined : input.value) };
}

function problem(value, { base, minLength, maxLength, pattern }) {
  if (value === "") return "";
  const length = [...value].length;
  if (length < (minLength ?? 0)) return `At least ${minLength} characters`;
  if (length > (maxLength ?? Infinity)) return `At most ${maxLength} characters`;
  if (!pattern || length > MATCHED_CHARS) return "";
  try {
    return new RegExp(pattern, "u").test(value) ? "" : `${base.title} has to match ${pattern}`;
  } catch {
    // It is none here; who asks looks for itself.
    return "";
  }
}

function number(base, { type, minimum, maximum, default: usual }) {
  const input = el("input", { id: base.id, type: "number", required: base.isRequired, min: minimum ?? undefined, max: maximum ?? undefined, step: type === "integer" ? 1 : "any", "aria-describedby": described(base) });
  input.value = usual ?? "";
  return { ...base, element: labelled(base, input), value: () => (input.value === "" ? undefined : Number(input.value)) };
}

function flag(base, { default: usual }) {
  const input = el("input", { id: base.id, type: "checkbox", checked: usual === true, "aria-describedby": described(base) });
  return { ...base, element: el("div", { class: "field" }, el("label", { class: "check" }, input, base.title), hint(base)), value: () => input.checked };
}

function boxes(base, options, type, isChosen) {
  const inputs = options.map(({ value }) => el("input", { type, name: base.id, value, checked: isChosen(value), required: type === "radio" && base.isRequired }));
  const element = el("fieldset", { class: "field", "aria-describedby": described(base) }, el("legend", null, base.title, base.isRequired ? null : el("span", { class: "faint" }, " (optional)")), hint(base),
    options.map(({ title, description }, index) => el("label", { class: "check" }, inputs[index], el("span", null, title, description ? el("span", { class: "faint" }, ` ${description}`) : null))));
  return { inputs, element };
}

function oneOf(base, options, { default: usual }) {
  if (options.length > RADIOS) {
    const select = el("select", { id: base.id, required: base.isRequired, "aria-describedby": described(base) }, el("option", { value: "" }, "Choose"),
      options.map(({ value, title }) => el("option", { value, selected: value === usual }, title)));
    return { ...base, options, element: labelled(base, select), value: () => select.value || undefined };
  }
  const { inputs, element } = boxes(base, options, "radio", (value) => value === usual);
  return { ...base, options, element, value: () => inputs.find(({ checked }) => checked)?.value };
}

function someOf(base, options, { minItems, maxItems, default: usual }) {
  const { inputs, element } = boxes(base, options, "checkbox", (value) => (usual ?? []).includes(value));
  const chosen = () => inputs.filter(({ checked }) => checked).map(({ value }) => value);
  const check = () => {
    const count = chosen().length;
    inputs[0].setCustomValidity(count < (minItems ?? 0) ? `Choose at least ${minItems}` : count > (maxItems ?? Infinity) ? `Choose at most ${maxItems}` : "");
  };
  element.addEventListener("change", () => inputs[0].setCustomValidity(""));
  return { ...base, element, check, value: chosen };
}
