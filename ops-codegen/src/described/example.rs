//! A call in Rust as an example: the operation's method, with an input that sets what is required.

use crate::module::{Module, Operation};
use crate::names::{rest, snake_case};
use crate::types::{Constant, Field, Record, Shape, Type};

/// An example makes at most this many values; a required property of a large one is left to do.
const ROOM: usize = 64;

/// Values lie in values at most this deep.
const DEPTH: usize = 12;

/// The module of a namespace, which a program may call as it likes.
pub(super) fn module_name(namespace: &str) -> String {
    snake_case(namespace)
}

/// The call of an operation's method, by a value called `client`.
pub(super) fn call(module: &Module, operation: &Operation) -> String {
    let mut example = Example { module, path: module_name(operation.spec.namespace()), room: ROOM, open: Vec::new() };
    let input = example.input(&operation.input);
    format!("client.{}({input}).await?", operation.method)
}

struct Example<'m> {
    module: &'m Module,
    path: String,
    room: usize,
    /// The named types that are being made, of which a list need have none.
    open: Vec<usize>,
}

impl<'m> Example<'m> {
    /// The argument of a method: the one thing that is required, where there is one.
    fn input(&mut self, input: &Type) -> String {
        let Some(record) = self.record(input) else { return self.plain(input) };
        if record.fields.is_empty() && record.extra.is_none() {
            return String::new();
        }
        let mut required = record.fields.iter().filter(|field| field.is_set());
        match (required.next(), required.next()) {
            (None, _) if !record.fields.is_empty() => "()".to_owned(),
            (Some(field), None) => match self.module.types.resolve(&field.type_) {
                Type::String => "\"text\"".to_owned(),
                Type::Option(_) | Type::Unit => self.plain(input),
                _ => self.plain(&field.type_),
            },
            _ => self.plain(input),
        }
    }

    /// The record that an input is.
    fn record(&self, input: &Type) -> Option<&'m Record> {
        let Type::Named(id) = input else { return None };
        match &self.module.types.get(*id)?.shape {
            Shape::Record(record) => Some(record),
            _ => None,
        }
    }

    /// A value of a type; one that would be too large is left to do.
    fn plain(&mut self, type_: &Type) -> String {
        self.value(type_, 0).unwrap_or_else(|| "todo!()".to_owned())
    }

    /// A value of a type, without the types' conversions; `None` if it is too large.
    fn value(&mut self, type_: &Type, depth: usize) -> Option<String> {
        self.room = self.room.checked_sub(1).filter(|_| depth < DEPTH)?;
        Some(match self.module.types.resolve(type_) {
            Type::Unit => "()".to_owned(),
            Type::Bool => "true".to_owned(),
            Type::I32 | Type::I64 | Type::U32 | Type::U64 => "1".to_owned(),
            Type::F64 => "1.5".to_owned(),
            Type::String => "\"text\".to_owned()".to_owned(),
            Type::Format(_) | Type::Block | Type::Custom(_) => return None,
            Type::Body => "ops_runtime::Body::from(\"text\")".to_owned(),
            Type::Value => "serde_json::json!({})".to_owned(),
            Type::List(item) => self.list(item, depth),
            Type::Map(_) => "std::collections::BTreeMap::new()".to_owned(),
            Type::Option(_) => "None".to_owned(),
            Type::Tuple(items) => {
                let items: Option<String> =
                    items.iter().map(|item| Some(format!("{}, ", self.held(item, depth + 1)?))).collect();
                format!("({})", items?.trim_end())
            }
            Type::Named(id) | Type::Boxed(id) => return self.named(*id, depth),
        })
    }

    /// A value with the pointer that its type asks for.
    fn held(&mut self, type_: &Type, depth: usize) -> Option<String> {
        let value = self.value(type_, depth)?;
        Some(if matches!(type_, Type::Boxed(_)) { format!("Box::new({value})") } else { value })
    }

    /// A list of one item, as schemas often ask for one; an empty one if its item would be too large.
    fn list(&mut self, item: &Type, depth: usize) -> String {
        let room = self.room;
        match self.held(item, depth + 1) {
            Some(item) => format!("vec![{item}]"),
            None => {
                self.room = room;
                "vec![]".to_owned()
            }
        }
    }

    fn named(&mut self, id: usize, depth: usize) -> Option<String> {
        if self.open.contains(&id) {
            return None;
        }
        self.open.push(id);
        let made = self.made(id, depth);
        self.open.pop();
        made
    }

    fn made(&mut self, id: usize, depth: usize) -> Option<String> {
        let item = self.module.types.get(id)?;
        let path = format!("{}::{}", self.path, item.name);
        match &item.shape {
            Shape::Pending => None,
            Shape::Alias(inner) => self.value(inner, depth + 1),
            Shape::Newtype(inner) => Some(format!("{path}({})", self.held(inner, depth + 1)?)),
            Shape::Record(record) if record.fields.iter().any(Field::is_set) => {
                let required = record.fields.iter().filter(|field| field.is_set());
                let values: Option<Vec<String>> = required
                    .map(|field| match self.module.types.resolve(&field.type_) {
                        Type::String => Some("\"text\"".to_owned()),
                        // Its own pointer is the function's to make.
                        _ => self.value(&field.type_, depth + 1),
                    })
                    .collect();
                Some(format!("{path}::new({})", values?.join(", ")))
            }
            Shape::Record(record) if record.fields.is_empty() && record.extra.is_none() => Some(format!("{path} {{}}")),
            Shape::Record(_) => Some(format!("{path}::default()")),
            Shape::Names(constants) => Some(match constants.first() {
                Some(constant) => format!("{path}::{}", constant.ident),
                None => format!("{path}::{}(\"text\".to_owned())", other(constants)),
            }),
            Shape::Values(constants) => Some(match constants.first() {
                Some(constant) => format!("{path}::{}", constant.ident),
                None => format!("{path}::{}(serde_json::json!(1))", other(constants)),
            }),
            Shape::Tagged(tagged) => {
                let variants = tagged.variants.iter().map(|tagged| &tagged.variant);
                self.variant(&path, variants, depth)
            }
            Shape::Union(variants) => self.variant(&path, variants.iter(), depth),
        }
    }

    /// A value of the first variant that is not too large.
    fn variant<'v>(
        &mut self,
        path: &str,
        mut variants: impl Iterator<Item = &'v crate::types::Variant>,
        depth: usize,
    ) -> Option<String> {
        variants
            .find_map(|variant| Some(format!("{path}::{}({})", variant.ident, self.held(&variant.type_, depth + 1)?)))
    }
}

/// The variant for other values.
fn other(constants: &[Constant]) -> String {
    rest(constants.iter().map(|constant| constant.ident.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_names_a_module() {
        for (namespace, wanted) in [("git-hub.2", "git_hub_2"), ("2go", "n2go"), ("type", "type_"), ("Shop", "shop")] {
            assert_eq!(module_name(namespace), wanted);
        }
    }
}
