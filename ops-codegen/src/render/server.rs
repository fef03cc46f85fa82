//! The trait of a server, and the function that registers an implementation.

use ops_runtime::spec::OperationKind;
use serde_json::Value;

use super::{Renderer, docs};
use crate::module::{Operation, Server};
use crate::types::{Shape, Type, Variant};

impl Renderer<'_> {
    pub(super) fn server(&mut self) {
        let Some(server) = &self.module.server else { return };
        let Server { name, register, is_partial } = server;
        let mut source = docs::line("The operations of this module as a server answers them, each by a method.");
        source.push_str(&docs::line(""));
        source.push_str(&docs::line(&format!("[`{register}`] makes an implementation the handlers of a registry.")));
        source.push_str(&docs::line(if *is_partial {
            "A method that is left out fails with `NOT_IMPLEMENTED`."
        } else {
            "The declared errors of an operation become a `CallError`, by `?` or `.into()`."
        }));
        source.push_str("#[allow(dead_code, deprecated)]\n");
        let (send, sync) = (self.prelude("Send"), self.prelude("Sync"));
        source.push_str(&format!("pub trait {name}: {send} + {sync} + 'static {{\n"));
        for operation in &self.module.operations {
            source.push_str(&docs::inner(&self.server_method(operation, *is_partial)));
        }
        source.push('}');
        self.push(&source);

        let mut source =
            docs::line(&format!("Registers every operation of this module, run by the methods of a [`{name}`]."));
        source.push_str(&docs::line(""));
        source.push_str(&docs::line("# Errors"));
        source.push_str(&docs::line("If one of the operations is registered already."));
        source.push_str("#[allow(dead_code, deprecated)]\n");
        let result = self.prelude("Result");
        source.push_str(&format!(
            "pub fn {register}(registry: &ops::Registry, server: impl {name}) -> {result}<(), ops::RegistryError> {{\n"
        ));
        source.push_str("    let server = ::std::sync::Arc::new(server);\n    registry.register_all([\n");
        for operation in &self.module.operations {
            source.push_str(&self.registration(operation, name));
        }
        source.push_str("    ])\n}");
        self.push(&source);
    }

    fn server_method(&self, operation: &Operation, is_partial: bool) -> String {
        let Operation { spec, name, method, .. } = operation;
        let (input, output) = (self.type_(&operation.input), self.type_(&operation.output));
        let output = match spec.kind {
            OperationKind::Subscription => format!("ops::ItemStream<{output}>"),
            _ => output,
        };
        let end = if is_partial {
            format!(" {{\n    _ = (context, input);\n    ops::not_implemented::<{name}, _>()\n}}")
        } else {
            ";".to_owned()
        };
        let (result, send) = (self.prelude("Result"), self.prelude("Send"));
        format!(
            "{}{}fn {method}(&self, context: ops::Context, input: {input}) -> impl ::std::future::Future<Output = \
             {result}<{output}, ops::CallError>> + {send}{end}",
            docs::first(spec),
            self.errors_of(operation)
        )
    }

    fn registration(&self, operation: &Operation, server: &str) -> String {
        let Operation { spec, name, method, .. } = operation;
        let run =
            format!("|server, context, input| async move {{ {server}::{method}(&*server, context, input).await }}");
        if spec.kind == OperationKind::Subscription {
            return format!("        ops::handled_stream::<{name}, _, _, _>(&server, {run}),\n");
        }
        match self.successes(operation) {
            None => format!("        ops::handled::<{name}, _, _, _>(&server, {run}),\n"),
            Some(arms) => {
                let variant = format!("|output| match output {{ {arms} }}");
                format!("        ops::handled_as::<{name}, _, _, _>(&server, {variant}, {run}),\n")
            }
        }
    }

    /// The arms of a match that tells which of the operation's successes an output is; `None` if its type does not tell.
    fn successes(&self, operation: &Operation) -> Option<String> {
        let responses = &operation.spec.http()?.responses;
        if responses.iter().all(|response| response.variant.is_none()) {
            return None;
        }
        let output = self.module.types.resolve(&operation.output);
        let (union, is_optional) = if let Type::Option(inner) = output { (&**inner, true) } else { (output, false) };
        let Type::Named(id) = self.module.types.resolve(union) else { return None };
        let item = self.module.types.get(*id)?;
        let Shape::Union(variants) = &item.shape else { return None };
        // Another union than that of the successes, such as the only one of them that has content.
        if variants.iter().all(|variant| variant.successes.is_empty()) {
            return None;
        }
        let arm = |variant: &Variant| {
            let pattern = format!("{}::{}(_)", item.name, variant.ident);
            let pattern = if is_optional { format!("Some({pattern})") } else { pattern };
            // What may be several successes is told apart by its shape.
            match variant.successes.as_slice() {
                [only] => format!("{pattern} => Some({only})"),
                _ => format!("{pattern} => None"),
            }
        };
        let mut arms: Vec<String> = variants.iter().map(arm).collect();
        if is_optional {
            let output = operation.spec.output.to_value().ok()?;
            let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
            let null = output.get("oneOf").and_then(Value::as_array)?.iter().position(is_null);
            arms.push(null.map_or("None => None".to_owned(), |at| format!("None => Some({at})")));
        }
        Some(arms.join(", "))
    }
}
