// The document of the server (OpenAPI 3.1): its operations, and what each takes and gives.

import { isObject } from "./json.js";

const METHODS = ["get", "query", "post", "put", "patch", "delete", "head", "options", "trace"];

/** References are followed so many times. */
const HOPS = 32;

/** A member that an object itself has: a document may call one `__proto__`. */
function own(object, name) {
  return isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

const text = (value) => (typeof value === "string" ? value : "");
const object = (value) => (isObject(value) ? value : {});
export const list = (value) => (Array.isArray(value) ? value : []);

export class ApiDocument {
  constructor(json) {
    this.json = object(json);
    this.info = object(this.json.info);
    this.operations = this.#operations();
    this.byId = new Map(this.operations.map((operation) => [operation.id, operation]));
  }

  /** The object that a `$ref` leads to, or the object itself. Only this document is read. */
  resolve(node) {
    for (let hops = 0; hops < HOPS; hops += 1) {
      const reference = own(node, "$ref");
      if (typeof reference !== "string") return object(node);
      if (!reference.startsWith("#/")) return {};
      const next = this.at(reference);
      // In 3.1 a reference of a schema may have keywords beside it.
      const { $ref: _, ...beside } = node;
      node = Object.keys(beside).length && isObject(next) ? { ...next, ...beside } : next;
    }
    return {};
  }

  at(reference) {
    const names = reference
      .slice(2)
      .split("/")
      .map((name) => {
        try {
          return decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~");
        } catch {
          return name;
        }
      });
    return names.reduce((node, name) => (Array.isArray(node) ? node[Number(name)] : own(node, name)), this.json);
  }

  #operations() {
    const found = [];
    for (const [path, reference] of Object.entries(object(this.json.paths))) {
      const item = this.resolve(reference);
      const nodes = METHODS.map((method) => [method.toUpperCase(), own(item, method)]);
      for (const [method, node] of [...nodes, ...Object.entries(object(item.additionalOperations))]) {
        // A second way to call an operation is not shown as another.
        if (isObject(node) && node["x-ops-implied"] !== true) found.push(this.#operation(path, method, item, node));
      }
    }
    return found.sort((one, other) => one.namespace.localeCompare(other.namespace));
  }

  #operation(path, method, item, node) {
    const id = text(node["x-ops-id"]) || text(node.operationId) || `${method} ${path}`;
    const dot = id.indexOf(".");
    return {
      id,
      namespace: dot > 0 ? id.slice(0, dot) : "",
      name: dot > 0 ? id.slice(dot + 1) : id,
      operationId: text(node.operationId),
      kind: ["query", "mutation", "subscription"].find((kind) => kind === node["x-ops-kind"]) ?? "mutation",
      method,
      // Operations that share a method and a path are told apart by a fragment, which is not sent.
      path: path.split("#", 1)[0],
      tags: list(node.tags).filter((tag) => typeof tag === "string"),
      summary: text(node.summary),
      description: text(node.description),
      deprecated: node.deprecated === true,
      item,
      node,
    };
  }

  /**
   * The parameters of an operation, those of its path included. Its own replace these. `property` is the name of each in
   * the input of a client, where the second of a name says also where it is, and `served` that in the server's input.
   */
  parameters({ item, node }) {
    const all = new Map();
    for (const reference of [...list(item.parameters), ...list(node.parameters)]) {
      const parameter = this.resolve(reference);
      if (text(parameter.name) && text(parameter.in)) all.set(`${parameter.in} ${parameter.name}`, parameter);
    }
    const names = new Set();
    return [...all.values()].map((parameter) => {
      const property = names.has(parameter.name) ? `${parameter.name}_${parameter.in}` : parameter.name;
      names.add(property);
      return { ...parameter, property, served: text(parameter["x-ops-property"]) || property };
    });
  }

  /** The request body, and its content types. `served` is its name in the server's input; empty if it is the rest of that. */
  body({ node }) {
    const body = this.resolve(node.requestBody);
    return {
      required: body.required === true,
      description: text(body.description),
      content: this.content(body),
      served: own(body, "x-ops-property") ?? "body",
    };
  }

  content(node) {
    return Object.entries(object(node.content)).map(([type, media]) => {
      const own = this.resolve(media);
      return { type, schema: own.schema ?? own.itemSchema, encoding: object(own.encoding), example: this.example(own) };
    });
  }

  /** The first example of a parameter or a content type, or of its schema. */
  example(node) {
    if (Object.hasOwn(node, "example")) return node.example;
    const [first] = Object.values(object(node.examples));
    const example = this.resolve(first);
    const schema = this.resolve(node.schema);
    return example.dataValue ?? example.value ?? list(schema.examples)[0] ?? schema.example;
  }

  responses({ node }) {
    return Object.entries(object(node.responses)).map(([status, reference]) => {
      const response = this.resolve(reference);
      return { status, description: text(response.description), content: this.content(response) };
    });
  }

  /** The ways to authenticate: each a list of schemes with the scopes that it needs. */
  security({ node }) {
    const ways = Array.isArray(node.security) ? node.security : list(this.json.security);
    return ways.map((way) => Object.entries(object(way)).map(([name, scopes]) => ({ name, scopes: list(scopes) })));
  }

  /** The security schemes: `name` is that of the scheme, `key` that of its header, cookie or pair of the query. */
  schemes() {
    const schemes = object(object(this.json.components).securitySchemes);
    return Object.entries(schemes).map(([name, reference]) => {
      const node = this.resolve(reference);
      const [type, place, key] = [text(node.type), text(node.in), text(node.name)];
      return { name, type, in: place, key, scheme: text(node.scheme), description: text(node.description) };
    });
  }
}
