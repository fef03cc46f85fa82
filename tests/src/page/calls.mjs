// Calls made on the page: what is sent, and what is shown of the response.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { block, field, open, send, show, shown, texts } from "./harness.mjs";

/** From the page to an envelope in three actions, none of them by a mouse: a word, Enter, Ctrl and Enter. */
export async function keyboard({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs`);
  await page.keyboard.type("hours");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".result .status");
  assert.match(await page.textContent(".status"), /^200 OK/);
  assert.deepEqual(JSON.parse(await block(page, "Data").locator("pre").textContent()), ["9 to 12", "14 to 18"]);
  assert.match(await block(page, "Meta").textContent(), /sourcelocal.*operationIdtill\.hours.*timestamp\d{13} \(20/);
  assert.match(await block(page, "Warnings").textContent(), /None/);
  // The list by arrows, and the search from anywhere outside a field.
  await page.keyboard.press("/");
  await page.keyboard.type("pet ");
  assert.equal(await page.textContent("#count"), "7 of 40 operations");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("End");
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await shown(page, "shop.listPets");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H2");
  await page.goBack();
  await shown(page, "till.hours");
  await page.seal();
}

/** Numbers stay as they are written, and repairs are listed. */
export async function envelope({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs#shop.showPet`);
  await field(page, "petId").fill("7");
  const request = await send(page);
  assert.equal(request.url(), `${urls.sample}/pets/7`);
  assert.equal(request.headers().accept, "application/vnd.ops.envelope+json, */*;q=0.1");
  const data = await block(page, "Data").locator("pre").textContent();
  assert.match(data, /"id": 9007199254740993,/);
  assert.match(data, /"price": 120\.5,?\n/);
  assert.match(await block(page, "Warnings").textContent(), /\/price expected number, found string/);
  await page.selectOption("label:has-text('Response as') select", "application/json");
  await send(page);
  await block(page, "Body").waitFor();
  assert.equal(await block(page, "Warnings").count(), 0);
  // A path without its value is not sent.
  await field(page, "petId").fill("");
  await page.keyboard.press("Control+Enter");
  assert.match(await page.textContent("form .error:not([hidden])"), /needs a value/);
  await field(page, "petId").fill("404");
  await send(page);
  await page.waitForSelector(".detail");
  assert.match(await page.textContent(".detail"), /there is no pet 404 NotFound/);
  await page.seal();
}

