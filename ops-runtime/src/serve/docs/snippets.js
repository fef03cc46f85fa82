// The same call for a shell, for Rust, and for the command `ops`. Secrets are named, not shown.

import { isObject, plain, pretty } from "./json.js";

/** A word for a shell. */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A header whose value ends with a variable, which the shell replaces. The name is the document's: in double quotes, it
 * could be code.
 */
function filled([name, value]) {
  const [text, variable] = `${name}: ${value}`.split(/(\$\w+)$/);
  return `${quoted(text)}"${variable}"`;
}

/** A value of `-F` for curl, which would end it at a comma or a semicolon without quotes. */
function formValue(text) {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** The call for `curl`. `secrets` are headers with a variable in place of the secret. */
export function curl(url, request, secrets, streams) {
  const lines = [
    `curl ${streams ? "-N " : ""}${request.method === "GET" ? "" : request.method === "HEAD" ? "-I " : `-X ${quoted(request.method)} `}${quoted(url)}`,
  ];
  // In a URL these are patterns of curl's own.
  if (/[[\]{}]/.test(url)) lines.push("-g");
  request.headers.forEach(([name, value]) =>
    lines.push(`-H ${quoted(value === "" ? `${name};` : `${name}: ${value}`)}`),
  );
  request.cookies.forEach(([name, value]) => lines.push(`-b ${quoted(`${name}=${value}`)}`));
  secrets.forEach((secret) => lines.push(`-H ${filled(secret)}`));
  if (request.parts) {
    for (const [name, value, type] of request.parts) {
      if (value instanceof File) lines.push(`-F ${quoted(`${name}=@${formValue(value.name)}`)}`);
      else if (isObject(value))
        lines.push(`-F ${quoted(`${name}=${formValue(JSON.stringify(value))};type=${type ?? "application/json"}`)}`);
      else lines.push(`--form-string ${quoted(`${name}=${plain(value)}`)}`);
    }
  } else if (request.body instanceof File) lines.push(`--data-binary ${quoted(`@${request.body.name}`)}`);
  else if (request.body !== undefined) lines.push(`--data-raw ${quoted(request.body)}`);
  return lines.join(" \\\n  ");
}

/** The call for Rust, by a client of this document. */
export function rust(document, operation, input, names) {
  const { bearer, header, query } = names;
  const namespace = operation.namespace || "api";
  const auths = [
    bearer && 'bearer(std::env::var("TOKEN")?)',
    query.length && 'api_key(std::env::var("API_KEY")?)',
  ].filter(Boolean);
  const auth = auths.map((how) => `\n    .with_auth(Auth::${how})`).join("");
  const own = header
    .map(([name, value]) => `\n    .with_header(${literal(name)}, std::env::var(${literal(value.slice(1))})?)`)
    .join("");
  const uses = `use ops_runtime::${auths.length ? "http::{Auth, HttpConfig}" : "http::HttpConfig"};`;
  const call = operation.kind === "subscription" ? "let mut items = registry.stream" : "let envelope = registry.call";
  return `${uses}
use ops_runtime::{Registry, openapi};

let config = HttpConfig::new().with_namespace(${literal(namespace)})${auth}${own};
let operations = openapi::from_openapi_url(${literal(document)}, config).await?;
let registry = Registry::new();
registry.register_all(operations)?;
${call}(${literal(`${namespace}.${operation.operationId}`)}, ${rustJson(input)}).await?;`;
}

/** A string literal of Rust. */
function literal(text) {
  const escaped = text.replace(/[\\"]/g, "\\$&").replace(/[\p{C}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return `"${escaped}"`;
}

/** A value for `serde_json::json!`, whose strings are those of Rust. */
function rustJson(value) {
  return `serde_json::json!(${rustValue(value, "")})`;
}

function rustValue(value, indent) {
  const inner = `${indent}    `;
  if (typeof value === "string") return literal(value);
  if (Array.isArray(value)) return value.length ? `[${value.map((item) => rustValue(item, indent)).join(", ")}]` : "[]";
  if (!isObject(value)) {
    const text = pretty(value);
    // An integer of Rust has 32 bits unless it says otherwise.
    return /^-?\d{10,}$/.test(text) ? `${text}_${/^\d{19,}$/.test(text) ? "u64" : "i64"}` : text;
  }
  const members = Object.entries(value).map(([name, item]) => `${literal(name)}: ${rustValue(item, inner)}`);
  const line = `{ ${members.join(", ")} }`;
  if (!members.length) return "{}";
  return line.length < 80 && !line.includes("\n")
    ? line
    : `{\n${members.map((member) => `${inner}${member},\n`).join("")}${indent}}`;
}

/** The call for the command `ops`. */
export function ops(document, { operationId, method, path }, input, names) {
  // A name that begins with a hyphen would be an option.
  const called = operationId.startsWith("-") ? `${method} ${path}` : operationId;
  const lines = [`ops call ${quoted(document)} ${quoted(called)}`];
  const pairs = [];
  const rest = {};
  for (const [name, value] of Object.entries(input)) collect(name, value, pairs, rest, [name]);
  pairs.forEach(([path, value]) => lines.push(quoted(`${path}=${value}`)));
  if (Object.keys(rest).length) lines.push(`--input ${quoted(JSON.stringify(rest))}`);
  if (names.bearer) lines.push("--bearer-env TOKEN");
  // There is no option for a pair of the query. The command reads such a key from a variable, and the document says where it
  // goes. Keys in headers are then in variables, too: the command sends none unless it knows all that the operation needs.
  const schemes = names.query.length ? [...names.query, ...names.header].map(([, , scheme]) => scheme) : [];
  const keys = schemes.filter((scheme) => scheme !== undefined);
  names.header
    .filter(([, , scheme]) => !keys.includes(scheme))
    .forEach((secret) => lines.push(`--header ${filled(secret)}`));
  if (keys.length) {
    lines[0] = [...keys.map((scheme) => `${variable(scheme)}="$API_KEY"`), lines[0]].join(" ");
    lines.push("--credentials-env OPS");
  }
  const line = lines.join(" ");
  return line.length < 100 ? line : lines.join(" \\\n  ");
}

/** The variable that the command reads for a scheme: `shopKey` is `OPS_SHOP_KEY`, so that no other scheme has its key. */
function variable(scheme) {
  const words = scheme.replace(/([a-z\d])(?=[A-Z])/g, "$1 ").match(/[A-Za-z\d]+/g);
  return `OPS_${words?.join("_").toUpperCase() ?? "API_KEY"}`;
}

/** Scalars are pairs `NAME=VALUE`; all else, and what could be read as something else, is JSON. */
function collect(name, value, pairs, rest, path) {
  if (isPair(path.at(-1), value)) pairs.push([path.join("."), plain(value)]);
  else if (
    path.length === 1 &&
    isObject(value) &&
    Object.keys(value).length &&
    Object.entries(value).every(([inner, item]) => isPair(inner, item))
  ) {
    Object.entries(value).forEach(([inner, item]) => collect(inner, item, pairs, rest, [...path, inner]));
  } else rest[name] = value;
}

/** True if a member can be a pair. A value that begins with `@` would be the name of a file. */
function isPair(name, value) {
  const isText = typeof value === "string" && value.trim() !== "" && !value.startsWith("@");
  return /^[A-Za-z_][\w-]*$/.test(name) && (typeof value === "boolean" || typeof value === "number" || isText);
}
