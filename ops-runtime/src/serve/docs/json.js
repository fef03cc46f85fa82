// JSON whose numbers stay as they were written: 2^53 + 1 is not 2^53.

/** A number as it is written, where a double would be written otherwise. */
function exact(source) {
  const number = Number(source);
  return String(number) === source || !JSON.rawJSON ? number : JSON.rawJSON(source);
}

/** The value of a JSON text. Throws a `SyntaxError` if it is none. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context?.source ? exact(context.source) : value,
  );
}

/** The value of a number's text; `undefined` if it is none. */
export function number(text) {
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? exact(text) : undefined;
}

/** The JSON text of a value, on lines of its own. */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

/** A scalar as text: that of a string without quotes. */
export function plain(value) {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** True for an object that is no list, and not null. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRaw(value);
}

export function isRaw(value) {
  return typeof value === "object" && value !== null && Boolean(JSON.isRawJSON?.(value));
}