/** Two violations at once, each at its field, also in lists and in what a form has added. */
export async function violations({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs#till.with_tax`);
  await field(page, "price").fill("-5");
  await field(page, "percent").fill("much");
  const request = await send(page);
  assert.equal(request.postData(), '{"price":-5,"percent":"much"}');
  const errors = () => page.locator("form .error:not([hidden])").allTextContents();
  await page.waitForSelector(".violations");
  assert.equal((await errors()).length, 2);
  for (const name of ["price", "percent"]) assert.equal(await field(page, name).getAttribute("aria-invalid"), "true");
  assert.equal(await field(page, "price").evaluate((input) => input === document.activeElement), true);
  await field(page, "price").fill("100");
  await field(page, "percent").fill("");
  await send(page);
  await block(page, "Data").waitFor();
  assert.deepEqual(await errors(), []);
  assert.equal(await block(page, "Data").locator("pre").textContent(), "119.0");

  // A header and a body, whose names in the input are others, and a body that is the rest of the input.
  for (const [id, values, places, marked] of [
    [
      "till.take_back",
      { id: "7", item: "leash", count: "many", "X-Reason": "x" },
      ["/reason", "/sale/count"],
      ["X-Reason", "count"],
    ],
    ["till.restock", { item: "leash", count: "many" }, ["/count"], ["count"]],
  ]) {
    await show(page, id);
    for (const [name, value] of Object.entries(values)) await field(page, name).fill(value);
    await send(page);
    await page.waitForSelector(".violations");
    assert.deepEqual((await page.locator(".violations .link").allTextContents()).sort(), places);
    for (const name of Object.keys(values)) {
      const isMarked = marked.includes(name) ? "true" : null;
      assert.equal(await field(page, name).getAttribute("aria-invalid"), isMarked, `${id} ${name}`);
    }
  }

  // Items that are left empty do not count.
  await show(page, "shop.listPets");
  const tags = page.locator("fieldset", { hasText: "tags" });
  for (const text of ["", "good", "x"]) {
    await tags.getByText("Add an item").click();
    await tags.getByLabel("item", { exact: true }).last().fill(text);
  }
  await send(page);
  await page.locator(".violations .link", { hasText: "/tags/1" }).waitFor();
  assert.deepEqual(
    await tags
      .getByLabel("item", { exact: true })
      .evaluateAll((all) => all.map((one) => one.getAttribute("aria-invalid"))),
    [null, null, "true"],
  );

  await show(page, "shop.addPet");
  await page.locator("fieldset", { hasText: "owner" }).getByText("Add it").first().click();
  await page.getByText("Add an item").first().click();
  await page.getByLabel("item", { exact: true }).fill("good");
  await page.locator("fieldset", { hasText: "email" }).getByLabel("email").fill("nobody");
  await send(page);
  await page.waitForSelector(".violations");
  const places = await page.locator(".violations .link").allTextContents();
  assert.deepEqual(places.sort(), ["/body/kind", "/body/name", "/body/owner/email", "/body/owner/name"]);
  await page.seal();
}

/** A body by its fields, as JSON, and from the example. */
export async function bodies({ browser, urls }) {
  const page = await open(browser, `${urls.sample}/docs#shop.addPet`);
  const form = page.locator("form");
  await form.getByLabel("name", { exact: true }).fill("Rex");
  await field(page, "kind").selectOption({ label: "fish" });
  await page.locator(".field", { hasText: "born" }).getByLabel("null").check();
  await field(page, "price").fill("9007199254740993");
  await field(page, "chipped").selectOption({ label: "false" });
  await page.locator("fieldset", { hasText: "food" }).locator("select").selectOption("1");
  await page.locator("fieldset", { hasText: "food" }).getByLabel("cans").fill("3");
  await page.locator("fieldset", { hasText: "owner" }).getByText("Add it").first().click();
  await page.locator("fieldset", { hasText: "owner" }).getByLabel("name", { exact: true }).fill("Ann\nBob");
  await field(page, "labels").fill('{"__proto__": "x"}');
  let request = await send(page);
  const all =
    '{"name":"Rex","kind":"fish","born":null,"price":9007199254740993,"chipped":false,"owner":{"name":"Ann\\nBob"},"food":{"kind":"wet","cans":3},"labels":{"__proto__":"x"}}';
  assert.equal(request.postData(), all);
  assert.equal(request.headers()["content-type"], "application/json");
  // As JSON and back, nothing is lost.
  await page.getByText("As JSON").click();
  assert.equal(
    JSON.stringify(JSON.parse(await form.locator("textarea.json").inputValue()).food),
    '{"kind":"wet","cans":3}',
  );
  await form.locator("textarea.json").fill("{");
  await page.keyboard.press("Control+Enter");
  assert.match(await page.textContent("form .error:not([hidden])"), /not JSON/);
  await form.locator("textarea.json").fill(all);
  await page.getByText("As fields").click();
  request = await send(page);
  assert.deepEqual(JSON.parse(request.postData()), JSON.parse(all));
  assert.match(request.postData(), /9007199254740993/);

  await show(page, "till.sell");
  await page.getByText("Fill in the example").click();
  request = await send(page);
  assert.equal(request.postData(), '{"item":"leash","count":2}');
  await field(page, "count").fill("6");
  await send(page);
  await page.locator(".detail", { hasText: "there are only five of leash SoldOut" }).waitFor();

  await show(page, "shop.renamePet");
  await field(page, "petId").fill("7");
  await field(page, "name").fill("Ann & Bob=ü");
  request = await send(page);
  assert.equal(request.postData(), "name=Ann%20%26%20Bob%3D%C3%BC");
  await block(page, "Data").waitFor();
  assert.equal(await block(page, "Data").locator("pre").textContent(), '"Ann & Bob=ü"');

  await show(page, "shop.uploadPhoto");
  await field(page, "petId").fill("7");
  await field(page, "photo").setInputFiles({
    name: "p,1;2.png",
    mimeType: "image/png",
    buffer: Buffer.from([0, 255, 10, 13]),
  });
  await field(page, "caption").fill("Rex");
  await send(page);
  await block(page, "Data").waitFor();
  assert.deepEqual(JSON.parse(await block(page, "Data").locator("pre").textContent()), { bytes: 4, caption: "Rex" });
  // Without quotes, curl would read the name to the comma only.
  await page.getByText("The same call by").click();
  assert.ok((await texts(page))[0].includes(`-F 'photo=@"p,1;2.png"'`));

  await show(page, "shop.downloadPhoto");
  await field(page, "petId").fill("7");
  await page.selectOption("label:has-text('Response as') select", "image/png");
  await send(page);
  await page.getByText("8 bytes of image/png").waitFor();
  await page.seal();
}

/** Parameters by their styles, and the same call by curl, Rust and the command `ops`. */
export async function snippets({ browser, urls, command }) {
  const page = await open(browser, `${urls.sample}/docs#shop.listPets`);
  await field(page, "limit").fill("5");
  await page.locator("fieldset", { hasText: "tags" }).getByText("Add an item").click();
  await page.getByLabel("item", { exact: true }).fill("it's");
  await page.locator("fieldset", { hasText: "tags" }).getByText("Add an item").click();
  await page.getByLabel("item", { exact: true }).nth(1).fill("a b");
  await page.locator("fieldset", { hasText: "where" }).getByText("Add it").click();
  await field(page, "kind").selectOption({ label: "cat" });
  await field(page, "X-Tenant").fill("Köln");
  await page.getByText("The same call by").click();
  const request = await send(page);
  assert.equal(request.url(), `${urls.sample}/pets?limit=5&tags=it%27s%7Ca%20b&where%5Bkind%5D=cat`);
  await block(page, "Data").waitFor();
  const data = JSON.parse(await block(page, "Data").locator("pre").textContent());
  const [curl, rust, ops] = await texts(page);
  assert.deepEqual(JSON.parse(execFileSync("bash", ["-c", `${curl} --silent`], { encoding: "utf8" })).data, data);
  assert.equal(
    rust,
    `use ops_runtime::http::HttpConfig;
use ops_runtime::{Registry, openapi};

let config = HttpConfig::new().with_namespace("shop");
let operations = openapi::from_openapi_url("${urls.sample}/openapi.json", config).await?;
let registry = Registry::new();
registry.register_all(operations)?;
let envelope = registry.call("shop.listPets", serde_json::json!({
    "limit": 5,
    "tags": ["it's", "a b"],
    "where": { "kind": "cat" },
    "X-Tenant": "Köln",
})).await?;`,
  );
  const run = (text, env = {}) =>
    JSON.parse(
      execFileSync("bash", ["-c", `ops() { "$OPS_COMMAND" "$@"; }; ${text}`], {
        encoding: "utf8",
        env: { ...process.env, OPS_COMMAND: command, ...env },
      }),
    ).data;
  assert.deepEqual(run(ops), data);

  // By id, the input is the body.
  await show(page, "till.with_tax");
  await field(page, "price").fill("50");
  await page.getByText("The same call by").click();
  const [byCurl, byRust, byOps] = await texts(page);
  assert.equal(JSON.parse(execFileSync("bash", ["-c", `${byCurl} --silent`], { encoding: "utf8" })).data, 59.5);
  assert.match(
    byRust,
    /registry\.call\("till\.with_tax", serde_json::json!\(\{ "body": \{ "price": 50 \} \}\)\)\.await\?;$/,
  );
  assert.equal(run(byOps), 59.5);

  // Credentials are named by what holds them, and are never in a text.
  await page.click("#credentials");
  await page.getByLabel("token: bearer token").fill("t0ken");
  await page.getByText("Use them").click();
  await show(page, "shop.listOrders");
  await page.getByText("The same call by").click();
  const own = await texts(page);
  own.forEach((text) => assert.ok(!text.includes("t0ken") && text.includes("TOKEN"), text));
  assert.match(own[1], /\.with_auth\(Auth::bearer\(std::env::var\("TOKEN"\)\?\)\)/);
  const env = { ...process.env, TOKEN: "t0ken" };
  assert.deepEqual(JSON.parse(execFileSync("bash", ["-c", `${own[0]} --silent`], { encoding: "utf8", env })).data, [
    "ann",
  ]);
  assert.deepEqual(run(own[2], { TOKEN: "t0ken" }), ["ann"]);
  await page.seal();
}
