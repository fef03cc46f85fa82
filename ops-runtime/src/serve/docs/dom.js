// Elements. Texts of the document reach the page through this file alone, as text nodes and attribute values.

/**
 * An element. An attribute `onX` is a listener; `true` is an attribute without a value, `null` and `false` are none.
 * A child that is a string is a text, never markup.
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A button that does not submit. */
export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", ...attributes, onclick }, text);
}

/** A link to a page of the web; only its text, if it leads elsewhere (`javascript:`, `data:`). */
export function link(text, address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return text;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return text;
  return el("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, text);
}

/** A part that is made when it is first opened: documents nest deeply, and refer to themselves. */
export function lazy(summary, make, attributes = {}) {
  const details = el("details", attributes, el("summary", {}, summary));
  const fill = () => {
    if (!details.open) return;
    details.removeEventListener("toggle", fill);
    details.append(make());
  };
  details.addEventListener("toggle", fill);
  return details;
}

let ids = 0;

/** An id that no other element has. */
export function freshId() {
  ids += 1;
  return `id${ids}`;
}

/** A text of at most so many characters, with a button for the rest. */
export function cut(text, most, show) {
  if (text.length <= most) return [show(text)];
  const rest = button(`Show all ${text.length.toLocaleString("en")} characters`, () => {
    const whole = el("pre", { class: "whole" }, text);
    rest.replaceWith(whole);
  });
  return [show(text.slice(0, most)), rest];
}

/** A name in code, with places where a line may break. */
export function code(text) {
  const whole = String(text);
  const parts = whole.length < 500 ? whole.split(/(?<=[./_\-{}])/) : [whole];
  return el("code", {}, ...parts.flatMap((part, at) => (at ? [el("wbr"), part] : [part])));
}

/** Puts a text into the clipboard, and says so on the button. */
export function copyButton(text) {
  const own = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text());
        own.textContent = "Copied";
      } catch {
        // Pages of plain HTTP have no clipboard.
        own.textContent = "Select it, and copy";
      }
      setTimeout(() => (own.textContent = "Copy"), 1500);
    },
    { class: "small" },
  );
  return own;
}
