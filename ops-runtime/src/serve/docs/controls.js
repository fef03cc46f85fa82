// Fields of one control: texts, numbers, choices, JSON, files. What is left empty is not sent.
//
// A field is `{ element, get, find, show }`: `get()` gives its value or `undefined`, `find(path)` the field for the rest of a
// JSON pointer, and `show(message)` says what is wrong with it.

import { list } from "./document.js";
import { code, el, freshId } from "./dom.js";
import { isRaw, number, parse, plain, pretty } from "./json.js";
import { prose } from "./prose.js";
import { isBytes, values, words } from "./schema.js";

/** A value that can't be read from its field. */
export class Unreadable extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** The field for a schema that one control can hold; `null` if it takes several. */
export function control(form, own, options) {
  const listed = values(own);
  if (listed) return choice(form, own, options, listed);
  if (isBytes(own)) return options.files ? file(form, own, options) : text(form, own, options);
  if (own.variants.length) return null;
  const types = [...own.types];
  if (types.length === 1 && types[0] === "boolean") return choice(form, own, options, [true, false]);
  if (types.length && types.every((type) => ["string", "integer", "number", "boolean"].includes(type))) {
    return text(form, own, options);
  }
  return null;
}

/** A label, the control, what it takes in words, and room for what is wrong with it. */
export function labelled(form, own, { name, required, isPart, description }, input, beside = []) {
  const ids = { input: freshId(), about: freshId(), error: freshId() };
  const error = el("p", { class: "error", id: ids.error, hidden: true });
  input.id = ids.input;
  input.setAttribute("aria-describedby", `${ids.about} ${ids.error}`);
  if (required) input.setAttribute("aria-required", "true");
  const field = {
    element: el(
      "div",
      { class: "field" },
      el(
        "div",
        { class: "label" },
        el("label", { for: ids.input }, code(name)),
        required && !isPart && el("span", { class: "mark req" }, "required"),
        own.node.deprecated === true && el("span", { class: "mark dep" }, "deprecated"),
        el("span", { class: "type", id: ids.about }, words(form.document, own)),
      ),
      prose(description ?? own.node.description),
      el("div", { class: "control" }, input, beside),
      error,
    ),
    control: input,
    find: () => field,
    show(message) {
      error.textContent = message ?? "";
      error.hidden = !message;
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
  return field;
}

function text(form, own, options) {
  const isLong = options.multiline && own.types.has("string") && !own.node.format && !(own.node.maxLength < 100);
  const isSecret = own.node.format === "password";
  const isNumber = !own.types.has("string");
  const input = isLong
    ? el("textarea", { rows: 1, spellcheck: "false" })
    : el("input", {
        type: isSecret ? "password" : "text",
        inputmode: isNumber && !own.types.has("boolean") ? "decimal" : null,
        autocomplete: "off",
        spellcheck: "false",
      });
  const example = options.example ?? list(own.node.examples)[0] ?? own.node.example;
  if (example !== undefined && !isSecret) input.placeholder = `such as ${plain(example).slice(0, 80)}`;
  const isNull = own.nullable
    ? el("input", { type: "checkbox", onchange: () => (input.disabled = isNull.checked) })
    : null;
  const beside = isNull ? [el("label", { class: "null" }, isNull, "null")] : [];
  if (options.value === null && isNull) isNull.checked = input.disabled = true;
  else if (options.value !== undefined) input.value = plain(options.value);
  const field = labelled(form, own, options, input, beside);
  field.get = () => {
    if (isNull?.checked) return null;
    return input.value === "" ? undefined : read(own, input.value);
  };
  return field;
}

/** What a text means. What is not of the type is sent as it is: the server says what is wrong. */
function read(own, text) {
  const typed = text.trim();
  const isNumber = own.types.has("integer") || own.types.has("number");
  const value = isNumber ? number(typed) : undefined;
  if (value !== undefined) return value;
  if (own.types.has("boolean") && (typed === "true" || typed === "false")) return typed === "true";
  return text;
}

function choice(form, own, options, listed) {
  const all = own.nullable && !listed.includes(null) ? [...listed, null] : listed;
  const index = all.findIndex((value) => same(value, options.value));
  // What can be one value only is that, where it is needed.
  const chosen = index < 0 && options.required && Object.hasOwn(own.node, "const") ? 0 : index;
  const input = el(
    "select",
    {},
    el("option", { value: "" }, "not set"),
    ...all.map((value, at) =>
      el("option", { value: at, selected: at === chosen }, plain(value) === "" ? '""' : plain(value).slice(0, 200)),
    ),
  );
  const field = labelled(form, own, options, input);
  field.get = () => (input.value === "" ? undefined : all[Number(input.value)]);
  return field;
}

function same(one, other) {
  return one === other || (other !== undefined && JSON.stringify(one) === JSON.stringify(other));
}

function file(form, own, options) {
  const input = el("input", { type: "file" });
  const field = labelled(form, own, options, input);
  field.get = () => input.files[0];
  return field;
}

/** A field for any JSON. */
export function json(form, own, options) {
  const input = el("textarea", { class: "json", rows: options.rows ?? 2, spellcheck: "false" });
  if (options.value !== undefined) input.value = isRaw(options.value) ? plain(options.value) : pretty(options.value);
  if (options.value === undefined) input.placeholder = "JSON";
  const field = labelled(form, own, options, input);
  field.get = () => {
    if (!input.value.trim()) return undefined;
    try {
      return parse(input.value);
    } catch (error) {
      throw new Unreadable(field, `This is not JSON: ${error.message}`);
    }
  };
  return field;
}
