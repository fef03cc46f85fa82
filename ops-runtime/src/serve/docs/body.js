// The form of a request body: fields made from its schema, or its JSON as a text.

import { control, json } from "./controls.js";
import { button, el, freshId } from "./dom.js";
import { members } from "./form.js";
import { isObject } from "./json.js";
import { prose } from "./prose.js";
import { kindOf } from "./request.js";
import { tree, view } from "./schema.js";

export class BodyForm {
  #field = null;
  #isText = false;

  constructor(api, form, { required, description, content, served }, title) {
    Object.assign(this, { api, form, required, content, served });
    this.element = null;
    if (!content.length) return;
    this.box = el("div");
    const id = freshId();
    this.select = el(
      "select",
      { id, onchange: () => form.act(() => this.#fill(undefined)) },
      content.map(({ type }, at) => el("option", { value: at }, type)),
    );
    this.toggle = button("", () => form.act(() => this.#switch()), { class: "small" });
    this.exampleButton = button("Fill in the example", () => form.act(() => this.#fill(this.#media().example)), {
      class: "small",
    });
    this.element = el(
      "div",
      { class: "place", role: "group", "aria-label": title },
      el(
        "div",
        { class: "bar" },
        el("h4", {}, title, required && el("span", { class: "mark req" }, "required")),
        el("label", { for: id, class: "hidden" }, "Content type"),
        this.select,
        this.toggle,
        this.exampleButton,
      ),
      prose(description),
      this.box,
    );
    this.select.hidden = content.length === 1 && kindOf(content[0].type) === "json";
    this.#fill(undefined);
  }

  #media() {
    return this.content[Number(this.select.value)];
  }

  /** Makes the fields for the content type, with a value to begin with. */
  #fill(value) {
    const { type, schema, example } = this.#media();
    const kind = kindOf(type);
    const own = view(this.api, schema ?? {});
    const isFields = ["json", "form", "multipart"].includes(kind);
    this.toggle.hidden = kind !== "json" && kind !== "form";
    this.toggle.textContent = this.#isText ? "As fields" : "As JSON";
    this.exampleButton.hidden = example === undefined || !isFields;
    const options = {
      name: "body",
      required: this.required,
      value,
      description: "",
      multiline: true,
      files: kind === "multipart",
      rows: 8,
    };
    if (this.#isText && !this.toggle.hidden)
      this.#field = json(this.form, own, { ...options, name: "JSON", isPart: true, value: value ?? example });
    else if (kind === "bytes")
      this.#field = control(
        this.form,
        { ...own, node: { format: "binary" }, types: new Set(["string"]), variants: [] },
        { ...options, files: true },
      );
    else if (kind === "text")
      this.#field = control(this.form, { ...own, node: {}, types: new Set(["string"]), variants: [] }, options);
    else if (own.properties.size && (value === undefined || isObject(value)))
      this.#field = members(this.form, own, { ...options, bare: true }, 0);
    else this.#field = this.form.field(schema ?? {}, { ...options, required: true });
    this.box.replaceChildren(
      this.#field.element,
      ...(this.#isText && schema !== undefined ? [tree(this.api, schema)] : []),
    );
  }

  /** Between fields and JSON; what was entered is kept. */
  #switch() {
    let value;
    try {
      value = this.#field.get();
    } catch (error) {
      error.field?.show(error.message);
      return;
    }
    this.#isText = !this.#isText;
    this.#fill(value);
  }

  /** The body with its content type; `undefined` if there is none. Throws `Unreadable`. */
  get() {
    const value = this.#field?.get();
    if (value === undefined) return undefined;
    const { type, encoding } = this.#media();
    return { type, value, encoding };
  }

  find(path) {
    return this.#field?.find(path) ?? null;
  }
}
