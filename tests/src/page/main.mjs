// `tests/page`: runs the checks whose names are given, else all of them.

import { bodies, envelope, keyboard, snippets, violations } from "./calls.mjs";
import { seen, start } from "./harness.mjs";
import { copied, credentials, every, files, hostile, looks, prefix, speed, stream } from "./page.mjs";

const CHECKS = {
  files,
  speed,
  keyboard,
  envelope,
  violations,
  bodies,
  snippets,
  prefix,
  credentials,
  stream,
  hostile,
  copied,
  every,
  looks,
};

const [program, browserPath, command, folder, ...names] = process.argv.slice(2);
const unknown = names.filter((name) => !CHECKS[name]);
if (unknown.length) {
  console.error(`no such check: ${unknown.join(", ")}; there are ${Object.keys(CHECKS).join(", ")}`);
  process.exit(2);
}
const servers = await start(program, browserPath);
// All of them run beside other tests, which keep the processors busy: what is alone is bounded by its time, and what is not by a
// multiple.
const room = names.length ? 1 : 5;
const failed = [];
for (const name of names.length ? names : Object.keys(CHECKS)) {
  const began = Date.now();
  try {
    await CHECKS[name]({ ...servers, command, folder, room });
    console.log(`${name}: ok, ${Date.now() - began} ms`);
  } catch (error) {
    failed.push(name);
    console.error([`${name}: FAILED`, error.stack, ...seen.faults].join("\n"));
  }
}
await servers.stop();
console.log(failed.length ? `failed: ${failed.join(", ")}` : "the page is as it should be");
process.exitCode = failed.length ? 1 : 0;
