// Shows what came of a call: the envelope with its warnings, a failure with its violations, the items of a stream.

import { button, code, copyButton, cut, el, link } from "./dom.js";
import { isObject, parse, plain, pretty } from "./json.js";

/** So many characters of a response are shown at first. */
const SHOWN = 200_000;

/** So many items of a stream are kept on the page. */
const ITEMS = 200;

/** A response as elements. `fields(pointer)` is the field of the form for a place in the input, if it has one. */
export function result(response, fields) {
  const out = [head(response)];
  const { json } = response;
  if (response.isEnvelope && isObject(json)) out.push(...envelope(json));
  else if (isProblem(response)) out.push(...problem(json, fields));
  else if (response.blob) out.push(blob(response.blob, response.type));
  else if (response.text) out.push(texts("Body", json === undefined ? response.text : pretty(json)));
  else out.push(el("p", { class: "quiet" }, "The response has no body."));
  out.push(headers(response.headers));
  return out;
}

/** The status of a response, with how long it took. */
export function head({ status, statusText, milliseconds, headers }) {
  const request = headers.find(([name]) => name === "x-request-id")?.[1];
  const kind = status < 400 ? "good" : "bad";
  return el(
    "p",
    { class: "status" },
    el("strong", { class: kind }, `${status} ${statusText}`.trim()),
    el("span", { class: "quiet" }, `${milliseconds.toLocaleString("en")} ms`),
    request && el("span", { class: "quiet" }, `request ${request}`),
  );
}

export function headers(all) {
  return el("details", {}, el("summary", {}, `${all.length} headers`), pairs(all));
}

function pairs(all) {
  return el(
    "dl",
    { class: "pairs" },
    all.map(([name, value]) => [el("dt", {}, name), el("dd", {}, code(value))]).flat(),
  );
}

/** A text with its title and a button that copies it. */
export function texts(title, text) {
  return el(
    "section",
    { class: "block" },
    el(
      "div",
      { class: "bar" },
      el("h4", {}, title),
      copyButton(() => text),
    ),
    ...cut(text, SHOWN, (start) => el("pre", { tabindex: "0" }, start)),
  );
}

function envelope({ data, meta, warnings }) {
  const all = Array.isArray(warnings) ? warnings : [];
  return [
    texts("Data", pretty(data)),
    el(
      "section",
      { class: "block" },
      el("h4", {}, "Warnings"),
      all.length
        ? el(
            "ul",
            {},
            all.map((warning) => el("li", {}, warningWords(warning))),
          )
        : el("p", { class: "quiet" }, "None: the data are as the schema says."),
    ),
    isObject(meta) &&
      el(
        "section",
        { class: "block" },
        el("h4", {}, "Meta"),
        pairs(Object.entries(meta).map(([name, value]) => [name, when(name, value)])),
      ),
  ];
}

function warningWords(warning) {
  const { pointer, expected, found } = isObject(warning) ? warning : {};
  if (typeof expected !== "string") return plain(warning);
  return [code(pointer || "the data"), ` expected ${expected}, found ${plain(found)}`];
}

/** A value of the meta; the time also as a date. */
function when(name, value) {
  const date = name === "timestamp" && typeof value === "number" ? new Date(value) : null;
  return date && !Number.isNaN(date.valueOf()) ? `${value} (${date.toISOString()})` : plain(value);
}

function isProblem({ type, json }) {
  return type.startsWith("application/problem+json") && isObject(json);
}

/** A failure (RFC 9457). Violations are said at their fields; those without one are listed, and all lead there. */
function problem(json, fields) {
  const violations = Array.isArray(json.violations) ? json.violations.filter(isObject) : [];
  const rows = violations.map(({ pointer, message }) => {
    const field = fields(plain(pointer));
    field?.show(plain(message));
    const place = plain(pointer) || "the input";
    return el(
      "li",
      {},
      field ? button(place, () => focus(field), { class: "link" }) : code(place),
      ` ${plain(message)}`,
    );
  });
  const first = violations.map(({ pointer }) => fields(plain(pointer))).find(Boolean);
  if (first) focus(first);
  return [
    el(
      "p",
      { class: "detail" },
      plain(json.detail ?? json.title ?? ""),
      json.code !== undefined && [" ", el("code", {}, plain(json.code))],
    ),
    rows.length > 0 && el("ul", { class: "violations" }, rows),
    typeof json.type === "string" && json.type !== "about:blank" && el("p", {}, link(json.type, json.type)),
    texts("Problem", pretty(json)),
  ].filter(Boolean);
}

function focus(field) {
  const control = field.control.matches("fieldset")
    ? field.control.querySelector("input, select, textarea, button")
    : field.control;
  control?.focus();
}

function blob(blob, type) {
  const save = button("Save", () => {
    const address = URL.createObjectURL(blob);
    el("a", { href: address, download: "response" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });
  return el("p", {}, `${blob.size.toLocaleString("en")} bytes of `, code(type), " ", save);
}

/** Shows the items of a stream as they come. `last` is the id by which the stream can be followed on. */
export class Live {
  #list = el("ol", { class: "items live", reversed: true });
  #said = el("p", { role: "status" }, "Following");
  count = 0;
  last = undefined;
  isDone = false;

  constructor(response) {
    this.element = el("div", {}, head(response), this.#said, this.#list);
  }

  /** The newest is on top. */
  add({ type, data, id }) {
    if (data === "[DONE]") {
      this.isDone = true;
      return;
    }
    this.count += 1;
    this.last = id ?? this.last;
    let text = data;
    try {
      text = pretty(parse(data));
    } catch {
      // It is shown as it came.
    }
    const name = [id !== undefined && `id ${id}`, type !== "message" && type].filter(Boolean).join(", ");
    const own = el(
      "li",
      { class: type === "error" ? "bad" : "" },
      name && el("span", { class: "quiet" }, name),
      ...cut(text, 20_000, (start) => el("pre", {}, start)),
    );
    this.#list.prepend(own);
    this.#list.start = this.count;
    if (this.#list.childElementCount > ITEMS) this.#list.lastElementChild.remove();
    this.#said.textContent = `Following: ${this.count} ${this.count === 1 ? "item" : "items"}`;
  }

  end(how) {
    const count = `${this.count} ${this.count === 1 ? "item" : "items"}`;
    this.#said.textContent = `${this.isDone ? "The server ended the stream" : how} after ${count}.`;
  }
}
