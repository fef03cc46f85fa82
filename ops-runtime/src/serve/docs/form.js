// Forms made from schemas. What a document nests is made when it is asked for.

import { Unreadable, control, json } from "./controls.js";
import { button, code, el, freshId } from "./dom.js";
import { isObject } from "./json.js";
import { prose } from "./prose.js";
import { view, words } from "./schema.js";

/** Deeper fields are JSON. */
const DEPTH = 8;

/** So many properties of an object are shown at first. */
const PROPERTIES = 40;

/** So many items of a value are made into fields; a longer list is JSON. */
const ITEMS = 50;

/** So many fields are made at a time: a few schemas that require each other are a tree without end. */
const FIELDS = 300;

/** What fields share: the document, and who is told that a value changed. */
export class Form {
  constructor(document, onchange) {
    this.document = document;
    this.onchange = onchange;
    this.made = 0;
  }

  /** Changes the fields, as the reader asked. */
  act(change) {
    this.made = 0;
    change();
    this.onchange();
  }

  /**
   * The field for a schema. `options` are its `name`, `required`, the `value` to begin with, `description` and `example`;
   * `isPart` if it is an item or a variant of another, `files` if bytes are files, `multiline` if texts may have lines.
   */
  field(schema, options, depth = 0) {
    this.made += 1;
    const own = view(this.document, schema);
    const single = control(this, own, options);
    if (single) return single;
    const { value } = options;
    const isFit =
      value === undefined || (own.types.has("array") ? Array.isArray(value) && value.length <= ITEMS : isObject(value));
    if (depth < DEPTH && this.made < FIELDS) {
      if (own.variants.length && !own.properties.size && value === undefined)
        return variants(this, own, options, depth);
      if (own.types.has("array") && own.items !== undefined && isFit) return items(this, own, options, depth);
      if (own.properties.size && isFit)
        return options.required ? members(this, own, options, depth) : absent(this, own, options, depth);
    }
    return json(this, own, options);
  }
}

/** A frame around several fields, with room for what is wrong with them as a whole. */
function group(form, own, { name, required, isPart, description }, ...content) {
  const error = el("p", { class: "error", id: freshId(), hidden: true });
  const element = el(
    "fieldset",
    { "aria-describedby": error.id },
    el(
      "legend",
      {},
      code(name),
      " ",
      required && !isPart && el("span", { class: "mark req" }, "required"),
      " ",
      el("span", { class: "type" }, words(form.document, own)),
    ),
    prose(description ?? own.node.description),
    error,
    ...content,
  );
  const show = (message) => {
    error.textContent = message ?? "";
    error.hidden = !message;
  };
  return { element, control: element, show };
}

/** The properties of an object. */
export function members(form, own, options, depth) {
  const { value, files, multiline } = options;
  const fields = new Map();
  const box = el("div", { class: "fields" });
  const add = ([name, schema]) => {
    const inner = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    const field = form.field(
      schema,
      { name, required: own.required.has(name), value: inner, files, multiline },
      depth + 1,
    );
    fields.set(name, field);
    box.append(field.element);
  };
  const writable = [...own.properties].filter(([, schema]) => form.document.resolve(schema).readOnly !== true);
  // What is required comes first; the order is the document's otherwise.
  writable.sort(([one], [other]) => own.required.has(other) - own.required.has(one));
  const isShown = ([name], at) =>
    at < PROPERTIES || own.required.has(name) || (isObject(value) && Object.hasOwn(value, name));
  writable.filter(isShown).forEach(add);
  const rest = writable.filter((entry, at) => !isShown(entry, at));
  const more =
    rest.length > 0 &&
    button(
      `Show ${rest.length} more`,
      () =>
        form.act(() => {
          rest.forEach(add);
          more.remove();
        }),
      { class: "small" },
    );
  const others = isObject(value) ? Object.entries(value).filter(([name]) => !own.properties.has(name)) : [];
  if (others.length || (isObject(own.additional) && Object.keys(own.additional).length)) {
    const name = "other members";
    const field = json(form, view(form.document, { type: "object", additionalProperties: own.additional }), {
      name,
      value: others.length ? Object.fromEntries(others) : undefined,
    });
    box.append(field.element);
    fields.set(null, field);
  }
  const all = options.bare
    ? { element: el("div", {}, box, more), show: () => {} }
    : group(form, own, options, box, more);
  return {
    ...all,
    get() {
      const object = {};
      for (const [name, field] of fields) {
        const inner = field.get();
        if (inner === undefined) continue;
        if (name !== null) define(object, name, inner);
        else if (isObject(inner)) Object.entries(inner).forEach(([name, value]) => define(object, name, value));
        else throw new Unreadable(field, "This is no JSON object.");
      }
      return Object.keys(object).length || options.required ? object : undefined;
    },
    find([name, ...rest]) {
      const field = name === undefined ? null : (fields.get(name) ?? fields.get(null));
      return field ? field.find(rest) : options.bare ? null : this;
    },
  };
}

