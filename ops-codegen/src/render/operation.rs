//! Operations: the struct of each, its spec, and the lists of the module.

use std::collections::HashSet;

use ops_runtime::binding::{
    Binding, HttpBinding, HttpField, HttpFixed, HttpParameter, Literal, McpBinding, McpOutput, ParameterLocation,
    ParameterStyle, SecurityKind, SecurityScheme, StatusRange,
};
use ops_runtime::spec::{ErrorDefinition, OperationKind, OperationSpec, RetryPolicy, Schema, TextList};
use serde_json::Value;

use super::layout::fill;
use super::tables::Tables;
use super::text::{json, string};
use super::{Renderer, docs};
use crate::module::Operation;

impl Renderer<'_> {
    pub(super) fn operations(&mut self) {
        // Operations may share a type of input.
        let mut converted = HashSet::new();
        for operation in &self.module.operations {
            self.operation(operation);
            if converted.insert(&operation.input) {
                self.input_of(operation);
            }
        }
        let others = self.module.others.as_ref();
        let mut all =
            others.into_iter().flat_map(|others| others.iter().chain(self.module.operations.iter().map(|it| &it.spec)));
        if all.next().is_some() {
            let file = string(&format!("{}.others.json", self.module.file));
            self.lines("\n/// The operations that this module leaves out because nothing names them, for calls by id.");
            self.lines("///\n/// They are read at each call; the error is that of a file that was changed.");
            self.lines("#[allow(dead_code)]");
            self.lines("pub fn other_operations() -> ::std::result::Result<::std::vec::Vec<ops::OperationSpec>, ops::ReadError> {");
            self.lines(&format!("    ops::read_operations(::std::include_str!({file}))\n}}"));
        }
        self.lines("\n/// All operations of this module, in the order of the document.");
        if self.module.operations.iter().any(|operation| operation.spec.deprecated) {
            self.lines("#[allow(deprecated)]");
        }
        self.lines("pub fn operations() -> &'static [&'static ops::OperationSpec] {");
        if self.module.operations.is_empty() {
            self.lines("    &[]\n}");
            self.roots();
            return;
        }
        self.lines("    const { &[");
        for operation in &self.module.operations {
            self.lines(&format!("        <{} as ops::Operation>::SPEC,", operation.name));
        }
        self.lines("    ] }\n}");
        self.roots();
    }

    /// Uses every name once, because the code that includes the module need not use all of them.
    fn roots(&mut self) {
        let mut lines = "const _: fn() -> &'static [&'static ops::OperationSpec] = super::operations;\n".to_owned();
        for errors in self.module.operations.iter().filter_map(|operation| operation.errors.as_ref()) {
            lines.push_str(&format!("const _: Option<super::{}> = None;\n", errors.name));
        }
        for type_ in &self.module.extra {
            lines.push_str(&format!("const _: Option<{}> = None;\n", self.inner_type(type_)));
        }
        self.impls(&lines);
    }

    #[inline(never)]
    fn operation(&mut self, operation: &Operation) {
        let Operation { spec, name, constant, .. } = operation;
        let deprecated = if spec.deprecated { "#[deprecated]\n" } else { "" };
        let allowed = if spec.deprecated { "#[allow(deprecated)]\n" } else { "" };
        let docs = docs::of_operation(spec) + &self.errors_of(operation);
        self.push(&format!("{docs}{deprecated}pub struct {name};"));
        let (input, output) = (self.type_(&operation.input), self.type_(&operation.output));
        self.push(&format!("{allowed}impl ops::Operation for {name} {{"));
        self.lines(&format!("    type Input = {input};\n    type Output = {output};"));
        self.lines(&format!("    const SPEC: &'static ops::OperationSpec = &{constant};\n}}"));
        let kind = if spec.kind == OperationKind::Subscription { "Subscribe" } else { "Call" };
        self.impls(&format!("impl ops::{kind} for super::{name} {{}}"));
        let bare = self.module.definitions.is_empty();
        let expression = expression(spec, bare, &mut self.tables);
        self.push(&format!("static {constant}: ops::OperationSpec = {expression};"));
    }

    /// Names the type of the declared errors.
    pub(super) fn errors_of(&self, operation: &Operation) -> String {
        match &operation.errors {
            Some(errors) => docs::line("") + &docs::line(&format!("Errors: [`{}`].", errors.name)),
            None => String::new(),
        }
    }

    /// The table of definitions, sorted by name.
    pub(super) fn definitions(&mut self) {
        // Only operations, webhooks and the schemas of their namespace use them.
        let is_used = !self.module.operations.is_empty() || !self.module.webhooks.is_empty();
        if self.module.definitions.is_empty() || !is_used {
            return;
        }
        self.lines("\nstatic DEFINITIONS: &[ops::Definition] = &[");
        for (name, schema) in &self.module.definitions {
            self.lines(&format!("    ops::Definition::new({}, {}),", string(name), json(schema)));
        }
        self.lines("];");
    }
}

