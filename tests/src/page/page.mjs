// The page itself: what it loads and how fast, credentials, streams, a hostile document, how it looks.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { AXE, block, field, open, send, show, texts } from "./harness.mjs";

const WIDTHS = [360, 768, 1280];

/** The files of the page, as a client gets them. */
export async function files({ urls }) {
  const page = await fetch(`${urls.sample}/docs`);
  assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(page.headers.get("cache-control"), "no-cache");
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  assert.equal(
    page.headers.get("content-security-policy"),
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
      "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  );
  for (const path of ["/docs", "/docs/main.js"]) {
    const tag = (await fetch(urls.sample + path)).headers.get("etag");
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      const again = await fetch(urls.sample + path, { headers: { "if-none-match": known } });
      assert.deepEqual([again.status, await again.text(), again.headers.get("etag")], [304, "", tag], `${path} ${known}`);
    }
  }
  const other = await fetch(`${urls.sample}/docs/main.js`, { headers: { "if-none-match": '"x"' } });
  assert.deepEqual([other.status, other.headers.get("content-type")], [200, "text/javascript; charset=utf-8"]);
  const slash = await fetch(`${urls.nested}/docs/`, { redirect: "manual" });
  assert.deepEqual([slash.status, slash.headers.get("location")], [308, "../docs"]);
  for (const path of ["/docs/page.html", "/docs/nothing.js", "/docs/main.js/"]) {
    assert.equal((await fetch(urls.sample + path)).status, 404, path);
  }
  const posted = await fetch(`${urls.sample}/docs`, { method: "POST" });
  assert.deepEqual([posted.status, posted.headers.get("allow")], [405, "GET, HEAD"]);
}

/** First paint, the list, and the bytes, of 40 operations and of a large document. */
export async function speed({ browser, urls, room }) {
  for (const [name, most] of [
    ["sample", 1_000],
    ["large", 2_000],
  ]) {
    if (!urls[name]) {
      console.log("  without OPS_SPECS there is no large document");
      continue;
    }
    // The server makes its document once.
    const count = Object.keys((await (await fetch(`${urls[name]}/openapi.json`)).json()).paths).length;
    const page = await open(browser, `${urls[name]}/docs`);
    const { paint, list, bytes, operations } = await page.evaluate(async () => {
      // A paint is told when it is on the screen, which may be after the list is in the page.
      const paint = await new Promise((resolve, reject) => {
        setTimeout(() => reject(new Error("no paint is told")), 30_000);
        const told = (entries) => {
          const [first] = entries.getEntriesByName("first-contentful-paint");
          if (first) resolve(first.startTime);
        };
        new PerformanceObserver(told).observe({ type: "paint", buffered: true });
      });
      const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
      const own = loaded.filter(({ name }) => /\/docs(\/|$)/.test(new URL(name).pathname));
      return {
        paint,
        list: performance.getEntriesByName("ops-list")[0].startTime,
        bytes: own.reduce((sum, { transferSize }) => sum + transferSize, 0),
        operations: document.querySelectorAll("#list a").length,
      };
    });
    console.log(
      `  ${operations} operations at ${count} paths: first paint after ${Math.round(paint)} ms, the list after ${Math.round(list)} ms, ${bytes} bytes`,
    );
    assert.ok(paint < room * most, `first paint after ${paint} ms`);
    assert.ok(list < room * most, `the list after ${list} ms`);
    assert.ok(bytes > 10_000 && bytes < 300_000, `${bytes} bytes`);
    await page.seal();
  }
}

/** Every operation of a large document is shown. */
export async function every({ browser, urls, room }) {
  if (!urls.large) return console.log("  without OPS_SPECS there is no large document");
  const page = await open(browser, `${urls.large}/docs`);
  const slowest = await page.evaluate(async () => {
    let slowest = 0;
    for (const anchor of document.querySelectorAll("#list a")) {
      const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
      const began = performance.now();
      location.hash = anchor.hash;
      await changed;
      slowest = Math.max(slowest, performance.now() - began);
      const shown = document.querySelector("article h2").textContent;
      if (shown !== decodeURIComponent(anchor.hash.slice(1))) throw new Error(`${shown} for ${anchor.hash}`);
    }
    return slowest;
  });
  console.log(`  the slowest operation is shown after ${Math.round(slowest)} ms`);
  assert.ok(slowest < room * 1_000);
  await page.seal();
}

/** Below a prefix, the page finds its files, its document and its operations. */
export async function prefix({ browser, urls }) {
  const page = await open(browser, `${urls.nested}/docs/#till.hours`);
  assert.equal(page.url(), `${urls.nested}/docs#till.hours`);
  const request = await send(page);
  assert.equal(request.url(), `${urls.nested}/operations/till/hours`);
  await block(page, "Data").waitFor();
  await page.seal();
}