/** Sets a member, also one that is called `__proto__`. */
function define(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** An object that need not be there: its fields are made when it is added. */
function absent(form, own, options, depth) {
  let inner = null;
  const box = el("div");
  const make = (value) => members(form, own, { ...options, required: true, bare: true, value }, depth);
  const toggle = button("", () => form.act(() => set(inner ? null : make())), { class: "small" });
  const set = (next) => {
    inner = next;
    toggle.textContent = inner ? "Leave it out" : "Add it";
    toggle.setAttribute("aria-expanded", String(inner !== null));
    box.replaceChildren(...(inner ? [inner.element] : []));
  };
  const all = group(form, own, options, toggle, box);
  set(options.value === undefined ? null : make(options.value));
  return {
    ...all,
    get: () => inner?.get(),
    find(path) {
      return (path.length && inner?.find(path)) || this;
    },
  };
}

/** The items of a list. */
function items(form, own, options, depth) {
  const { files, multiline } = options;
  const list = [];
  // What is empty is not sent, so that places in the input count without it.
  let sent = list;
  const box = el("div", { class: "items" });
  const add = (value) => {
    const item = form.field(
      own.items,
      { name: "item", required: true, isPart: true, value, files, multiline },
      depth + 1,
    );
    const row = el(
      "div",
      { class: "item" },
      item.element,
      button(
        "Remove",
        () =>
          form.act(() => {
            list.splice(list.indexOf(item), 1);
            row.remove();
          }),
        { class: "small", "aria-label": "Remove the item" },
      ),
    );
    list.push(item);
    box.append(row);
    return item;
  };
  (options.value ?? []).forEach(add);
  const more = button(
    "Add an item",
    () =>
      form.act(() => {
        add(undefined).element.querySelector("input, select, textarea, button")?.focus();
      }),
    { class: "small" },
  );
  const all = group(form, own, options, box, more);
  return {
    ...all,
    get() {
      const values = list.map((item) => item.get());
      sent = list.filter((item, at) => values[at] !== undefined);
      return sent.length || options.required ? values.filter((value) => value !== undefined) : undefined;
    },
    find([at, ...rest]) {
      return sent[Number(at)]?.find(rest) ?? this;
    },
  };
}

/** One of several schemas, chosen by the reader. */
function variants(form, own, options, depth) {
  let inner = null;
  const box = el("div");
  const names = own.variants.map((variant, at) => `${at + 1}: ${words(form.document, view(form.document, variant))}`);
  const id = freshId();
  const set = (at) => {
    const choice = { ...options, name: "value", required: true, isPart: true, description: "" };
    inner = at === "" ? null : form.field(own.variants[Number(at)], choice, depth + 1);
    box.replaceChildren(...(inner ? [inner.element] : []));
  };
  const select = el(
    "select",
    { id, onchange: () => form.act(() => set(select.value)) },
    el("option", { value: "" }, "not set"),
    ...names.map((name, at) => el("option", { value: at }, name.slice(0, 120))),
  );
  const all = group(form, own, options, el("label", { for: id, class: "hidden" }, "Which of them"), select, box);
  if (options.required) set((select.value = "0"));
  return {
    ...all,
    get: () => inner?.get(),
    find(path) {
      return inner?.find(path) ?? this;
    },
  };
}
