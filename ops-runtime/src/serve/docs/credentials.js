// The reader's credentials. They are in memory, and in `sessionStorage` if the reader asks for that.

import { button, el, freshId } from "./dom.js";
import { isObject } from "./json.js";

/** The pages of one server have one place. */
const PLACE = `ops-docs ${location.pathname}`;

export class Credentials {
  /** The texts that were entered, by their fields. */
  #values = {};
  #isKept = false;

  constructor() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "null");
      if (isObject(kept)) [this.#values, this.#isKept] = [kept, true];
    } catch {
      // There is no storage, or none of ours.
    }
  }

  get isEmpty() {
    return !Object.values(this.#values).some(Boolean);
  }

  #value(name) {
    return Object.hasOwn(this.#values, name) ? String(this.#values[name]) : "";
  }

  #set(values, isKept) {
    [this.#values, this.#isKept] = [values, isKept];
    try {
      if (isKept) sessionStorage.setItem(PLACE, JSON.stringify(values));
      else sessionStorage.removeItem(PLACE);
    } catch {
      // They are in memory in any case.
    }
  }

  /** True if there is what a scheme needs. A cookie is the browser's own. */
  has(scheme) {
    if (isBasic(scheme)) return Boolean(this.#value(`${scheme.name} user`) || this.#value(`${scheme.name} password`));
    return isCookie(scheme) || scheme.type === "mutualTLS" || Boolean(this.#value(scheme.name));
  }

  /**
   * What is sent for these ways to authenticate: the first for which all is there. `secrets` says for each header how it is
   * written without its secret. A pair of the query, and the header of a key, have the name of their scheme after their value.
   */
  for(ways, schemes) {
    const out = { headers: [], query: [], secrets: [], cookies: false };
    const byName = new Map(schemes.map((scheme) => [scheme.name, scheme]));
    const known = ways.map((way) => way.map(({ name }) => byName.get(name) ?? { name }));
    const way = known.find((way) => way.length > 0 && way.every((scheme) => this.has(scheme))) ?? [];
    way.forEach((scheme) => this.#add(scheme, out));
    const name = this.#value("header name").trim();
    if (name) {
      out.headers.push([name, this.#value("header value")]);
      out.secrets.push([name, "$VALUE"]);
    }
    return out;
  }

  #add(scheme, out) {
    const value = this.#value(scheme.name);
    const header = (name, value, ...secret) => {
      out.headers.push([name, value]);
      out.secrets.push([name, ...secret]);
    };
    if (isCookie(scheme)) out.cookies = true;
    else if (scheme.type === "apiKey" && scheme.in === "query") out.query.push([scheme.key, value, scheme.name]);
    else if (scheme.type === "apiKey") header(scheme.key, value, "$API_KEY", scheme.name);
    else if (isBasic(scheme)) {
      const pair = `${this.#value(`${scheme.name} user`)}:${this.#value(`${scheme.name} password`)}`;
      header(
        "Authorization",
        `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(pair)))}`,
        "$AUTHORIZATION",
      );
    } else if (scheme.type === "http" && scheme.scheme?.toLowerCase() !== "bearer") {
      header("Authorization", `${scheme.scheme} ${value}`, "$AUTHORIZATION");
    } else if (scheme.type !== "mutualTLS") header("Authorization", `Bearer ${value}`, "Bearer $TOKEN");
  }

  /** Asks for credentials. `changed` is told when they have changed. */
  ask(schemes, changed) {
    const inputs = new Map();
    const field = (name, label, isSecret, about = "") => {
      const id = freshId();
      const input = el("input", { id, type: isSecret ? "password" : "text", autocomplete: "off", spellcheck: "false" });
      input.value = this.#value(name);
      inputs.set(name, input);
      return el(
        "div",
        { class: "field" },
        el("label", { for: id }, label),
        about && el("p", { class: "type" }, about),
        input,
      );
    };
    const isKept = el("input", { type: "checkbox" });
    isKept.checked = this.#isKept;
    const close = (values, kept) => {
      this.#set(values, kept);
      dialog.close();
      changed();
    };
    const form = el(
      "form",
      {
        method: "dialog",
        onsubmit: (event) => {
          event.preventDefault();
          close(Object.fromEntries([...inputs].map(([name, input]) => [name, input.value])), isKept.checked);
        },
      },
      el("h2", {}, "Credentials"),
      el(
        "p",
        { class: "quiet" },
        "They are sent to this server alone, where the document asks for them, and kept in the memory of this page.",
      ),
      schemes.map((scheme) => schemeFields(scheme, field)),
      field("header name", "A header of every request: its name", false),
      field("header value", "A header of every request: its value", true),
      el("label", { class: "check" }, isKept, "Keep them until this tab is closed"),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "submit", class: "main" }, "Use them"),
        button("Forget all", () => close({}, false)),
        button("Cancel", () => dialog.close()),
      ),
    );
    const dialog = el("dialog", { "aria-label": "Credentials", onclose: () => dialog.remove() }, form);
    document.body.append(dialog);
    dialog.showModal();
  }
}

function isBasic(scheme) {
  return scheme.type === "http" && scheme.scheme?.toLowerCase() === "basic";
}

function isCookie(scheme) {
  return scheme.type === "apiKey" && scheme.in === "cookie";
}

function schemeFields(scheme, field) {
  const { name } = scheme;
  if (isCookie(scheme))
    return el("p", {}, `${name}: the cookie ${scheme.key}, which this browser sends if you are logged in.`);
  if (scheme.type === "mutualTLS") return el("p", {}, `${name}: a certificate of this browser.`);
  if (isBasic(scheme))
    return [field(`${name} user`, `${name}: user`, false), field(`${name} password`, `${name}: password`, true)];
  return field(name, `${name}: ${schemeWords(scheme)}`, true, scheme.description);
}

/** The ways to authenticate in words: `token (bearer token) with orders:read, or key (key, in the header X-Key)`. */
export function needs(ways, schemes) {
  const byName = new Map(schemes.map((scheme) => [scheme.name, scheme]));
  const words = ({ name, scopes }) => {
    const about = byName.has(name) ? ` (${schemeWords(byName.get(name))})` : "";
    return `${name}${about}${scopes.length ? ` with ${scopes.join(", ")}` : ""}`;
  };
  return ways.map((way) => way.map(words).join(" and ") || "nothing").join(", or ");
}

/** What a scheme asks for, in words. */
function schemeWords(scheme) {
  if (scheme.type === "apiKey") return `key, in the ${scheme.in} ${scheme.key}`;
  if (isBasic(scheme)) return "user and password";
  if (scheme.type === "mutualTLS") return "certificate";
  if (scheme.type === "oauth2") return "OAuth 2 access token";
  if (scheme.type === "openIdConnect") return "OpenID Connect token";
  return scheme.scheme?.toLowerCase() === "bearer"
    ? "bearer token"
    : `credentials of the scheme ${scheme.scheme ?? scheme.name}`;
}
