// The servers, the browser, and what a page must never do.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const peers = createRequire(new URL("../../peers/package.json", import.meta.url));
const { chromium } = peers("playwright-core");

/** The rules of WCAG, as a script. */
export const AXE = peers("axe-core").source;

/** What Chromium itself writes of a response that is a failure. */
const STATUS = /^Failed to load resource: the server responded with a status of \d+/;

/** How long the checks wait for anything on a page, in milliseconds. How fast it is, `speed` and `every` check. */
const TIMEOUT = 60_000;

/** What was wrong with the page that was opened last, for the report of a check that fails. */
export const seen = { faults: [] };

/** Starts the servers; ends them with `stop`. */
export async function start(program, browserPath) {
  const server = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await Promise.race([
    once(createInterface({ input: server.stdout }), "line"),
    once(server, "exit").then(() => Promise.reject(new Error("the servers did not start"))),
  ]);
  // As root, Chromium has no sandbox.
  const sandbox = process.getuid() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: browserPath, args: sandbox });
  const stop = async () => {
    await browser.close();
    server.stdin.end();
    await once(server, "exit");
  };
  return { urls: JSON.parse(line), browser, stop };
}

/**
 * A page in a browser of its own, which must not write errors, open dialogs, break its policy, or reach another server.
 * `seal` checks that, and closes it.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT);
  const faults = (seen.faults = []);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !STATUS.test(message.text()))
      faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const own = new URL(request.url());
    if (own.protocol !== "data:" && own.origin !== new URL(url).origin) faults.push(`a request to ${own.origin}`);
  });
  await page.addInitScript(() => {
    globalThis.broken = [];
    addEventListener("securitypolicyviolation", (event) =>
      globalThis.broken.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  page.seal = async () => {
    faults.push(...(await page.evaluate(() => globalThis.broken)).map((what) => `policy: ${what}`));
    assert.deepEqual(faults, []);
    await context.close();
  };
  await page.goto(url);
  await page.waitForSelector("#list a");
  return page;
}

/** Shows an operation by its id. */
export async function show(page, id) {
  await page.evaluate((id) => (location.hash = encodeURIComponent(id)), id);
  await shown(page, id);
}

/** Waits until an operation is shown. */
export async function shown(page, id) {
  await page.waitForFunction((id) => document.querySelector("article h2")?.textContent === id, id);
}

/** Sends what the form has; the request, and the parts of what is shown. */
export async function send(page) {
  const sent = page.waitForRequest((request) => !request.url().includes("/docs"));
  await page.keyboard.press("Control+Enter");
  const request = await sent;
  await page.waitForSelector(".result .status");
  return request;
}

/** The text of the block with a title. */
export function block(page, title) {
  return page.locator(".result .block", { has: page.locator("h4", { hasText: title }) });
}

/** The field with a label. */
export function field(page, name) {
  return page.locator("form").getByLabel(name, { exact: true });
}

/** The texts of the same call, whose part of the page was just opened: they are then written for the form as it is. */
export async function texts(page) {
  await page.waitForFunction(() => document.querySelector(".code pre")?.textContent.startsWith("curl "));
  return page.locator(".code pre").allTextContents();
}
