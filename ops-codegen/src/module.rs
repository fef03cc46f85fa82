//! The module to render: operations, types and definitions, with their names.

use std::collections::{BTreeSet, HashSet};

use ops_runtime::binding::{Binding, HttpBinding, HttpBody, McpOutput};
use ops_runtime::glob::glob;
use ops_runtime::spec::{Api, Diagnostic, OperationSpec};
use serde_json::{Value, json};

use crate::declared_errors::{ErrorEnum, ErrorEnums, Errors};
use crate::lower::{Lowering, Nulls, Root, Roots, Site, Source, finish, parse};
use crate::names::{Scope, screaming, snake_case, upper_camel};
use crate::settings::{Faults, Serving, Setting, Settings};
use crate::types::{Shape, Type, Types};
use ops_runtime::spec::pointer;

/// A module that is ready to be rendered.
pub(crate) struct Module {
    /// The name of its files, without their endings.
    pub(crate) file: String,
    pub(crate) operations: Vec<Operation>,
    pub(crate) types: Types,
    /// The definitions that the operations reach, sorted by name.
    pub(crate) definitions: Vec<(String, Value)>,
    /// The operations that were left out, because nothing names them; `None` if nothing is left out.
    pub(crate) others: Option<Vec<OperationSpec>>,
    /// Every identifier by which a crate can name a part of it; only if something may be left out.
    pub(crate) names: HashSet<String>,
    /// The types that are there even if no operation has them.
    pub(crate) extra: Vec<Type>,
    pub(crate) webhooks: Vec<Webhook>,
    /// The enums of declared errors.
    pub(crate) errors: Vec<ErrorEnum>,
    /// The trait whose methods run the operations, if there is to be one.
    pub(crate) methods: Option<String>,
    /// The trait by which a program serves the operations, if there is to be one.
    pub(crate) server: Option<Server>,
    /// All names of the module.
    pub(crate) scope: Scope,
}

/// An operation, its types and its names.
pub(crate) struct Operation {
    pub(crate) spec: OperationSpec,
    pub(crate) input: Type,
    pub(crate) output: Type,
    /// The type of the declared errors, if there are any that a status tells apart.
    pub(crate) errors: Option<Errors>,
    /// The struct of the operation.
    pub(crate) name: String,
    /// The static with its spec.
    pub(crate) constant: String,
    /// The method that runs it.
    pub(crate) method: String,
}

/// The names of a server.
pub(crate) struct Server {
    /// The trait.
    pub(crate) name: String,
    /// The function that registers an implementation.
    pub(crate) register: String,
    /// True if methods may be left out.
    pub(crate) is_partial: bool,
}

/// A webhook, its type and its names.
pub(crate) struct Webhook {
    pub(crate) spec: OperationSpec,
    pub(crate) payload: Type,
    /// The struct of the webhook, in the module of webhooks.
    pub(crate) name: String,
    /// The static with its spec.
    pub(crate) constant: String,
}

/// Lowers an API and assigns all names.
pub(crate) fn module(
    api: &Api,
    source: &Source,
    settings: &Settings,
    diagnostics: &mut Vec<Diagnostic>,
    faults: &mut Faults,
) -> Module {
    let mut lowering = Lowering::new(source, settings);
    let mut schemas: Vec<Value> = Vec::new();
    let mut roots = Roots::default();
    let mut specs = distinct(&api.operations, diagnostics);
    for spec in &mut specs {
        let name = upper_camel(spec.name());
        let at = |part: &str| format!("/operations/{}/{part}", pointer::escaped(&spec.id));
        let input = parse(&mut spec.input, &at("input"), diagnostics);
        let output = parse(&mut spec.output, &at("output"), diagnostics);
        let mut root = Root {
            input: lowering.root_record(&input, &Site::new(format!("{name}Input"), at("input"))),
            output: if spec.mcp().is_some_and(|tool| tool.output == McpOutput::Content) {
                Type::List(Box::new(Type::Block))
            } else {
                let differs = |http: &HttpBinding| http.responses.iter().any(|response| response.variant.is_some());
                let site = Site::new(format!("{name}Output"), at("output"));
                lowering.root(&output, &site.by_status(spec.http().is_some_and(differs)))
            },
            errors: Vec::new(),
            is_http: spec.http().is_some(),
            nulls: nulls(spec, &settings.explicit_null),
        };
        schemas.extend([input, output]);
        for error in spec.errors.to_mut() {
            let schema = parse(&mut error.schema, &at("errors"), diagnostics);
            let hint = match error.http_status {
                Some(status) => format!("{name}Error{status}"),
                None => format!("{name}Error{}", upper_camel(&error.code.to_lowercase())),
            };
            root.errors.push(lowering.root(&schema, &Site::new(hint, at("errors"))));
            schemas.push(schema);
        }
        roots.operations.push(root);
    }
    let mut hooks = distinct(&api.webhooks, diagnostics);
    for spec in &mut hooks {
        let at = format!("/webhooks/{}/payload", pointer::escaped(spec.name()));
        let payload = parse(&mut spec.output, &at, diagnostics);
        roots.webhooks.push(lowering.root(&payload, &Site::new(format!("{}Payload", upper_camel(spec.name())), at)));
        schemas.push(payload);
    }
    for name in chosen(source, settings, faults) {
        let schema = json!({ "$ref": format!("{}{}", pointer::DEFINITIONS, pointer::escaped(name)) });
        if let type_ @ Type::Named(_) = lowering.root(&schema, &Site::new(name, "")) {
            roots.others.push(type_);
        }
        schemas.push(schema);
    }
    let definitions = source.reached(&schemas).into_iter();
    let definitions = definitions.filter_map(|name| Some((name.to_owned(), source.get(name)?.clone()))).collect();
    diagnostics.append(&mut lowering.diagnostics);
    let mut types = lowering.types;
    finish(&mut types, &mut roots, diagnostics);
    if settings.server.is_some() {
        // A server makes the values that its clients receive.
        types.items.iter_mut().for_each(|item| item.sent = true);
    }
    name_all(specs, hooks, roots, types, definitions, settings, diagnostics)
}

