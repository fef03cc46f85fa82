// One operation: what it is, its form, the call and what comes of it, the same call elsewhere, its responses.

import { Unreadable } from "./controls.js";
import { BodyForm } from "./body.js";
import { needs } from "./credentials.js";
import { button, code, cut, el, lazy } from "./dom.js";
import { Form } from "./form.js";
import { prose } from "./prose.js";
import { request, withQuery } from "./request.js";
import { Live, headers, result } from "./result.js";
import { tree } from "./schema.js";
import { ENVELOPE, forbidden, send } from "./send.js";
import { Samples } from "./samples.js";
import { curl, ops, rust } from "./snippets.js";

const PLACES = { path: "Path", query: "Query", querystring: "Query", header: "Headers", cookie: "Cookies" };

export class Operation {
  #parameters = [];
  #abort = null;

  constructor({ api, operation, base, credentials, askCredentials }) {
    Object.assign(this, { api, operation, base, credentials, askCredentials });
    this.ways = api.security(operation);
    this.schemes = api.schemes();
    this.form = new Form(api, () => this.update());
    this.samples = new Samples(() => this.#elsewhere());
    this.isById =
      operation.path === `/operations/${[operation.namespace, operation.name].map(encodeURIComponent).join("/")}`;
    this.body = new BodyForm(api, this.form, api.body(operation), this.isById ? "Input" : "Body");
    this.responses = api.responses(operation);
    this.element = el("article", {}, this.#head(), this.#call(), this.samples.element, this.#given());
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  #head() {
    const { id, kind, method, path, tags, summary, description, deprecated } = this.operation;
    this.title = el("h2", { tabindex: "-1" }, code(id));
    return el(
      "header",
      {},
      this.title,
      el(
        "p",
        { class: "route" },
        el("span", { class: `kind ${kind}` }, kind),
        el("span", { class: "method" }, method),
        code(this.base + path),
      ),
      (deprecated || tags.length > 0) &&
        el(
          "p",
          {},
          deprecated && el("span", { class: "mark dep" }, "deprecated"),
          tags.map((tag) => el("span", { class: "tag" }, tag)),
        ),
      summary &&
        el(
          "div",
          {},
          cut(summary, 500, (start) => el("p", {}, start)),
        ),
      prose(description),
      this.#needs(),
    );
  }

  /** What credentials the operation needs. */
  #needs() {
    if (!this.ways.length) return null;
    const enter = button("Enter credentials", this.askCredentials, { class: "link" });
    return el("p", { class: "needs" }, `Needs ${needs(this.ways, this.schemes)}. `, enter);
  }

  #call() {
    const groups = new Map();
    for (const parameter of this.api.parameters(this.operation)) {
      const place = PLACES[parameter.in] ?? parameter.in;
      const schema = parameter.schema ?? Object.values(parameter.content ?? {})[0]?.schema ?? {};
      const field = this.form.field(schema, {
        name: parameter.name,
        required: parameter.required === true || parameter.in === "path",
        description: parameter.description,
        example: this.api.example(parameter),
      });
      this.#parameters.push({ parameter, field });
      if (!groups.has(place)) groups.set(place, []);
      groups.get(place).push(field.element);
    }
    this.as = el(
      "select",
      {},
      this.#kinds().map(([type, words]) => el("option", { value: type }, words)),
    );
    this.sendButton = el(
      "button",
      { type: "submit", class: "main", "aria-keyshortcuts": "Control+Enter Meta+Enter" },
      this.#isStream() ? "Follow" : "Send",
    );
    this.stopButton = button("Stop", () => this.stop(), { hidden: true });
    this.result = el("div", { class: "result", "aria-live": "polite" });
    const isEmpty = !groups.size && !this.body.element;
    return el(
      "section",
      { "aria-label": "Call" },
      el("h3", {}, "Call"),
      el(
        "form",
        {
          novalidate: true,
          onsubmit: (event) => (event.preventDefault(), this.send()),
          oninput: () => this.update(),
          onchange: () => this.update(),
        },
        isEmpty && el("p", { class: "quiet" }, "It has no input."),
        [...groups].map(([place, elements]) =>
          el("div", { class: "place", role: "group", "aria-label": place }, el("h4", {}, place), elements),
        ),
        this.body.element,
        el(
          "div",
          { class: "send" },
          this.sendButton,
          this.stopButton,
          el("label", {}, "Response as", this.as),
          el("span", { class: "quiet keys" }, el("kbd", {}, "Ctrl"), " ", el("kbd", {}, "Enter")),
        ),
      ),
      this.result,
    );
  }

