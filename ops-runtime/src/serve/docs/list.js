// The list of operations, and its search. All rows are made once; the browser lays out those that are seen.

import { code, el } from "./dom.js";
import { firstLine } from "./prose.js";

export class List {
  #rows = [];
  #groups = [];

  /** `elements` are the `search` field, the `list`, and the `count`. */
  constructor(elements, open) {
    this.elements = elements;
    this.open = open;
    elements.search.addEventListener("input", () => this.filter());
    elements.search.addEventListener("keydown", (event) => this.#onSearchKey(event));
    elements.list.addEventListener("keydown", (event) => this.#onListKey(event));
    elements.list.addEventListener("click", (event) => this.#onClick(event));
  }

  fill(operations) {
    this.#rows = [];
    this.#groups = [];
    const parts = [];
    for (const [namespace, own] of groups(operations, (operation) => operation.namespace)) {
      const inner = groups(own, (operation) => operation.tags[0] ?? "");
      const isPlain = inner.size === 1 && inner.has("");
      parts.push(el("h2", {}, namespace || "Operations"));
      for (const [tag, all] of inner) {
        const rows = all.map((operation) => this.#row(operation));
        const group = el(
          "div",
          { class: "group" },
          !isPlain && el("h3", {}, tag || "without a tag"),
          el(
            "ul",
            {},
            rows.map(({ element }) => element),
          ),
        );
        this.#groups.push({ element: group, rows });
        parts.push(group);
      }
    }
    this.elements.list.replaceChildren(...parts);
    this.filter();
  }

  #row(operation) {
    const { id, name, kind, method, path, summary, description, tags, deprecated } = operation;
    const about = summary || firstLine(description);
    const anchor = el(
      "a",
      { href: `#${encodeURIComponent(id)}`, class: deprecated ? "deprecated" : null },
      el("span", { class: "name" }, code(name)),
      el("span", { class: `kind ${kind}` }, kind),
      el("span", { class: "about" }, about || `${method} ${path}`),
    );
    const element = el("li", {}, anchor);
    const text = `${id} ${method} ${path} ${tags.join(" ")} ${kind} ${about}`.toLowerCase();
    const row = { id, anchor, element, text };
    this.#rows.push(row);
    return row;
  }

  /** Shows the rows that have all words of the search. */
  filter() {
    const words = this.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { element, rows } of this.#groups) {
      let shown = 0;
      for (const row of rows) {
        const isShown = words.every((word) => row.text.includes(word));
        row.element.hidden = !isShown;
        shown += isShown;
      }
      element.hidden = shown === 0;
      count += shown;
    }
    const all = this.#rows.length.toLocaleString("en");
    this.elements.count.textContent = words.length
      ? `${count.toLocaleString("en")} of ${all} operations`
      : `${all} operations`;
  }

  /** Marks the operation that is shown. */
  mark(id) {
    for (const row of this.#rows) {
      if (row.id === id) {
        row.anchor.setAttribute("aria-current", "true");
        row.anchor.scrollIntoView({ block: "nearest" });
      } else row.anchor.removeAttribute("aria-current");
    }
  }

  /** Opens an operation here; with a key of the browser's own, its link opens elsewhere. */
  #onClick(event) {
    const row = this.#rows.find(({ anchor }) => anchor.contains(event.target));
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.open(row.id);
  }

  #shown() {
    return this.#rows.filter((row) => !row.element.hidden);
  }

  #onSearchKey(event) {
    const [first] = this.#shown();
    if (event.key === "ArrowDown" && first) first.anchor.focus();
    else if (event.key === "Enter" && first) this.open(first.id);
    else if (event.key === "Escape" && this.elements.search.value) {
      this.elements.search.value = "";
      this.filter();
    } else return;
    event.preventDefault();
  }

  #onListKey(event) {
    const shown = this.#shown();
    const at = shown.findIndex((row) => row.anchor === document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    if (next < 0) this.elements.search.focus();
    else shown[Math.min(next, shown.length - 1)].anchor.focus();
  }
}

/** Things by what they have in common, in the order in which each comes first. */
function groups(all, of) {
  const groups = new Map();
  for (const one of all) {
    const key = of(one);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  return groups;
}