/// The definitions that are generated even if no operation reaches them; notes settings without a definition.
fn chosen<'s>(source: &'s Source, settings: &Settings, faults: &mut Faults) -> Vec<&'s str> {
    for (name, path) in settings.types.iter().filter(|(name, _)| source.get(name).is_none()) {
        let what = format!("the type `{path}`: there is no schema `{name}`");
        let setting = Setting::Type(name.clone());
        faults.miss(setting, what, name, source.names(), "write its name as the document has it");
    }
    for pattern in settings.schemas.iter().filter(|pattern| !source.names().any(|name| glob(pattern, name))) {
        let what = format!("no schema matches `{pattern}`");
        let todo = "write its name as the document has it; `*` stands for any text";
        faults.miss(Setting::Schema(pattern.clone()), what, pattern, source.names(), todo);
    }
    source.names().filter(|name| settings.schemas.iter().any(|pattern| glob(pattern, name))).collect()
}

/// The media type of a merge patch (RFC 7396), in which `null` removes a property.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Where the operation's callers may need to send `null`: in partial changes, and if a pattern requests it.
fn nulls(spec: &OperationSpec, patterns: &[String]) -> Nulls {
    let is_asked = patterns.iter().any(|pattern| spec.matches(pattern));
    match &spec.binding {
        // Only a body can hold it.
        Binding::Http(http) => {
            let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let all = is_asked || http.method.eq_ignore_ascii_case("PATCH");
            let bodies = http.bodies.iter().filter(|body| all || essence(&body.content_type) == MERGE_PATCH);
            if bodies.clone().any(HttpBody::is_rest) {
                return Nulls::Everywhere;
            }
            let properties: Vec<String> = bodies.map(|body| body.property.to_string()).collect();
            if properties.is_empty() { Nulls::Nowhere } else { Nulls::In(properties) }
        }
        _ if is_asked => Nulls::Everywhere,
        _ => Nulls::Nowhere,
    }
}

/// Methods that callers have already: their own, those of `Caller`, or those of a trait of the prelude.
const METHODS: &[&str] = &[
    "add",
    "bind",
    "bind_examples",
    "borrow",
    "call",
    "call_with",
    "calls",
    "calls_of",
    "changed",
    "check_input",
    "clone",
    "clone_from",
    "clone_into",
    "close",
    "diagnostics",
    "discover",
    "execute",
    "execute_with",
    "handler",
    "identity",
    "in_flight",
    "info",
    "into",
    "list",
    "name",
    "on",
    "on_envelope",
    "on_example",
    "on_id",
    "on_items",
    "on_items_example",
    "on_items_id",
    "on_sequence",
    "on_stream",
    "operations",
    "refresh",
    "register",
    "register_all",
    "register_handler",
    "register_spec",
    "registrations",
    "remove",
    "replace",
    "replaced_headers",
    "scoped",
    "sends_auth",
    "server_info",
    "snapshot",
    "spec",
    "stream",
    "stream_with",
    "subscribe",
    "subscribe_with",
    "to_owned",
    "tools",
    "try_into",
    "version",
    "with_policy",
    "with_window",
    "without_credentials",
];

