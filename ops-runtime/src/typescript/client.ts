import type { Operations } from "./ops";

/** Calls an operation at an HTTP server of operations. */
export async function call<Id extends keyof Operations>(
  id: Id,
  input: Operations[Id]["input"],
): Promise<Operations[Id] extends { output: infer Output } ? Output : never> {
  const dot = id.indexOf(".");
  const url = ["/operations", id.slice(0, dot), encodeURIComponent(id.slice(dot + 1))].join("/");
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(input ?? {}) });
  if (!response.ok) {
    const problem = await response.json().catch(() => null);
    throw new Error(problem?.detail ?? problem?.title ?? `HTTP ${response.status}`);
  }
  const text = await response.text();
  return JSON.parse(text || "null");
}
