// Descriptions. They are Markdown as a rule: paragraphs, lists, code and links become elements, all else stays text.

import { cut, el, link } from "./dom.js";

/** So much of a description is shown at first. */
const MOST = 6000;

/** What stands inside of a paragraph: code, emphasis, links. Each alternative matches in linear time. */
const INLINE =
  /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\[([^\][\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()"']+[^\s<>()"'.,;:!?])/g;

/** A description as elements. */
export function prose(text) {
  if (typeof text !== "string" || !text.trim()) return null;
  return el(
    "div",
    { class: "prose" },
    cut(text, MOST, (start) => el("div", {}, blocks(start))),
  );
}

/** The first sentence of a description, as text. */
export function firstLine(text) {
  const line = typeof text === "string" ? text.trim().split("\n", 1)[0].slice(0, 300) : "";
  return line.replaceAll("`", "").replace(/\*\*/g, "");
}

function blocks(text) {
  const out = [];
  let paragraph = [];
  let list = null;
  let fence = null;
  const flush = () => {
    if (paragraph.length) out.push(el("p", {}, inline(paragraph.join(" "))));
    paragraph = [];
  };
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(```|~~~)/.test(line)) {
      flush();
      list = null;
      if (fence) out.push(el("pre", {}, fence.join("\n")));
      fence = fence ? null : [];
      continue;
    }
    if (fence) {
      fence.push(line);
      continue;
    }
    const item = /^\s*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    if (item) {
      flush();
      if (!list) out.push((list = el("ul")));
      list.append(el("li", {}, inline(item[1])));
    } else if (heading) {
      flush();
      list = null;
      out.push(el("p", { class: "strong" }, inline(heading[1])));
    } else if (!line.trim()) {
      flush();
      list = null;
    } else if (list && /^\s/.test(line)) {
      list.lastElementChild.append(" ", ...inline(line.trim()));
    } else {
      list = null;
      paragraph.push(line.trim());
    }
  }
  if (fence) out.push(el("pre", {}, fence.join("\n")));
  flush();
  return out;
}

function inline(text) {
  const out = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    out.push(text.slice(end, match.index));
    end = match.index + match[0].length;
    const [whole, code, strong, label, address, bare] = match;
    if (code !== undefined) out.push(el("code", {}, code));
    else if (strong !== undefined) out.push(el("strong", {}, inline(strong)));
    else if (address !== undefined) out.push(link(label, address));
    else out.push(link(bare ?? whole, bare ?? whole));
  }
  out.push(text.slice(end));
  return out;
}