/// Lines of lists that need not have one item each; the schemas beside them are longer.
const WIDTH: usize = 160;

/// The indentation of a binding's steps.
const STEP: &str = "        ";

/// The spec as a chain of const calls.
pub(super) fn expression(spec: &OperationSpec, bare: bool, tables: &mut Tables) -> String {
    let start = match spec.kind {
        OperationKind::Query => "query",
        OperationKind::Subscription => "subscription",
        _ => "mutation",
    };
    let mut chain = format!("ops::OperationSpec::{start}({})", string(&spec.id));
    let mut step = |call: &str, argument: &str| chain.push_str(&format!("\n    .with_{call}({argument})"));
    if let Some(changes) = spec.changes {
        step("changes", &changes.to_string());
    }
    if spec.version != "1.0.0" {
        step("version", &string(&spec.version));
    }
    if let Some(title) = &spec.title {
        step("title", &string(title));
    }
    if !spec.description.is_empty() {
        step("description", &string(&spec.description));
    }
    if !spec.tags.is_empty() {
        step("tags", &texts(&spec.tags));
    }
    for (call, schema) in [("input", &spec.input), ("output", &spec.output)] {
        if !schema.is_any() {
            step(call, &schema_text(schema));
        }
    }
    if !spec.errors.is_empty() {
        step("errors", &list(spec.errors.iter().map(error), "    ", 0));
    }
    let access = access(spec);
    if !access.is_empty() {
        step("access", &format!("ops::AccessControl::NONE{access}"));
    }
    match &spec.binding {
        Binding::Http(http) => step("http", &binding(http, tables)),
        Binding::Mcp(mcp) => step("mcp", &tool(mcp)),
        _ => {}
    }
    if let Some(timeout) = spec.timeout {
        let (seconds, nanos) = (timeout.as_secs(), timeout.subsec_nanos());
        step("timeout", &format!("::std::time::Duration::new({seconds}, {nanos})"));
    }
    if let Some(policy) = spec.retry() {
        step("retry", &format!("const {{ &{} }}", retry(policy)));
    }
    if spec.deprecated {
        step("deprecated", "");
    }
    if !bare {
        step("definitions", "DEFINITIONS");
    }
    chain
}

fn schema_text(schema: &Schema) -> String {
    let value = schema.to_value().map_or(Value::Bool(true), std::borrow::Cow::into_owned);
    format!("ops::Schema::text({})", json(&value))
}

/// A list in a const.
fn list(items: impl Iterator<Item = String>, indent: &str, width: usize) -> String {
    format!("const {{ {} }}", slice(items, indent, width))
}

/// A list of literals: on one line if it is short, else as many items to a line as fit in `width`.
fn slice(items: impl Iterator<Item = String>, indent: &str, width: usize) -> String {
    let items: Vec<String> = items.collect();
    let joined = items.join(", ");
    if items.len() < 2 || indent.len() + joined.len() < width.min(80) {
        return format!("&[{joined}]");
    }
    format!("&[\n{}{indent}]", fill(items.into_iter(), &format!("{indent}    "), width))
}

fn texts(texts: &TextList) -> String {
    slice(texts.iter().map(string), "    ", WIDTH)
}

fn access(spec: &OperationSpec) -> String {
    let access = &spec.access;
    let mut chain = String::new();
    if !access.required_scopes.is_empty() {
        chain.push_str(&format!(".with_scopes({})", texts(&access.required_scopes)));
    }
    if !access.required_scopes_any.is_empty() {
        chain.push_str(&format!(".with_scopes_any({})", texts(&access.required_scopes_any)));
    }
    let (resource, action) = (access.resource_type.as_deref(), access.resource_action.as_deref());
    if resource.or(action).is_some() {
        // Half a rule lets nobody in. Without it the operation would be open, so the other half is a name that nobody has.
        let (resource, action) = (string(resource.unwrap_or_default()), string(action.unwrap_or_default()));
        chain.push_str(&format!(".with_resource({resource}, {action})"));
    }
    chain
}

