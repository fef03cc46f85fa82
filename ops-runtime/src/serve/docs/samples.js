// The part of an operation that shows the same call elsewhere, written again when the form changes.

import { Unreadable } from "./controls.js";
import { copyButton, el, lazy } from "./dom.js";

const NAMES = ["curl", "Rust", "ops call"];

/** A change is shown after so many milliseconds without another. */
const PAUSE = 120;

export class Samples {
  #parts = NAMES.map((name) => ({ name, text: "", pre: el("pre", { tabindex: "0" }) }));
  #timer = 0;

  /** `make` gives the texts in the order of their names, or throws `Unreadable`. */
  constructor(make) {
    this.make = make;
    const part = ({ name, pre }, at) => {
      const copy = copyButton(() => this.#parts[at].text);
      return el("section", { class: "block" }, el("div", { class: "bar" }, el("h4", {}, name), copy), pre);
    };
    const fill = () => el("div", {}, this.#parts.map(part));
    this.element = lazy("The same call by curl, Rust and ops call", fill, { class: "code" });
    this.element.addEventListener("toggle", () => this.#write());
  }

  update() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#write(), PAUSE);
  }

  #write() {
    if (!this.element.open) return;
    let texts;
    try {
      texts = this.make();
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      texts = NAMES.map(() => error.message);
    }
    this.#parts.forEach((part, at) => (part.pre.textContent = part.text = texts[at]));
  }
}
