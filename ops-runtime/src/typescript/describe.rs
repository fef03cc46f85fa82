//! Operations as functions of TypeScript.

use super::held::Held;
use super::name::{Name, Names};
use super::policy::{Detail, Policy, Words};
use super::print::{Place, Printer};
use super::scope::{Scope, Side};
use super::text;
use super::tree::Type;
use crate::{HttpBody, McpOutput, OperationKind, OperationSpec};

/// A short description has so many bytes at most, where what is required leaves room.
const SHORT: usize = 2_350;

/// An operation whose schemas were read.
pub(super) struct Function<'a> {
    spec: &'a OperationSpec,
    input: (Held<'a>, usize),
    output: (Held<'a>, usize),
}

/// The types of an operation.
pub(super) struct Types {
    input: Type,
    output: Type,
    is_input_optional: bool,
}

impl<'a> Function<'a> {
    /// Reads the schemas of an operation, and what they reach.
    pub(super) fn load(spec: &'a OperationSpec, scope: &mut Scope<'a>) -> Self {
        let (input, output) = (Held::of(&spec.input), Held::of(&spec.output));
        let tables = (scope.load(&input, &spec.definitions), scope.load(&output, &spec.definitions));
        Self { spec, input: (input, tables.0), output: (output, tables.1) }
    }

    pub(super) fn types(&self, scope: &mut Scope<'a>) -> Types {
        let side = match self.spec.directed_http() {
            None => Side::Input,
            Some(http) if http.bodies.iter().any(HttpBody::is_rest) => Side::Request,
            Some(_) => Side::Parts,
        };
        let input = scope.type_of(self.input.0.value(), self.input.1, side);
        let output = match self.has_unknown_output() {
            true => Type::Unknown,
            false => scope.type_of(self.output.0.value(), self.output.1, Side::Output),
        };
        let is_input_optional = !scope.is_demanding(&input, 0);
        Types { input, output, is_input_optional }
    }

    /// Writes the function, without its comment.
    pub(super) fn print(
        &self,
        scope: &Scope<'a>,
        types: &Types,
        name: Name<'_>,
        printer: &mut Printer<'_>,
        indent: usize,
    ) {
        printer.line(indent);
        printer.out.push_str(&format!("function {}(", name.operation));
        let place = Place { indent, is_input: true, is_due: true, depth: 0 };
        if !self.takes_nothing(&types.input) {
            printer.out.push_str(if types.is_input_optional { "input?: " } else { "input: " });
            printer.type_(scope, &types.input, place);
        }
        printer.out.push_str("): Promise<");
        let place = Place { is_input: false, is_due: false, ..place };
        if self.spec.kind == OperationKind::Subscription {
            printer.type_(scope, &Type::Array(Box::new(types.output.clone())), place);
        } else {
            printer.type_(scope, &types.output, place);
        }
        printer.out.push_str(">;");
    }

    /// True for a tool without an output schema: it gives content blocks, or any value if its server sends structured
    /// content all the same.
    fn has_unknown_output(&self) -> bool {
        self.spec.mcp().is_some_and(|mcp| mcp.output == McpOutput::Content)
    }

    /// True if a caller has nothing to give: the input has no property, or, over HTTP, none that has a place in the request. A
    /// body that is the rest of the input is the place of all properties.
    fn takes_nothing(&self, input: &Type) -> bool {
        match input {
            Type::Null => true,
            Type::Object(object) if object.properties.is_empty() => {
                let is_open = object.others.as_deref().is_some_and(|others| *others != Type::Never);
                !is_open || self.spec.http().is_some_and(|http| !http.bodies.iter().any(HttpBody::is_rest))
            }
            _ => false,
        }
    }

    /// The lines of the comment.
    pub(super) fn doc(&self, words: Words, printer: &mut Printer<'_>) -> Vec<String> {
        let spec = self.spec;
        let title = spec.title.as_deref().unwrap_or_default().trim();
        let mut lines = match words {
            Words::Sentences(most, limit) => {
                let text = if spec.description.trim().is_empty() { title } else { spec.description.trim() };
                let (line, is_cut) = text::sentences(text, most, limit);
                printer.is_cut |= is_cut;
                vec![line]
            }
            _ => {
                let mut lines = text::lines(title);
                let text = text::lines(&spec.description);
                if !lines.is_empty() && !text.is_empty() && lines != text {
                    lines.push(String::new());
                }
                if lines != text {
                    lines.extend(text);
                }
                lines
            }
        };
        lines.retain(|line| words == Words::All || !line.is_empty());
        if spec.kind == OperationKind::Subscription {
            lines.push("A stream: gives its first items as a list. One that failed is `{ error }`.".to_owned());
        }
        if self.has_unknown_output() {
            lines.push(
                "Gives content blocks, such as `[{ type: \"text\", text }]`, or any other value: see what comes."
                    .to_owned(),
            );
        }
        if spec.deprecated {
            lines.push("@deprecated".to_owned());
        }
        match words {
            Words::All => lines.extend(spec.errors.iter().map(|error| {
                let text = text::lines(&error.description).join(" ");
                format!("@throws {} {text}", text::comment(&error.code)).trim_end().to_owned()
            })),
            _ if spec.errors.is_empty() => {}
            _ => {
                let codes: Vec<String> =
                    spec.errors.iter().take(12).map(|error| text::sentences(&error.code, 1, 40).0).collect();
                let more = if spec.errors.len() > 12 { ", ..." } else { "" };
                lines.push(format!("@throws {}{more}", codes.join(", ")));
            }
        }
        lines
    }
}

/// Describes an operation; see [`super::describe`].
pub(super) fn describe(spec: &OperationSpec, detail: Detail, names: &Names) -> String {
    let mut scope = Scope::default();
    let function = Function::load(spec, &mut scope);
    scope.direct();
    let types = function.types(&mut scope);
    let own = Names::new([&spec.id]);
    let Some(name) = names.name(&spec.id).or_else(|| own.name(&spec.id)) else { return String::new() };
    let mut write = |policy: &Policy| {
        let mut body = Printer::new(policy);
        function.print(&scope, &types, name, &mut body, 2);
        body.named(&mut scope, 2);
        // What was cut is known at the end, and told at the beginning.
        let mut head = Printer::new(policy);
        let mut doc = function.doc(policy.operation, &mut head);
        if head.is_cut || body.is_cut {
            let told = match detail {
                Detail::Short => "Cut: to describe it with the detail \"whole\" gives all of it.",
                Detail::Whole => "Cut: it is too large to be shown whole.",
            };
            doc.push(told.to_owned());
        }
        head.comment(&doc, 2);
        format!("declare namespace ops.{} {{{}{}\n}}\n", name.namespace, head.out, body.out)
    };
    if detail == Detail::Whole {
        return write(&Policy::whole());
    }
    let mut last = String::new();
    for policy in Policy::short() {
        last = write(&policy);
        if last.len() <= SHORT {
            break;
        }
    }
    last
}
