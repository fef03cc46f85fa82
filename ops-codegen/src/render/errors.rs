//! The declared errors of operations as enums by status. Operations that declare the same share one.

use super::{Renderer, docs};
use crate::errors::{ErrorEnum, ErrorVariant, Errors};
use crate::types::Type;

impl Renderer<'_> {
    pub(super) fn errors(&mut self) {
        for at in 0..self.module.operations.len() {
            let Some(operation) = self.module.operations.get(at) else { return };
            let Some(Errors { name, same_as }) = &operation.errors else { continue };
            let source = match same_as {
                Some(first) => {
                    let docs = docs::line(&format!("The errors that [`{}`] declares.", operation.name));
                    format!("{docs}pub type {name} = {first};")
                }
                None => match self.module.errors.iter().find(|errors| errors.name == *name) {
                    Some(errors) => self.error_enum(&operation.name, errors),
                    None => continue,
                },
            };
            self.push(&source);
            let allowed = if operation.spec.deprecated { "#[allow(deprecated)]\n" } else { "" };
            self.lines(&format!(
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
        for ErrorVariant { statuses, said, ident, body } in variants {
            source.push_str(&docs::inner(&docs::line(said)));
            let (held, read) = match body {
                Type::Unit => (String::new(), ""),
                body => (format!("({})", self.type_(body)), "(_)"),
            };
            source.push_str(&format!("    {ident}{held},\n"));
            table.push_str(&format!("    {statuses} => {ident}{read},\n"));
        }
        source.push_str(&docs::inner(&docs::line("Any other error response, or one whose body is not as described.")));
        source.push_str(&format!("    {rest}(ops::ErrorResponse),\n}}"));
        self.impls(&(table + "});"));
        source
    }
}
