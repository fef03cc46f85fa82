// The items of a response that streams: server-sent events (WHATWG HTML, section 9.2), or JSON on lines.

/** So much of one line is kept: a stream without an end of line must not fill the memory. */
const LINE = 4 << 20;

/** The lines of a body, each without its end: CR LF, LF or CR. */
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let afterReturn = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      // A CR at the end of a part may be half of an end of line.
      rest += afterReturn && value.startsWith("\n") ? value.slice(1) : value;
      if (value) afterReturn = value.endsWith("\r");
      const parts = rest.split(/\r\n|\n|\r/);
      rest = parts.pop();
      yield* parts;
      if (rest.length > LINE) throw new Error("a line of the stream is longer than 4 MiB");
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  if (rest) yield rest;
}

/** The events of a body: `{ type, data, id }`, where `id` is that of the last event that had one. */
export async function* events(body) {
  let event = { type: "", data: [] };
  let id;
  for await (const text of lines(body)) {
    // So a server of ours says that the stream is over where an event would be an item.
    if (text === ": [DONE]") yield { type: "message", data: "[DONE]", id };
    if (text === "") {
      if (event.data.length) yield { type: event.type || "message", data: event.data.join("\n"), id };
      event = { type: "", data: [] };
      continue;
    }
    const colon = text.indexOf(":");
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (name === "data") event.data.push(value);
    else if (name === "event") event.type = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  }
}

/** The items of a body of lines of JSON. */
export async function* records(body) {
  for await (const line of lines(body)) {
    const text = line.replace(/^\x1e/, "");
    if (text.trim()) yield { type: "message", data: text };
  }
}