fn error(error: &ErrorDefinition) -> String {
    let mut chain = format!("ops::ErrorDefinition::new({})", string(&error.code));
    if !error.description.is_empty() {
        chain.push_str(&format!(".with_description({})", string(&error.description)));
    }
    if !error.schema.is_any() {
        chain.push_str(&format!(".with_schema({})", schema_text(&error.schema)));
    }
    if let Some(status) = error.http_status {
        chain.push_str(&format!(".with_http_status({status})"));
    }
    chain
}

fn retry(policy: &RetryPolicy) -> String {
    let duration = |millis: u64| format!("::std::time::Duration::from_millis({millis})");
    let (attempts, factor) = (policy.attempts, policy.factor);
    let (first, longest) = (duration(policy.first_delay), duration(policy.max_delay));
    let mut chain = format!("ops::RetryPolicy::new({attempts}).with_backoff({first}, {longest}).with_factor({factor})");
    if !policy.codes.is_empty() {
        chain.push_str(&format!(".with_codes({})", texts(&policy.codes)));
    }
    if let Some(deadline) = policy.deadline {
        chain.push_str(&format!(".with_deadline({})", duration(deadline)));
    }
    chain
}

fn tool(mcp: &McpBinding) -> String {
    let output = match mcp.output {
        McpOutput::Structured => "Structured",
        McpOutput::Wrapped => "Wrapped",
        _ => "Content",
    };
    format!("ops::McpBinding::new({}, ops::McpOutput::{output})", string(&mcp.tool))
}

fn binding(http: &HttpBinding, tables: &mut Tables) -> String {
    let mut chain = format!("ops::HttpBinding::new({}, {})", string(&http.method), string(&http.path));
    let mut step = |call: &str, argument: &str| chain.push_str(&format!("\n{STEP}.with_{call}({argument})"));
    if let Some(server) = &http.server {
        let mut server = string(server);
        if !http.server_variables.is_empty() {
            let variables = http.server_variables.iter().map(|variable| {
                let start =
                    format!("ops::ServerVariable::new({}, {})", string(&variable.name), string(&variable.default));
                let values = texts(&variable.values);
                if variable.values.is_empty() { start } else { format!("{start}.with_values({values})") }
            });
            let variables = tables.share("VARIABLES", "ops::ServerVariable", variables);
            server.push_str(&format!(").with_server_variables({variables}"));
        }
        step("server", &server);
    }
    if !http.security.is_empty() {
        let requirements = http.security.iter().map(|requirement| {
            let schemes = requirement.schemes.iter().map(scheme);
            format!("ops::SecurityRequirement::new({})", list(schemes, "    ", 0))
        });
        step("security", &tables.share("SECURITY", "ops::SecurityRequirement", requirements));
    }
    if !http.parameters.is_empty() {
        step("parameters", &list(http.parameters.iter().map(parameter), STEP, 0));
    }
    if !http.bodies.is_empty() {
        let bodies = http.bodies.iter().map(|body| {
            let mut chain = format!("ops::HttpBody::new({})", string(&body.content_type));
            if body.is_rest() {
                chain.push_str(".with_rest()");
            } else if body.property != "body" {
                chain.push_str(&format!(".with_property({})", string(&body.property)));
            }
            if !body.fields.is_empty() {
                let fields = list(body.fields.iter().map(field), &format!("{STEP}    "), 0);
                chain.push_str(&format!(".with_fields({fields})"));
            }
            if !body.fixed.is_empty() {
                let fixed = list(body.fixed.iter().map(fixed), &format!("{STEP}    "), 0);
                chain.push_str(&format!(".with_fixed({fixed})"));
            }
            if let Some(variant) = body.variant {
                chain.push_str(&format!(".with_variant({variant})"));
            }
            chain
        });
        step("bodies", &list(bodies, STEP, WIDTH));
    }
    if let Some(property) = &http.content_type {
        step("content_type", &string(property));
    }
    if !http.responses.is_empty() {
        let responses = http.responses.iter().map(|response| {
            let mut chain = match &response.content_type {
                Some(kind) => format!("ops::HttpResponse::new({}, {})", status(response.status), string(kind)),
                None => format!("ops::HttpResponse::empty({})", status(response.status)),
            };
            if let Some(variant) = response.variant {
                chain.push_str(&format!(".with_variant({variant})"));
            }
            if response.whole_event {
                chain.push_str(".with_whole_event()");
            }
            chain
        });
        step("responses", &list(responses, STEP, WIDTH));
    }
    chain
}

