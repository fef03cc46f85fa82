// The page: loads the document, and shows the list and the operation that the address names.

import { Credentials } from "./credentials.js";
import { ApiDocument } from "./document.js";
import { button, el } from "./dom.js";
import { List } from "./list.js";
import { Operation } from "./operation.js";
import { prose } from "./prose.js";

const of = (id) => document.getElementById(id);
const [columns, detail, search] = [of("columns"), of("detail"), of("search")];
const credentials = new Credentials();
const list = new List({ search, list: of("list"), count: of("count") }, (id) => {
  location.hash = encodeURIComponent(id);
  // The event comes later than a reader's next key.
  show();
});

/** The document and the operation that are shown. */
let api = null;
let shown = null;

/** The page is at `PREFIX/docs`, the operations are below the prefix. */
const base = location.pathname.replace(/\/docs$/, "");

async function load() {
  const response = await fetch("openapi.json", { cache: "no-cache" });
  if (!response.ok) throw new Error(`the server answers ${response.status} ${response.statusText}`);
  api = new ApiDocument(await response.json());
  const { title, version } = api.info;
  of("title").textContent = typeof title === "string" && title ? title.slice(0, 200) : "Operations";
  of("version").textContent = typeof version === "string" ? version.slice(0, 50) : "";
  list.fill(api.operations);
  performance.mark("ops-list");
  show();
}

/** Shows the operation that the fragment of the address names. */
function show() {
  if (!api) return;
  const operation = api.byId.get(fragment());
  if (shown && shown.operation === operation) return;
  shown?.stop();
  shown = operation ? new Operation({ api, operation, base, credentials, askCredentials }) : null;
  columns.classList.toggle("has-detail", Boolean(operation));
  list.mark(operation?.id);
  document.title = [operation?.id, of("title").textContent].filter(Boolean).join(" - ");
  if (!shown) {
    detail.replaceChildren(overview());
    return;
  }
  const back = button(
    "All operations",
    () => {
      location.hash = "";
      search.focus();
    },
    { class: "back" },
  );
  detail.replaceChildren(back, shown.element);
  detail.scrollTop = 0;
  window.scrollTo(0, 0);
  shown.focus();
}

function fragment() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function overview() {
  return el(
    "div",
    { class: "overview" },
    el("h2", {}, of("title").textContent),
    prose(api.info.description),
    el(
      "p",
      { class: "quiet" },
      el("kbd", {}, "/"),
      " finds an operation, ",
      el("kbd", {}, "↑"),
      " ",
      el("kbd", {}, "↓"),
      " go through the list, ",
      el("kbd", {}, "Enter"),
      " opens one, ",
      el("kbd", {}, "Ctrl"),
      " ",
      el("kbd", {}, "Enter"),
      " sends it.",
    ),
    el("p", { class: "quiet" }, "The document: ", el("a", { href: "openapi.json" }, "openapi.json")),
  );
}

function askCredentials() {
  credentials.ask(api?.schemes() ?? [], () => {
    of("credentials").classList.toggle("is-set", !credentials.isEmpty);
    shown?.update();
  });
}

function onKey(event) {
  const isText = event.target.matches?.("input, textarea, select");
  if (event.key === "/" && !isText && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (
    event.key === "Enter" &&
    (event.ctrlKey || event.metaKey) &&
    shown &&
    !document.querySelector("dialog[open]")
  ) {
    event.preventDefault();
    shown.send();
  }
}

of("credentials").addEventListener("click", askCredentials);
// The fragment of the address is the operation's.
of("skip").addEventListener("click", (event) => {
  event.preventDefault();
  columns.classList.add("has-detail");
  detail.focus();
});
of("credentials").classList.toggle("is-set", !credentials.isEmpty);
window.addEventListener("hashchange", show);
window.addEventListener("keydown", onKey);
if (!location.hash) search.focus();

load().catch((error) => {
  columns.classList.add("has-detail");
  detail.replaceChildren(el("p", { class: "error" }, `The document can't be read: ${error.message}.`));
});