/// The operations with distinct ids.
fn distinct(specs: &[OperationSpec], diagnostics: &mut Vec<Diagnostic>) -> Vec<OperationSpec> {
    let mut ids = BTreeSet::new();
    let mut kept = Vec::new();
    for spec in specs {
        let pointer = format!("/operations/{}", pointer::escaped(&spec.id));
        if let Err(error) = spec.check_id() {
            diagnostics.push(Diagnostic::warning(pointer, error.to_string()).with_help("the operation is left out"));
        } else if !ids.insert(spec.id.as_ref()) {
            let message = format!("a second operation has the id `{}`", spec.id);
            diagnostics.push(Diagnostic::warning(pointer, message).with_help("the operation is left out"));
        } else {
            kept.push(spec.clone());
        }
    }
    kept
}

/// Assigns every name of the module, in the order of the operations and of the types that they reach.
// Not inlined into its only caller: one large function would take longer to compile.
#[inline(never)]
fn name_all(
    specs: Vec<OperationSpec>,
    webhooks: Vec<OperationSpec>,
    roots: Roots,
    mut types: Types,
    definitions: Vec<(String, Value)>,
    settings: &Settings,
    diagnostics: &mut Vec<Diagnostic>,
) -> Module {
    let mut scope = Scope::with(&["DEFINITIONS", "operations", "ops", "other_operations", "webhooks"]);
    let mut named = vec![false; types.items.len()];
    let mut operations = Vec::new();
    let mut errors = ErrorEnums::default();
    let mut methods = Scope::with(METHODS);
    for (spec, root) in specs.into_iter().zip(roots.operations) {
        let wish = upper_camel(spec.name());
        let name = scope.take_camel(&wish);
        if name != wish {
            let pointer = format!("/operations/{}", pointer::escaped(&spec.id));
            clash(diagnostics, &pointer, &wish, &name);
        }
        root.leave_name(&wish, &mut types);
        for type_ in [&root.input, &root.output].into_iter().chain(&root.errors) {
            name_reached(type_, &mut types, &mut named, &mut scope, diagnostics);
        }
        // Before the names of later operations, which change no earlier ones.
        let declared = errors.add(&name, &spec.errors, &root.errors, &mut scope);
        let constant = scope.take(&screaming(&name));
        let Root { input, output, .. } = root;
        let method = snake_case(spec.name());
        let method = methods.take(&if METHODS.contains(&&*method) { method + "_" } else { method });
        operations.push(Operation { spec, input, output, errors: declared, name, constant, method });
    }
    // After the names of the document.
    let methods = (settings.methods && !operations.is_empty()).then(|| scope.take_camel("Methods"));
    let server = settings.server.filter(|_| !operations.is_empty()).map(|serving| Server {
        name: scope.take_camel("Server"),
        register: scope.take("register_server"),
        is_partial: serving == Serving::Some,
    });
    let mut inside = Scope::default();
    let webhooks = webhooks.into_iter().zip(roots.webhooks).map(|(spec, payload)| {
        name_reached(&payload, &mut types, &mut named, &mut scope, diagnostics);
        let name = inside.take_camel(&upper_camel(spec.name()));
        let constant = scope.take(&format!("{}_WEBHOOK", screaming(&name)));
        Webhook { spec, payload, name, constant }
    });
    let webhooks = webhooks.collect();
    for type_ in &roots.others {
        name_reached(type_, &mut types, &mut named, &mut scope, diagnostics);
    }
    for item in &mut types.items {
        name_members(&mut item.shape);
    }
    let (others, extra, names, errors) = (None, roots.others, HashSet::new(), errors.all);
    let file =
        operations.first().map(|operation: &Operation| operation.spec.namespace().to_owned()).unwrap_or_default();
    Module { file, operations, webhooks, types, definitions, others, names, extra, errors, methods, server, scope }
}

fn name_reached(
    root: &Type,
    types: &mut Types,
    named: &mut [bool],
    scope: &mut Scope,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut stack = Vec::new();
    root.named(&mut stack);
    stack.reverse();
    while let Some(id) = stack.pop() {
        match named.get_mut(id) {
            Some(named) if !*named => *named = true,
            _ => continue,
        }
        let Some(item) = types.items.get_mut(id) else { continue };
        let name = scope.take_camel(&item.name);
        if name != item.name {
            clash(diagnostics, &item.pointer, &item.name, &name);
        }
        item.name = name;
        let mut inner = Vec::new();
        item.shape.types().into_iter().for_each(|type_| type_.named(&mut inner));
        stack.extend(inner.into_iter().rev());
    }
}

