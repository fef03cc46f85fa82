// Sends a request, and reads the response.

import { parse } from "./json.js";
import { events, records } from "./stream.js";

/** The response with the data, its origin and its warnings. */
export const ENVELOPE = "application/vnd.ops.envelope+json";

/** A header's value as the browser takes it: each byte of its UTF-8 as a character. */
function bytes(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

/**
 * Sends a request; `cookies` is true if the operation asks for those of the browser.
 *
 * The result has the `status`, the `headers`, the `milliseconds` to the head of the response, and one of `json`, `text`,
 * `blob`, or `items`, which are still to come.
 */
export async function send(request, cookies, signal) {
  const headers = new Headers();
  request.headers.forEach(([name, value]) => headers.append(name, bytes(value)));
  const began = performance.now();
  const response = await fetch(request.url, {
    method: request.method,
    headers,
    body: request.body,
    credentials: cookies ? "same-origin" : "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
    signal,
  });
  const type = response.headers.get("content-type") ?? "";
  const out = {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
    type,
    isEnvelope: essence(type) === ENVELOPE,
    milliseconds: Math.round(performance.now() - began),
  };
  return { ...out, ...(await read(response, essence(type))) };
}

function essence(type) {
  return type.split(";", 1)[0].trim().toLowerCase();
}

async function read(response, type) {
  if (response.ok && response.body && type === "text/event-stream") return { items: events(response.body) };
  if (response.ok && response.body && /ndjson|jsonl|json-seq/.test(type)) return { items: records(response.body) };
  if (type === "application/json" || type.endsWith("+json")) {
    const text = await response.text();
    try {
      return { text, json: parse(text) };
    } catch {
      return { text };
    }
  }
  if (!type || type.startsWith("text/") || type.endsWith("xml")) return { text: await response.text() };
  return { blob: await response.blob() };
}

/** The headers of a request that a page may not set (Fetch, section 2.2.2). */
export function forbidden(request) {
  const probe = new Request(location.href);
  return request.headers
    .map(([name]) => name)
    .filter((name) => {
      try {
        probe.headers.set(name, "x");
        return !probe.headers.has(name);
      } catch {
        return true;
      }
    });
}
