// From the values of a form to a request: each parameter by its style, the body by its content type.

import { isObject, plain } from "./json.js";

/** The characters that `allowReserved` leaves as they are (RFC 3986, section 2.2), but for those that end a query. */
const RESERVED = /%(3A|2F|3F|5B|5D|40|21|24|27|28|29|2A|2C|3B)/gi;

/** A text in a URL. `encodeURIComponent` leaves `!'()*`, and throws for half of a pair of surrogates. */
function escaped(text, allowReserved = false) {
  const whole = encodeURIComponent(String(text).toWellFormed?.() ?? text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return allowReserved ? whole.replace(RESERVED, decodeURIComponent) : whole;
}

/**
 * The request for an operation.
 *
 * `parameters` are pairs of a parameter and its value, `body` is `{ type, value, encoding }` or nothing, `headers` are more
 * headers. The page itself can't send `cookies`.
 */
export function request(base, operation, parameters, body, headers) {
  const out = { method: operation.method, url: "", headers: [], body: undefined, parts: null, cookies: [] };
  const query = [];
  let path = operation.path;
  for (const [parameter, value] of parameters) {
    const { name } = parameter;
    if (parameter.in === "path") path = path.replaceAll(`{${name}}`, () => inPath(parameter, value));
    else if (parameter.in === "query") query.push(...inQuery(parameter, value));
    else if (parameter.in === "querystring") query.push(typeof value === "string" ? value : formText(value));
    else if (parameter.in === "header") out.headers.push([name, simple(parameter, value, plain)]);
    else out.cookies.push(...inQuery(parameter, value).map((pair) => pair.split("=", 2)));
  }
  const text = query.filter(Boolean).join("&");
  out.url = base + path + (text ? (path.includes("?") ? "&" : "?") + text : "");
  out.headers.push(...headers);
  if (body && body.value !== undefined) write(out, body);
  return out;
}

/** The query of credentials that are sent in it. */
export function withQuery(url, pairs) {
  const text = pairs.map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join("&");
  return text ? `${url}${url.includes("?") ? "&" : "?"}${text}` : url;
}

function entries(value) {
  return Object.entries(value).filter(([, inner]) => inner !== undefined);
}

/** A value in the style `simple` (OpenAPI 3.1, section 4.8.12.3), for paths and headers. */
function simple({ explode, content }, value, encode) {
  if (content) return encode(JSON.stringify(value));
  if (Array.isArray(value)) return value.map((item) => encode(plain(item))).join(",");
  if (!isObject(value)) return encode(plain(value));
  return entries(value)
    .map(([name, inner]) => `${encode(name)}${explode ? "=" : ","}${encode(plain(inner))}`)
    .join(",");
}

function inPath(parameter, value) {
  const encode = (text) => escaped(text, parameter.allowReserved === true);
  const { name, style, explode } = parameter;
  if (style !== "label" && style !== "matrix") return simple(parameter, value, encode);
  const isLabel = style === "label";
  const key = encode(name);
  if (Array.isArray(value)) {
    const items = value.map((item) => encode(plain(item)));
    if (isLabel) return `.${items.join(explode ? "." : ",")}`;
    return explode ? items.map((item) => `;${key}=${item}`).join("") : `;${key}=${items.join(",")}`;
  }
  if (isObject(value)) {
    const sign = explode ? "=" : ",";
    const pairs = entries(value).map(([inner, item]) => `${encode(inner)}${sign}${encode(plain(item))}`);
    if (isLabel) return `.${pairs.join(explode ? "." : ",")}`;
    return explode ? pairs.map((pair) => `;${pair}`).join("") : `;${key}=${pairs.join(",")}`;
  }
  return isLabel ? `.${encode(plain(value))}` : `;${key}=${encode(plain(value))}`;
}

/** The pairs of a parameter of the query. */
function inQuery({ name, content, style = "form", explode = style === "form", allowReserved }, value) {
  const encode = (text) => escaped(text, allowReserved === true);
  const pair = (key, text) => `${escaped(key)}=${text}`;
  if (content) return [pair(name, encode(JSON.stringify(value)))];
  if (style === "deepObject" && typeof value === "object" && value !== null) return deep(name, value, encode, pair);
  const delimiter = { spaceDelimited: "%20", pipeDelimited: "%7C" }[style] ?? ",";
  if (Array.isArray(value)) {
    const items = value.map((item) => encode(plain(item)));
    return explode ? items.map((item) => pair(name, item)) : [pair(name, items.join(delimiter))];
  }
  if (isObject(value)) {
    if (explode) return entries(value).map(([inner, item]) => pair(inner, encode(plain(item))));
    return [
      pair(
        name,
        entries(value)
          .flatMap(([inner, item]) => [encode(inner), encode(plain(item))])
          .join(delimiter),
      ),
    ];
  }
  return [pair(name, encode(plain(value)))];
}

function deep(name, value, encode, pair) {
  return entries(value).flatMap(([inner, item]) => {
    const key = `${name}[${inner}]`;
    if (Array.isArray(item) && item.every((one) => typeof one !== "object"))
      return item.map((one) => pair(key, encode(plain(one))));
    return typeof item === "object" && item !== null && (isObject(item) || Array.isArray(item))
      ? deep(key, item, encode, pair)
      : [pair(key, encode(plain(item)))];
  });
}

/** An object as a form in a text (`application/x-www-form-urlencoded`). */
function formText(value, encoding = {}) {
  if (!isObject(value)) return plain(value);
  return entries(value)
    .flatMap(([name, inner]) => inQuery({ name, ...encoding[name] }, inner))
    .join("&");
}

/** What a content type's bodies are made of. */
export function kindOf(type) {
  const essence = type.split(";", 1)[0].trim().toLowerCase();
  if (essence === "application/json" || essence.endsWith("+json") || essence === "*/*") return "json";
  if (essence === "multipart/form-data") return "multipart";
  if (essence === "application/x-www-form-urlencoded") return "form";
  if (essence.startsWith("text/") || essence === "application/xml" || essence.endsWith("+xml")) return "text";
  if (/ndjson|jsonl|json-seq/.test(essence)) return "text";
  return "bytes";
}

function write(out, { type, value, encoding }) {
  const kind = kindOf(type);
  if (kind === "multipart") {
    // The browser writes the boundary, and with it the content type.
    out.parts = entries(value).flatMap(([name, inner]) =>
      (Array.isArray(inner) ? inner : [inner]).map((part) => [name, part, encoding?.[name]?.contentType]),
    );
    const form = new FormData();
    for (const [name, part, own] of out.parts) {
      if (part instanceof File) form.append(name, part);
      else if (isObject(part)) form.append(name, new Blob([JSON.stringify(part)], { type: own ?? "application/json" }));
      else form.append(name, plain(part));
    }
    out.body = form;
    return;
  }
  out.headers.push(["Content-Type", type === "*/*" ? "application/json" : type]);
  if (kind === "json") out.body = JSON.stringify(value);
  else if (kind === "form") out.body = formText(value, encoding);
  else out.body = value instanceof File ? value : plain(value);
}
