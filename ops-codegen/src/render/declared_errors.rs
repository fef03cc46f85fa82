//! The declared errors of operations as enums by status. Operations that declare the same share one.

use super::{Renderer, docs};
use crate::declared_errors::{ErrorEnum, ErrorVariant, Errors};
use crate::types::Type;

impl Renderer<'_> {
    pub(super) fn errors(&mut self) {
        let module = self.module;
        let declared = |operation: &crate::module::Operation, name: &str| {
            operation.errors.as_ref().is_some_and(|errors| errors.declared_as() == name)
        };
        for errors in &module.errors {
            let first = module.operations.iter().find(|operation| declared(operation, &errors.name));
            let operation = first.map_or("an operation", |operation| operation.name.as_str());
            let source = self.error_enum(operation, errors);
            self.push(&source);
        }
        for operation in &module.operations {
            let Some(Errors { name, same_as }) = &operation.errors else { continue };
            if let Some(first) = same_as {
                let docs = docs::line(&format!("The errors that [`{}`] declares.", operation.name));
                self.push(&format!("{docs}pub type {name} = {first};"));
            }
            let allowed = if operation.spec.deprecated { "#[allow(deprecated)]\n" } else { "" };
            self.push(&format!(
                "{allowed}impl ops::DeclaresErrors for {} {{\n    type Error = {name};\n}}",
                operation.name
            ));
        }
    }

    fn error_enum(&mut self, operation: &str, errors: &ErrorEnum) -> String {
        let ErrorEnum { name, variants, rest } = errors;
        let mut source = docs::line(&format!("The errors that [`{operation}`] declares."));
        source.push_str("#[derive(Debug, Clone, PartialEq)]\n");
        let idents: Vec<&str> = variants.iter().map(|variant| variant.ident.as_str()).collect();
        source.push_str(&super::types::allowed(name, &idents, true, false));
        source.push_str(&format!("pub enum {name} {{\n"));
        let mut table = format!("ops::errors!(super::{name}, {rest} {{\n");
        let mut answers = format!("ops::error_answers!(super::{name}, {rest} {{\n");
        for ErrorVariant { statuses, said, answered, ident, body } in variants {
            source.push_str(&docs::inner(&docs::line(said)));
            let (held, read, sent) = match body {
                Type::Unit => (String::new(), "", ""),
                body => (format!("({})", self.type_(body)), "(_)", "(body)"),
            };
            source.push_str(&format!("    {ident}{held},\n"));
            table.push_str(&format!("    {statuses} => {ident}{read},\n"));
            answers.push_str(&format!("    {ident}{sent} = {answered},\n"));
        }
        source.push_str(&docs::inner(&docs::line("Any other error response, or one whose body is not as described.")));
        source.push_str(&format!("    {rest}(ops::ErrorResponse),\n}}"));
        self.impls(&(table + "});"));
        if self.module.server.is_some() {
            self.impls(&(answers + "});"));
        }
        source
    }
}
