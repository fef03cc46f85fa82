// Schemas in words, and as trees that open on demand.

import { list } from "./document.js";
import { code, el, lazy } from "./dom.js";
import { isObject, plain } from "./json.js";
import { prose } from "./prose.js";

/** So many of the values of an `enum` are named. */
const VALUES = 12;

/** So many schemas of `allOf` are merged into one. */
const MERGED = 500;

/** Lists of lists are looked into so deeply. */
const LISTS = 6;

/** So many properties of an object are shown at first. */
const PROPERTIES = 200;

/**
 * A schema with its references followed, and the members of `allOf` in one: `types` without `null`, `nullable`,
 * `properties`, `required`, `variants` of `oneOf` and `anyOf`, and the other keywords in `node`.
 */
export function view(document, schema, budget = { left: MERGED }) {
  if (schema === false) return { ...view(document, {}), never: true };
  budget.left -= 1;
  const node = document.resolve(schema);
  const name = /^#\/(?:components\/schemas|\$defs)\/([^/]+)$/.exec(schema?.$ref ?? "")?.[1];
  const out = {
    name: (typeof node.title === "string" ? node.title : decoded(name ?? "")).slice(0, 100),
    types: new Set([node.type].flat().filter((type) => typeof type === "string")),
    nullable: false,
    properties: new Map(Object.entries(isObject(node.properties) ? node.properties : {})),
    required: new Set(list(node.required)),
    variants: list(node.oneOf).length ? list(node.oneOf) : list(node.anyOf),
    items: node.items,
    additional: node.additionalProperties,
    node,
  };
  for (const part of list(node.allOf)) {
    if (budget.left <= 0) break;
    const other = view(document, part, budget);
    other.properties.forEach((schema, name) => out.properties.has(name) || out.properties.set(name, schema));
    other.required.forEach((name) => out.required.add(name));
    if (!out.types.size) out.types = other.types;
    if (!out.variants.length) out.variants = other.variants;
    out.items ??= other.items;
    out.additional ??= other.additional;
    out.nullable ||= other.nullable;
    out.name ||= list(node.allOf).length === 1 ? other.name : "";
    out.node = { ...other.node, ...out.node };
  }
  const isNull = (variant) => document.resolve(variant).type === "null";
  out.nullable ||= out.types.delete("null") || out.variants.some(isNull) || node.nullable === true;
  out.variants = out.variants.filter((variant) => !isNull(variant));
  // One schema or null is that schema.
  if (out.variants.length === 1 && !out.properties.size && budget.left > 0) {
    const single = view(document, out.variants[0], budget);
    return {
      ...single,
      nullable: single.nullable || out.nullable,
      node: { ...single.node, ...without(out.node, ["anyOf", "oneOf"]) },
    };
  }
  if (!out.types.size) {
    if (out.properties.size) out.types.add("object");
    else if (out.items !== undefined) out.types.add("array");
  }
  return out;
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function without(node, names) {
  return Object.fromEntries(Object.entries(node).filter(([name]) => !names.includes(name)));
}

/** The values that a schema lists; `null` if it lists none. */
export function values({ node }) {
  if (Object.hasOwn(node, "const")) return [node.const];
  return Array.isArray(node.enum) ? node.enum : null;
}

/** True if a schema takes bytes that are no text. */
export function isBytes({ node, types }) {
  const media = typeof node.contentMediaType === "string" && !/^text\/|json/.test(node.contentMediaType);
  return (types.has("string") || !types.size) && (node.format === "binary" || (media && !node.contentEncoding));
}

/** What a schema takes, in words: `list of Pet`, `integer (int64), at least 1`. */
export function words(document, own, depth = 0) {
  const { node } = own;
  const listed = values(own);
  let what;
  if (own.never) what = "nothing";
  else if (listed) {
    const shown = listed.slice(0, VALUES).map((value) => JSON.stringify(value).slice(0, 80));
    what = `${shown.join(" | ")}${listed.length > VALUES ? ` and ${listed.length - VALUES} more` : ""}`;
  } else if (isBytes(own)) what = "bytes";
  else if (own.variants.length) {
    const name = (inner) =>
      depth > 1 ? inner.name || [...inner.types].join(" or ") || "a value" : words(document, inner, depth + 1);
    const names = own.variants.slice(0, 6).map((variant) => name(view(document, variant)));
    what = own.name || `${names.join(" or ")}${own.variants.length > 6 ? " or others" : ""}`;
  } else if (own.types.has("array")) {
    const item = own.items === undefined || depth > 6 ? "" : words(document, view(document, own.items), depth + 1);
    what = item && item !== "any value" ? `list of ${item}` : "list";
  } else if (own.types.has("object")) {
    const additional = isObject(own.additional) && !own.properties.size && depth < 6;
    what = own.name || (additional ? `map of ${words(document, view(document, own.additional), depth + 1)}` : "object");
  } else what = [...own.types].join(" or ") || own.name || "any value";
  const format = typeof node.format === "string" && !isBytes(own) ? ` (${node.format})` : "";
  const limits = constraints(node);
  return `${what}${format}${own.nullable ? " or null" : ""}${limits.length ? `, ${limits.join(", ")}` : ""}`;
}

/** The limits of a schema, in words. */
function constraints(node) {
  const out = [];
  const number = (name) => (typeof node[name] === "number" ? node[name] : undefined);
  const say = (name, words, unit = "") => {
    const value = number(name);
    // The limits of 64 bits are more than a double holds; the format names them.
    if (value === undefined || (Math.abs(value) > Number.MAX_SAFE_INTEGER && node.format)) return;
    out.push(`${words} ${value}${unit && ` ${unit}${value === 1 ? "" : "s"}`}`);
  };
  say("minimum", "at least");
  say("exclusiveMinimum", "more than");
  say("maximum", "at most");
  say("exclusiveMaximum", "less than");
  say("multipleOf", "a multiple of");
  say("minLength", "at least", "character");
  say("maxLength", "at most", "character");
  say("minItems", "at least", "item");
  say("maxItems", "at most", "item");
  if (node.uniqueItems === true) out.push("no item twice");
  if (typeof node.pattern === "string") out.push(`matches ${node.pattern.slice(0, 100)}`);
  if (Object.hasOwn(node, "default")) out.push(`default ${plain(node.default).slice(0, 100) || '""'}`);
  return out;
}

/** A schema as a tree: what it takes in words, then its properties, each of which opens when it has some itself. */
export function tree(document, schema) {
  const own = view(document, schema);
  return el("div", { class: "schema" }, el("p", { class: "type" }, words(document, own)), ...parts(document, own));
}

function parts(document, own) {
  const out = [];
  if (own.properties.size) {
    const rows = (entries) => entries.map(([name, schema]) => row(document, name, schema, own.required.has(name)));
    const all = [...own.properties];
    out.push(el("dl", {}, rows(all.slice(0, PROPERTIES))));
    const rest = all.slice(PROPERTIES);
    if (rest.length) out.push(lazy(`${rest.length} more properties`, () => el("dl", {}, rows(rest))));
  }
  for (const variant of own.variants) {
    const inner = view(document, variant);
    out.push(lazy(words(document, inner), () => el("div", { class: "schema" }, ...inside(document, inner))));
  }
  if (own.items !== undefined) {
    const items = view(document, own.items);
    if (hasParts(document, items))
      out.push(lazy("Each item", () => el("div", { class: "schema" }, ...inside(document, items))));
  }
  if (isObject(own.additional) && Object.keys(own.additional).length) {
    out.push(row(document, "other members", own.additional, false));
  }
  return out;
}

function inside(document, own) {
  return [prose(own.node.description), ...parts(document, own)].filter(Boolean);
}

/** True if a schema has more to show than its words. A list has what its items have; lists of lists may have no end. */
function hasParts(document, own, depth = 0) {
  const isPlain = !own.properties.size && !own.variants.length && !isObject(own.additional);
  if (!isPlain || own.items === undefined) return !isPlain;
  return depth < LISTS && hasParts(document, view(document, own.items), depth + 1);
}

function row(document, name, schema, required) {
  const own = view(document, schema);
  const marks = [required && "required", own.node.deprecated && "deprecated", own.node.readOnly && "read only"].filter(
    Boolean,
  );
  return el(
    "div",
    { class: "row" },
    el(
      "dt",
      {},
      code(name),
      " ",
      el("span", { class: "type" }, words(document, own)),
      ...marks.map((mark) => [" ", el("span", { class: `mark ${mark.slice(0, 3)}` }, mark)]).flat(),
    ),
    el(
      "dd",
      {},
      prose(own.node.description),
      hasParts(document, own) && lazy("Its parts", () => el("div", { class: "schema" }, ...parts(document, own))),
    ),
  );
}