fn clash(diagnostics: &mut Vec<Diagnostic>, pointer: &str, wish: &str, name: &str) {
    let message = format!("the name `{wish}` is taken");
    diagnostics.push(Diagnostic::note(pointer, message).with_help(format!("called `{name}`")));
}

/// Assigns the names of fields and variants.
fn name_members(shape: &mut Shape) {
    let mut scope = Scope::default();
    match shape {
        Shape::Pending | Shape::Alias(_) | Shape::Newtype(_) => {}
        Shape::Record(record) => {
            for field in &mut record.fields {
                field.ident = scope.take(&snake_case(&field.json));
            }
            if let Some((ident, _)) = &mut record.extra {
                *ident = scope.take(ident);
            }
        }
        Shape::Names(constants) | Shape::Values(constants) => {
            constants.iter_mut().for_each(|constant| constant.ident = scope.take_camel(&constant.ident));
        }
        Shape::Tagged(tagged) => {
            tagged.variants.iter_mut().for_each(|v| v.variant.ident = scope.take_camel(&v.variant.ident));
        }
        Shape::Union(variants) => {
            variants.iter_mut().for_each(|variant| variant.ident = scope.take_camel(&variant.ident));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use syn::{ImplItem, Item, TraitItem, Type, Visibility};

    use super::*;

    /// Those of traits that are in scope everywhere, or nearly so.
    const PRELUDE: [&str; 7] = ["borrow", "clone", "clone_from", "clone_into", "into", "to_owned", "try_into"];

    /// The macro that makes a caller of a type.
    const MACRO: &str = "impl_caller";

    /// The sources of the runtime, but for its tests.
    fn items() -> Vec<Item> {
        let (mut items, mut queue) = (Vec::new(), Vec::new());
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops-runtime/src")];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    queue.extend(syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap().items);
                }
            }
        }
        while let Some(item) = queue.pop() {
            match item {
                Item::Mod(inner) if inner.ident != "tests" => {
                    queue.extend(inner.content.into_iter().flat_map(|(_, items)| items));
                }
                other => items.push(other),
            }
        }
        items
    }

    /// The name of a type, without what is before and behind it.
    fn name(type_: &Type) -> Option<String> {
        match type_ {
            Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
            _ => None,
        }
    }

    #[test]
    fn every_method_of_a_caller_is_reserved() {
        let items = items();
        let is_caller = |path: &syn::Path| path.segments.last().is_some_and(|last| last.ident == "Caller");
        let callers: BTreeSet<String> = items
            .iter()
            .filter_map(|item| match item {
                Item::Impl(item) if item.trait_.as_ref().is_some_and(|(path, _)| is_caller(path)) => {
                    name(&item.self_ty)
                }
                Item::Macro(item) if item.mac.path.is_ident(MACRO) => {
                    let tokens = item.mac.tokens.to_string();
                    Some(tokens.split(',').next().unwrap().trim().to_owned())
                }
                _ => None,
            })
            .collect();
        assert!(callers.len() >= 7 && callers.contains("Registry") && callers.contains("Recorder"), "{callers:?}");

        let mut found: BTreeSet<String> = PRELUDE.iter().map(|name| (*name).to_owned()).collect();
        for item in &items {
            match item {
                Item::Impl(item)
                    if item.trait_.is_none() && callers.contains(&name(&item.self_ty).unwrap_or_default()) =>
                {
                    found.extend(item.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
                            function.sig.receiver().map(|_| function.sig.ident.to_string())
                        }
                        _ => None,
                    }));
                }
                Item::Trait(item) if item.ident == "Caller" => {
                    found.extend(item.items.iter().filter_map(|item| match item {
                        TraitItem::Fn(function) => function.sig.receiver().map(|_| function.sig.ident.to_string()),
                        _ => None,
                    }));
                }
                Item::Macro(item) if item.ident.as_ref().is_some_and(|ident| ident == MACRO) => {
                    let tokens = item.mac.tokens.to_string();
                    let words: Vec<&str> = tokens.split_whitespace().collect();
                    found.extend(words.windows(4).filter_map(|words| match words {
                        ["pub", "fn", name, _] | ["pub", "async", "fn", name] => {
                            Some(name.split(['<', '(']).next().unwrap().to_owned())
                        }
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        let reserved: BTreeSet<String> = METHODS.iter().map(|name| (*name).to_owned()).collect();
        let missing: Vec<_> = found.difference(&reserved).collect();
        let needless: Vec<_> = reserved.difference(&found).collect();
        assert!(missing.is_empty(), "callers have these methods, which are not in the list: {missing:?}");
        assert!(needless.is_empty(), "no caller has these methods, which are in the list: {needless:?}");
        assert!(METHODS.is_sorted());
    }
}