fn status(status: StatusRange) -> String {
    match status {
        StatusRange::Exact(status) => format!("ops::StatusRange::Exact({status})"),
        StatusRange::Class(class) => format!("ops::StatusRange::Class({class})"),
        _ => "ops::StatusRange::Default".to_owned(),
    }
}

fn scheme(scheme: &SecurityScheme) -> String {
    let borrowed = |text: &str| format!("::std::borrow::Cow::Borrowed({})", string(text));
    let kind = match &scheme.kind {
        SecurityKind::Basic => "Basic".to_owned(),
        SecurityKind::Bearer => "Bearer".to_owned(),
        SecurityKind::ApiKey { location, name } => {
            let location = match location {
                ParameterLocation::Query => "Query",
                ParameterLocation::Cookie => "Cookie",
                _ => "Header",
            };
            let name = borrowed(name);
            format!("ApiKey {{ location: ops::ParameterLocation::{location}, name: {name} }}")
        }
        SecurityKind::OAuth2 { token_url } => {
            let url = match token_url {
                Some(url) => format!("::std::option::Option::Some({})", borrowed(url)),
                None => "::std::option::Option::None".to_owned(),
            };
            format!("OAuth2 {{ token_url: {url} }}")
        }
        SecurityKind::OpenIdConnect { url } => format!("OpenIdConnect {{ url: {} }}", borrowed(url)),
        SecurityKind::Other(name) => format!("Other({})", borrowed(name)),
        _ => format!("Other({})", borrowed("unknown")),
    };
    let mut chain = format!("ops::SecurityScheme::new({}, ops::SecurityKind::{kind})", string(&scheme.name));
    if !scheme.scopes.is_empty() {
        chain.push_str(&format!(".with_scopes({})", texts(&scheme.scopes)));
    }
    chain
}

fn parameter(parameter: &HttpParameter) -> String {
    let (start, default, explode) = match parameter.location {
        ParameterLocation::Path => ("path", ParameterStyle::Simple, false),
        ParameterLocation::Header => ("header", ParameterStyle::Simple, false),
        ParameterLocation::Cookie => ("cookie", ParameterStyle::Form, true),
        ParameterLocation::QueryString => ("query_string", ParameterStyle::Form, true),
        _ => ("query", ParameterStyle::Form, true),
    };
    let mut chain = format!("ops::HttpParameter::{start}({})", string(&parameter.name));
    if parameter.property != parameter.name {
        chain.push_str(&format!(".with_property({})", string(&parameter.property)));
    }
    if (parameter.style, parameter.explode) != (default, explode) {
        chain.push_str(&style(parameter.style, parameter.explode));
    }
    if parameter.allow_reserved {
        chain.push_str(".with_reserved()");
    }
    if let Some(value) = &parameter.fixed {
        chain.push_str(&format!(".with_fixed({})", literal(value)));
    }
    chain
}

fn fixed(fixed: &HttpFixed) -> String {
    match &fixed.value {
        Some(value) => format!("ops::HttpFixed::new({}, {})", string(&fixed.name), literal(value)),
        None => format!("ops::HttpFixed::absent({})", string(&fixed.name)),
    }
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Bool(value) => format!("ops::Literal::Bool({value})"),
        Literal::Text(text) => format!("ops::Literal::text({})", string(text)),
    }
}

fn field(field: &HttpField) -> String {
    let mut chain = format!("ops::HttpField::new({})", string(&field.name));
    if let Some(content_type) = &field.content_type {
        chain.push_str(&format!(".with_content_type({})", string(content_type)));
    }
    if let Some((kind, explode)) = field.style {
        chain.push_str(&style(kind, explode));
    }
    if field.allow_reserved {
        chain.push_str(".with_reserved()");
    }
    chain
}

fn style(style: ParameterStyle, explode: bool) -> String {
    let style = match style {
        ParameterStyle::Simple => "Simple",
        ParameterStyle::Label => "Label",
        ParameterStyle::Matrix => "Matrix",
        ParameterStyle::SpaceDelimited => "SpaceDelimited",
        ParameterStyle::PipeDelimited => "PipeDelimited",
        ParameterStyle::DeepObject => "DeepObject",
        ParameterStyle::Json => "Json",
        _ => "Form",
    };
    format!(".with_style(ops::ParameterStyle::{style}, {explode})")
}