/** Credentials are sent where the document asks for them, and are gone when the reader does not keep them. */
export async function credentials({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs#shop.listOrders`);
  let request = await send(page);
  assert.equal(request.headers().authorization, undefined);
  assert.match(await page.textContent(".status"), /^401 /);
  const enter = async (label, value, isKept) => {
    await page.click("#credentials");
    await page.getByLabel(label).fill(value);
    await page.getByLabel("Keep them").setChecked(isKept);
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
  };
  await enter("token: bearer token", "t0ken", false);
  request = await send(page);
  assert.equal(request.headers().authorization, "Bearer t0ken");
  await block(page, "Data").waitFor();
  assert.deepEqual(JSON.parse(await block(page, "Data").locator("pre").textContent()), ["ann"]);
  // Another operation does not ask for them.
  await show(page, "till.hours");
  request = await send(page);
  assert.equal(request.headers().authorization, undefined);
  const stored = () =>
    page.evaluate(() => [JSON.stringify({ ...sessionStorage }), localStorage.length, document.cookie]);
  assert.deepEqual(await stored(), ["{}", 0, ""]);
  await page.reload();
  await show(page, "shop.listOrders");
  request = await send(page);
  assert.equal(request.headers().authorization, undefined);
  // The other way to authenticate, kept for the tab.
  await enter("key: key, in the header", "k3y", true);
  await page.reload();
  await show(page, "shop.listOrders");
  request = await send(page);
  assert.equal(request.headers()["x-shop-key"], "k3y");
  assert.match((await stored())[0], /k3y/);
  await page.click("#credentials");
  await page.getByText("Forget all").click();
  assert.deepEqual(await stored(), ["{}", 0, ""]);
  request = await send(page);
  assert.equal(request.headers()["x-shop-key"], undefined);
  await page.seal();
}

/** A subscription is followed, stopped, and followed on from where it stopped. */
export async function stream({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs#till.ticks`);
  // The page keeps 200 items. So many take 40 seconds, so the first one is there still when a busy browser stops.
  await field(page, "milliseconds").fill("200");
  await send(page);
  await page.waitForFunction(() => document.querySelectorAll(".live li").length >= 3);
  await page.getByText("Stop", { exact: true }).click();
  await page.getByText("You stopped it after").waitFor();
  const seen = await page.locator(".live li pre").allTextContents();
  assert.deepEqual(
    seen,
    seen.map((_, at) => String(seen.length - at)),
  );
  await page.waitForTimeout(1_000);
  assert.equal(await page.locator(".live li").count(), seen.length);
  const sent = page.waitForRequest((request) => request.headers()["last-event-id"] !== undefined);
  await page.getByText("Follow on from").click();
  assert.equal((await sent).headers()["last-event-id"], String(seen.length));
  await page.waitForFunction(() => document.querySelectorAll(".live li").length >= 1);
  assert.equal(await page.locator(".live li pre").last().textContent(), String(seen.length + 1));
  // Another operation ends it, and so does what is wrong with the input.
  await show(page, "till.hours");
  await show(page, "till.ticks");
  await field(page, "milliseconds").fill("0");
  await send(page);
  assert.match(await page.textContent(".status"), /^422 /);
  await page.selectOption("label:has-text('Response as') select", "application/x-ndjson");
  await field(page, "milliseconds").fill("20");
  await send(page);
  await page.waitForFunction(() => document.querySelectorAll(".live li").length >= 2);
  await page.seal();
}

/** Names and descriptions are texts, whatever they hold, and a long or endless document is no burden. */
export async function hostile({ browser, urls, room }) {
  const page = await open(browser, `${urls.hostile}/docs`);
  const hashes = await page.$$eval("#list a", (all) => all.map((anchor) => anchor.hash));
  assert.equal(hashes.length, 3);
  const own = await page.evaluate(
    () => document.querySelectorAll("script, img, iframe, svg, [onerror], [onload], [onfocus]").length,
  );
  assert.equal(own, 1);
  for (const hash of hashes) {
    const began = Date.now();
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.waitForFunction(
      (hash) => document.querySelector("article h2")?.textContent === decodeURIComponent(hash.slice(1)),
      hash,
    );
    // All that opens is opened, twice.
    for (let round = 0; round < 2; round += 1) {
      await page.evaluate(() =>
        document.querySelectorAll("details:not([open]) > summary").forEach((summary) => summary.click()),
      );
      await page.evaluate(() =>
        [...document.querySelectorAll("form button[type=button]")].slice(0, 20).forEach((button) => button.click()),
      );
      await page.waitForTimeout(100);
    }
    assert.ok(Date.now() - began < room * 10_000, `${hash} takes ${Date.now() - began} ms`);
    const made = await page.evaluate(() => ({
      scripts: document.querySelectorAll("script, img, iframe, svg, [onerror], [onload], [onfocus], [style]").length,
      links: [...document.querySelectorAll("a")]
        .map((anchor) => anchor.protocol)
        .filter((protocol) => !/^https?:$/.test(protocol)),
      prototype: Object.keys(Object.prototype).length,
    }));
    assert.deepEqual(made, { scripts: 1, links: [], prototype: 0 });
  }
  await page.evaluate((hash) => (location.hash = hash), hashes[0]);
  // A value is one segment of the path, whatever is in it.
  await page.locator("form select").first().selectOption({ label: "a/../../b?c#d" });
  const request = await send(page);
  assert.equal(request.url(), `${urls.hostile}/%3Cimg%20src=x%20onerror=alert(3)%3E/a%2F..%2F..%2Fb%3Fc%23d`);
  await page.seal();
}

/** What a document says is a word of a call that is copied to a shell, and never code. */
export async function copied({ browser, urls }) {
  const page = await open(browser, `${urls.hostile}/docs`);
  await show(page, "<img src=x onerror=alert(0)>.it's $(id)");
  await page.click("#credentials");
  for (const name of ["head", "queryKey"]) await page.getByLabel(`${name}: key`).fill("k3y");
  await page.getByLabel("A header of every request: its name").fill("X-It's");
  await page.getByText("Use them").click();
  await field(page, "file").selectOption({ label: "@/etc/passwd" });
  await page.getByText("The same call by").click();
  const [curl, , ops] = await texts(page);
  const words = (text) => {
    const print = `printf '%s\\n' "$OPS_HEAD" "$OPS_QUERY_KEY" "$OPS_API_KEY" "$@"`;
    const env = { PATH: process.env.PATH, API_KEY: "$(id)", VALUE: "`id`" };
    const script = `curl() { ${print}; }; ops() { ${print}; }; ${text}`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8", env }).trimEnd().split("\n");
  };
  const [header, own] = ["X-$(id)`id`\"'!: $(id)", "X-It's: `id`"];
  const accept = "Accept: application/vnd.ops.envelope+json, */*;q=0.1";
  const url = `${urls.hostile}/keys?file=%40%2Fetc%2Fpasswd&%24%28id%29=API_KEY`;
  assert.deepEqual(words(curl), ["", "", "", "-X", "`id`", url, "-H", accept, "-H", header, "-H", own]);
  // There is no option for a key in the query: each key is in a variable for its scheme alone.
  const called = ["call", `${urls.hostile}/openapi.json`, "it's $(id)", "--input", '{"file":"@/etc/passwd"}'];
  const keys = ["--header", own, "--credentials-env", "OPS"];
  assert.deepEqual(words(ops), ["$(id)", "$(id)", "", ...called, ...keys]);
  await page.seal();
}

/** Pictures at three widths, in the light and the dark; nothing is wider than the window; the rules of WCAG. */
export async function looks({ browser, urls, folder }) {
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      const page = await open(browser, `${urls.sample}/docs`, { colorScheme, viewport: { width, height: 800 } });
      const take = async (name) => {
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${name} is ${wide} too wide at ${width}`);
        await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png` });
        const found = await page.evaluate(
          `${AXE}; axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`,
        );
        const broken = found.violations.map(
          ({ id, nodes }) =>
            `${id}: ${nodes
              .map(({ html }) => html.slice(0, 200))
              .slice(0, 3)
              .join(" ")}`,
        );
        assert.deepEqual(broken, [], `${name} at ${width} in the ${colorScheme}`);
      };
      await take("list");
      await show(page, "shop.addPet");
      await field(page, "name").fill("Rex");
      await field(page, "kind").selectOption({ label: "dog" });
      await page.locator("fieldset", { hasText: "owner" }).getByText("Add it").first().click();
      await page.getByText("Add an item").first().click();
      await take("form");
      await page.locator("#detail").evaluate((element) => element.scrollTo(0, 700));
      await take("form-below");
      await show(page, "shop.showPet");
      await field(page, "petId").fill("7");
      await send(page);
      await block(page, "Data").waitFor();
      await take("envelope");
      await page.evaluate(() =>
        document
          .querySelectorAll("article > section details > summary, article > details > summary")
          .forEach((summary) => summary.click()),
      );
      await page.locator(".code").scrollIntoViewIfNeeded();
      await page.waitForTimeout(300);
      await take("code");
      await show(page, "till.with_tax");
      await field(page, "price").fill("-5");
      await field(page, "percent").fill("much");
      await send(page);
      await page.waitForSelector(".violations");
      await take("violations");
      await show(page, "till.ticks");
      await send(page);
      await page.waitForFunction(() => document.querySelectorAll(".live li").length >= 3);
      await page.getByText("Stop", { exact: true }).click();
      await take("stream");
      await page.click("#credentials");
      await take("credentials");
      await page.keyboard.press("Escape");
      await page.seal();
    }
  }
}