  #isStream() {
    return this.operation.kind === "subscription";
  }

  /** What the response may be asked for as: an envelope, or a content type of a success. */
  #kinds() {
    const successes = this.responses
      .filter(({ status }) => /^[2d]/.test(status))
      .flatMap(({ content }) => content.map(({ type }) => type));
    const described = [...new Set(successes.filter((type) => !type.includes("problem+json") && type !== ENVELOPE))];
    const plain = described.map((type) => [type, type]);
    if (this.#isStream()) return plain.length ? plain : [["text/event-stream", "text/event-stream"]];
    return [[ENVELOPE, "envelope"], ...plain];
  }

  #given() {
    return el(
      "section",
      { "aria-label": "Responses" },
      el("h3", {}, "Responses"),
      this.responses.map(({ status, description, content }) =>
        lazy(el("span", {}, el("strong", {}, status), " ", description.split("\n", 1)[0].slice(0, 200)), () =>
          el(
            "div",
            {},
            description.includes("\n") && prose(description),
            content.map(({ type, schema }) =>
              el("div", {}, el("p", {}, code(type)), schema !== undefined && tree(this.api, schema)),
            ),
          ),
        ),
      ),
    );
  }

  /** Says that the form or the credentials have changed. */
  update() {
    this.samples.update();
  }

  /** The request as the form has it. Throws `Unreadable` if a field can't be read. */
  #request(last) {
    const parameters = this.#parameters
      .map(({ parameter, field }) => [parameter, field.get()])
      .filter(([, value]) => value !== undefined);
    // A browser takes `.` and `..` out of a path, escaped or not.
    const missing = this.#parameters.find(
      ({ parameter, field }) => parameter.in === "path" && [undefined, "", ".", ".."].includes(field.get()),
    );
    const body = this.body.get();
    const accept = [["Accept", this.as.value === ENVELOPE ? `${ENVELOPE}, */*;q=0.1` : this.as.value]];
    if (last !== undefined) accept.push(["Last-Event-ID", last]);
    return {
      ...request(this.base, this.operation, parameters, body, accept),
      missing: missing?.field,
      parameters,
      content: body?.value,
    };
  }

  /** The same call by curl, Rust and `ops call`. */
  #elsewhere() {
    const own = this.#request();
    const { query, secrets } = this.credentials.for(this.ways, this.schemes);
    const address = (path) => new URL(path, location.origin).href;
    const url = withQuery(
      address(own.url),
      query.map(([name]) => [name, "API_KEY"]),
    );
    const input = Object.fromEntries(own.parameters.map(([{ property }, value]) => [property, value]));
    if (own.content !== undefined) input.body = own.content;
    const file = address(`${this.base}/openapi.json`);
    const bearer = secrets.some(([, value]) => value === "Bearer $TOKEN");
    const names = { bearer, query, header: secrets.filter(([, value]) => value !== "Bearer $TOKEN") };
    return [
      curl(url, own, secrets, this.#isStream()),
      rust(file, this.operation, input, names),
      ops(file, this.operation, input, names),
    ];
  }

  /** The field for a place in the server's input. */
  #field(pointer) {
    const names = pointer
      .split("/")
      .slice(1)
      .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
    const own = this.#parameters.find(({ parameter }) => parameter.served === names[0]);
    if (own) return own.field.find(names.slice(1));
    if (this.isById || this.body.served === "") return this.body.find(names);
    return names[0] === this.body.served ? this.body.find(names.slice(1)) : null;
  }

  stop() {
    this.#abort?.abort();
  }

  async send(last) {
    this.stop();
    this.element.querySelectorAll("[aria-invalid]").forEach((control) => control.removeAttribute("aria-invalid"));
    this.element.querySelectorAll("form .error").forEach((error) => (error.hidden = true));
    let own;
    try {
      own = this.#request(last);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      error.field.show(error.message);
      error.field.control.focus();
      return;
    }
    if (own.missing) {
      own.missing.show("The path needs a value here, other than . and ..");
      own.missing.control.focus();
      return;
    }
    await this.#exchange(own);
  }

  async #exchange(own) {
    const abort = (this.#abort = new AbortController());
    const { headers: secret, query, cookies } = this.credentials.for(this.ways, this.schemes);
    own.headers.push(...secret);
    own.url = withQuery(own.url, query);
    const asksCookies = cookies || this.#parameters.some(({ parameter }) => parameter.in === "cookie");
    const unsent = [
      ...own.cookies.map(([name]) => `the cookie ${name}`),
      ...forbidden(own).map((name) => `the header ${name}`),
    ];
    const notes = unsent.map((what) => el("p", { class: "note" }, `A page can't send ${what}; another client can.`));
    this.#show(el("p", { class: "quiet" }, "Sending"));
    this.stopButton.hidden = false;
    try {
      const response = await send(own, asksCookies, abort.signal);
      if (response.items) await this.#follow(response, notes, abort);
      else this.#show(...notes, ...result(response, (pointer) => this.#field(pointer)).filter(Boolean));
    } catch (error) {
      if (this.#abort !== abort) return;
      const words = abort.signal.aborted ? "Stopped." : `No response came: ${error.message}.`;
      this.#show(...notes, el("p", { class: abort.signal.aborted ? "quiet" : "error" }, words));
    } finally {
      if (this.#abort === abort) this.stopButton.hidden = true;
    }
  }

  /** Shows what came of the call, and brings its beginning into sight. */
  #show(...parts) {
    this.result.replaceChildren(...parts);
    if (!this.element.querySelector("[aria-invalid]"))
      this.result.firstElementChild?.scrollIntoView({ block: "nearest" });
  }

  /** Shows the items of a stream until it ends, or the reader stops it. */
  async #follow(response, notes, abort) {
    const live = new Live(response);
    this.#show(...notes, live.element, headers(response.headers));
    let how = "The stream ended";
    try {
      for await (const item of response.items) live.add(item);
    } catch (error) {
      how = abort.signal.aborted ? "You stopped it" : `The connection was lost (${error.message})`;
    }
    live.end(how);
    if (live.last !== undefined && !live.isDone) {
      live.element.append(button(`Follow on from ${live.last}`, () => this.send(live.last)));
    }
  }
}
