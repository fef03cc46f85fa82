//! How callers make inputs: `new` with the required values, and conversions from the main value of a type.

use std::collections::HashMap;

use ops_runtime::binding::Binding;

use super::Renderer;
use super::layout::inside;
use super::record::construct;
use crate::kinds::kinds;
use crate::module::Operation;
use crate::types::{Field, Item, Record, Shape, Type, Types, Variant};

/// Clippy's limit for parameters.
const MANY: usize = 7;

impl Renderer<'_> {
    /// `new` of a record that an input reaches, if something is required.
    pub(super) fn constructor(&mut self, item: &Item, record: &Record) {
        let required: Vec<&Field> = record.fields.iter().filter(|field| field.is_set()).collect();
        if !item.sent || required.is_empty() {
            return;
        }
        let parameters = required.iter().map(|field| format!("{}: {}", field.ident, self.parameter(&field.type_)));
        let parameters = inside(parameters.collect(), "    ");
        let inits = record.fields.iter().map(|field| match field.is_set() {
            true => self.taken(&field.ident, &field.type_),
            false => self.unset(field),
        });
        let rest = record.extra.iter().map(|(ident, _)| format!("{ident}: Default::default()"));
        let body = construct(inits.chain(rest).collect());
        let all = required.len() == record.fields.len();
        let docs = if all { "Sets every property." } else { "Sets what is required, and nothing else." };
        let allowed = if required.len() > MANY { "    #[allow(clippy::too_many_arguments)]\n" } else { "" };
        self.impls(&format!(
            "impl super::{} {{\n    /// {docs}\n    #[must_use]\n{allowed}    pub fn new({parameters}) -> Self {{\n        \
             {body}\n    }}\n}}",
            item.name
        ));
    }

    /// The conversion to an operation's input from the one property that it requires, or from the two; if it requires none,
    /// from the body that most calls have. Its table has the one from `()`.
    pub(super) fn input_of(&mut self, operation: &Operation) {
        let Type::Named(id) = &operation.input else { return };
        let Some(item) = self.module.types.get(*id) else { return };
        let Shape::Record(record) = &item.shape else { return };
        let mut required = record.fields.iter().filter(|field| field.is_set());
        match (required.next(), required.next(), required.next()) {
            (None, ..) => {
                if let Some(body) = self.optional_body(operation, record) {
                    let alone = record.fields.len() == 1 && record.extra.is_none();
                    let rest = if alone { "" } else { ", ..Self::default()" };
                    let made = format!("Self {{ {}: Some(value){rest} }}", body.ident);
                    self.impls(&conversion(&self.inner_type(&body.type_), &item.name, &made));
                }
            }
            (Some(first), Some(second), None) => self.input_of_pair(&item.name, [first, second]),
            (Some(field), None, _) => {
                let made = "Self::new(value)";
                let source = match self.module.types.resolve(&field.type_) {
                    Type::String => format!(
                        "impl<T: Into<String>> From<T> for super::{} {{\n    fn from(value: T) -> Self {{\n        {made}\n    }}\n}}",
                        item.name
                    ),
                    Type::Option(_) | Type::Unit => return,
                    // The input requires itself, and every type has the conversion from itself.
                    _ if self.module.types.plain(&field.type_) == Some(Type::Named(*id)) => return,
                    _ => conversion(&self.inner_type(&unboxed(&field.type_)), &item.name, made),
                };
                self.impls(&source);
            }
            (Some(_), Some(_), Some(_)) => {}
        }
    }

    /// The body of a request that may have none, if it has a type of its own. Documents often forget that it is required.
    fn optional_body<'r>(&self, operation: &Operation, record: &'r Record) -> Option<&'r Field> {
        let Binding::Http(http) = &operation.spec.binding else { return None };
        let property = &http.bodies.first()?.property;
        let field = record.fields.iter().find(|field| field.json == **property && field.is_optional())?;
        let Type::Named(id) = &field.type_ else { return None };
        let shape = &self.module.types.get(*id)?.shape;
        matches!(shape, Shape::Record(_) | Shape::Union(_) | Shape::Tagged(_)).then_some(field)
    }

    fn input_of_pair(&mut self, name: &str, fields: [&Field; 2]) {
        let mut generics = Vec::new();
        let parts = fields.iter().zip(["A", "B"]).map(|(field, parameter)| {
            let inner = self.inner_type(&unboxed(&field.type_));
            if !self.converts(&field.type_) {
                return inner;
            }
            generics.push(format!("{parameter}: Into<{inner}>"));
            parameter.to_owned()
        });
        let pair = parts.collect::<Vec<_>>().join(", ");
        let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
        self.impls(&format!(
            "impl{generics} From<({pair})> for super::{name} {{\n    fn from((a, b): ({pair})) -> Self {{\n        \
             Self::new(a, b)\n    }}\n}}"
        ));
    }

    /// The conversions to a union from the types of its variants that no other variant has.
    pub(super) fn variants_of(&mut self, item: &Item, variants: &[&Variant]) {
        if !item.sent {
            return;
        }
        let types = &self.module.types;
        let plain = |variant: &Variant| types.plain(&variant.type_);
        // As they are written: a type of the user's may stand for several schemas.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for type_ in variants.iter().filter_map(|variant| plain(variant)) {
            *counts.entry(self.inner_type(&type_)).or_default() += 1;
        }
        let is_declared = |variant: &Variant| matches!(plain(variant), Some(Type::Named(_)));
        let strangers: Vec<&Variant> = variants.iter().copied().filter(|variant| !is_declared(variant)).collect();
        let mut all = Vec::new();
        for variant in variants {
            let is_only = |plain: &Type| counts.get(&self.inner_type(plain)) == Some(&1);
            let Some(plain) = plain(variant).filter(is_only) else { continue };
            if plain.has_custom() && may_be_one(types, variant, &strangers) {
                continue;
            }
            let itself = matches!(&plain, Type::Named(id) if self.name(*id) == item.name);
            if itself || matches!(plain, Type::Option(_) | Type::Unit) {
                continue;
            }
            let made = |value: &str| format!("Self::{}({value})", variant.ident);
            if plain == Type::String {
                // Not from all that becomes a string: that might be another variant's type.
                all.push(conversion("&str", &item.name, &made("value.to_owned()")));
            }
            let value = if matches!(variant.type_, Type::Boxed(_)) { "Box::new(value)" } else { "value" };
            all.push(conversion(&self.inner_type(&unboxed(&variant.type_)), &item.name, &made(value)));
        }
        all.iter().for_each(|source| self.impls(source));
    }

    /// The type of a parameter: the property's, or anything that becomes one where there is more than one form.
    fn parameter(&self, type_: &Type) -> String {
        let inner = self.inner_type(&unboxed(type_));
        if self.converts(type_) { format!("impl Into<{inner}>") } else { inner }
    }

    fn taken(&self, ident: &str, type_: &Type) -> String {
        let value = self.taken_value(ident, type_);
        if value == ident { value } else { format!("{ident}: {value}") }
    }

    fn taken_value(&self, ident: &str, type_: &Type) -> String {
        let value = if self.converts(type_) { format!("{ident}.into()") } else { ident.to_owned() };
        if matches!(type_, Type::Boxed(_)) { format!("Box::new({value})") } else { value }
    }

    fn converts(&self, type_: &Type) -> bool {
        match self.module.types.resolve(type_) {
            Type::String | Type::Body | Type::Value => true,
            Type::Named(id) | Type::Boxed(id) => matches!(
                self.module.types.get(*id).map(|item| &item.shape),
                Some(Shape::Names(_) | Shape::Union(_) | Shape::Tagged(_))
            ),
            _ => false,
        }
    }
}

/// True if a variant with a type of the user's may have the type of one of the others, since only the compiler knows what it
/// is: if both take the same kind of JSON values.
fn may_be_one(types: &Types, variant: &Variant, others: &[&Variant]) -> bool {
    // Whole numbers are numbers, too.
    let shape = |name: &'static str| if name == "Integer" { "Number" } else { name };
    let shapes = |variant: &Variant| kinds(types, &variant.type_).into_iter().map(move |kind| shape(kind.name));
    let own: Vec<&str> = shapes(variant).collect();
    let is_like = |name: &str| name == "Any" || own.contains(&"Any") || own.contains(&name);
    others.iter().filter(|other| !std::ptr::eq(**other, variant)).any(|other| shapes(other).any(is_like))
}

fn conversion(from: &str, to: &str, made: &str) -> String {
    format!("impl From<{from}> for super::{to} {{\n    fn from(value: {from}) -> Self {{\n        {made}\n    }}\n}}")
}

/// The type without its pointer.
fn unboxed(type_: &Type) -> Type {
    if let Type::Boxed(id) = type_ { Type::Named(*id) } else { type_.clone() }
}
