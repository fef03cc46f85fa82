//! Records: the struct, its table and its default value.

use super::layout::inside;
use super::text::string;
use super::types::scalar;
use super::{Renderer, derived, docs};
use crate::derive::{Derive, Trait};
use crate::names::rest;
use crate::types::{Default, Field, Item, Literal, Record, Shape, Type};

/// A tuple of more parts than this is a tuple of tuples; `Slots` is implemented to here.
const WIDEST: usize = 8;

impl Renderer<'_> {
    #[inline(never)]
    pub(super) fn record(&mut self, item: &Item, record: &Record) {
        self.push(&self.record_struct(item, record));
        let mut source = self.record_impl(item, record);
        let demands = record.fields.iter().any(Field::is_set);
        let default = match (demands, self.inputs.contains(item.name.as_str())) {
            (true, _) => "",
            (false, true) => ", Default, ()",
            (false, false) => ", Default",
        };
        source.push_str(&format!("ops::table!(super::{}{default});", item.name));
        self.has_records = true;
        if demands && item.derives.contains(&Derive::Std(Trait::Default)) {
            source.push_str(&self.default_impl(item, record));
        }
        self.impls(&source);
        self.constructor(item, record);
    }

    fn record_struct(&self, item: &Item, record: &Record) -> String {
        let mut source = docs::of(item);
        for (name, value) in &record.constants {
            if !source.is_empty() {
                source.push_str(&docs::line(""));
            }
            source.push_str(&docs::text_of(&docs::constant(name, value)));
        }
        let fields: Vec<String> =
            record.fields.iter().map(|field| self.field_docs(item, field, &record.fields)).collect();
        if source.is_empty() || fields.iter().any(|docs| !docs.starts_with("///")) {
            source.push_str("#[allow(missing_docs)]\n");
        }
        // `Default` is not derived: the document's defaults are values.
        let derives: Vec<Derive> =
            item.derives.iter().filter(|derive| **derive != Derive::Std(Trait::Default)).cloned().collect();
        source.push_str(&derived("", &derives));
        if derives.contains(&Derive::Std(Trait::Hash)) {
            // `PartialEq` compares the same fields.
            source.push_str("#[allow(clippy::derived_hash_with_manual_eq)]\n");
        }
        source.push_str(&format!("pub struct {} {{", item.name));
        if !record.fields.is_empty() || record.extra.is_some() {
            source.push('\n');
        }
        for (field, docs) in record.fields.iter().zip(&fields) {
            source.push_str(&docs::inner(docs));
            source.push_str(&format!("    pub {}: {},\n", field.ident, self.field_type(field)));
        }
        if let Some((ident, values)) = &record.extra {
            source.push_str(&docs::inner(&docs::line("All other properties.")));
            source.push_str(&format!("    pub {ident}: {},\n", self.type_(&Type::Map(Box::new(values.clone())))));
        }
        source.push('}');
        source
    }

    fn field_docs(&self, item: &Item, field: &Field, all: &[Field]) -> String {
        let tags = self.tags.get(&(item.name.as_str(), field.json.as_str()));
        docs::of_field(field, tags.map(Vec::as_slice).unwrap_or_default(), all)
    }

    fn field_type(&self, field: &Field) -> String {
        let type_ = self.type_(&field.type_);
        if field.is_optional() { format!("{}<{type_}>", self.prelude("Option")) } else { type_ }
    }

    /// `Default` of a record with fields that have to be set.
    fn default_impl(&self, item: &Item, record: &Record) -> String {
        let inits = record.fields.iter().map(|field| match field.is_set() {
            true => format!("{}: Default::default()", field.ident),
            false => self.unset(field),
        });
        let rest = record.extra.iter().map(|(ident, _)| format!("{ident}: Default::default()"));
        let body = construct(inits.chain(rest).collect());
        let name = &item.name;
        format!("\nimpl Default for super::{name} {{\n    fn default() -> Self {{\n        {body}\n    }}\n}}")
    }

    fn record_impl(&self, item: &Item, record: &Record) -> String {
        let names = record.fields.iter().map(|field| &field.json).chain(record.constants.iter().map(|(name, _)| name));
        let names: Vec<String> = names.map(|name| string(name)).collect();
        let mut slots: Vec<String> = record.fields.iter().map(|field| self.slot(field)).collect();
        let mut idents: Vec<String> = record.fields.iter().map(|field| field.ident.clone()).collect();
        let mut inits: Vec<String> = record.fields.iter().map(|field| self.init(field)).collect();
        if let Some((ident, values)) = &record.extra {
            slots.push(format!("Rest<{}>", self.inner_type(values)));
            idents.push(ident.clone());
            inits.push(ident.clone());
        }
        let lent: Vec<String> = idents.iter().map(|ident| format!("&self.{ident}")).collect();
        let mut source = format!("impl Record for super::{} {{\n", item.name);
        source.push_str(&format!("    const NAME: &'static str = {};\n", string(&item.name)));
        source.push_str(&format!("    const FIELDS: &'static [&'static str] = &[{}];\n", inside(names, "    ")));
        if !record.constants.is_empty() {
            let constants = record.constants.iter().map(|(_, value)| constant(value)).collect();
            let constants = inside(constants, "    ");
            source.push_str(&format!("    const CONSTANTS: &'static [Literal<'static>] = &[{constants}];\n"));
        }
        source.push_str(&format!("    type Slots = {};\n", tuple(slots, "    ")));
        let pattern = tuple(idents, "    ");
        source.push_str(&format!("    fn make({pattern}: Values<Self>) -> Self {{\n"));
        source.push_str(&format!("        {}\n    }}\n", construct(inits)));
        source.push_str("    fn fields(&self) -> Fields<'_, Self> {");
        if !lent.is_empty() {
            source.push_str(&format!("\n        {}\n    ", tuple(lent, "        ")));
        }
        source.push_str("}\n}\n");
        source
    }

    /// How the property is read.
    fn slot(&self, field: &Field) -> String {
        let takes_null = self.module.types.takes_null(&field.type_);
        let slot = match (field.is_demanded(), &field.default, takes_null) {
            (true, ..) => "Required",
            (_, Default::Fits(_), true) => "DefaultedNull",
            (_, Default::Fits(_), false) => "Defaulted",
            (_, _, true) => "Nullable",
            (_, _, false) => "Optional",
        };
        format!("{slot}<{}>", self.inner_type(&field.type_))
    }

    /// The field of the new record, from its slot.
    fn init(&self, field: &Field) -> String {
        let ident = &field.ident;
        match &field.default {
            Default::Fits(Literal::Zero) => format!("{ident}: {ident}.unwrap_or_default()"),
            Default::Fits(literal) => {
                let value = self.literal(literal, &field.type_);
                let call = if is_plain(literal) {
                    format!("unwrap_or({value})")
                } else {
                    format!("unwrap_or_else(|| {value})")
                };
                format!("{ident}: {ident}.{call}")
            }
            _ => ident.clone(),
        }
    }

    /// The field of a new record whose value was not set.
    pub(super) fn unset(&self, field: &Field) -> String {
        let ident = &field.ident;
        match &field.default {
            Default::Fits(literal) => format!("{ident}: {}", self.literal(literal, &field.type_)),
            _ => format!("{ident}: None"),
        }
    }

    /// A value of a type as an expression.
    fn literal(&self, literal: &Literal, type_: &Type) -> String {
        let type_ = self.module.types.resolve(type_);
        if let (Type::Boxed(_), Literal::Record { .. } | Literal::Union(..)) = (type_, literal) {
            return format!("Box::new({})", self.named_literal(literal));
        }
        let inner = |type_: &Type, at: usize| match type_ {
            Type::List(inner) | Type::Option(inner) | Type::Map(inner) => (**inner).clone(),
            Type::Tuple(items) => items.get(at).cloned().unwrap_or(Type::Value),
            other => other.clone(),
        };
        let each = |items: &[Literal]| -> Vec<String> {
            items.iter().enumerate().map(|(at, item)| self.literal(item, &inner(type_, at))).collect()
        };
        match literal {
            Literal::Zero => "Default::default()".to_owned(),
            Literal::Bool(bool) => bool.to_string(),
            Literal::Number(number) => number.clone(),
            Literal::Text(text) => owned(text),
            Literal::List(items) => format!("vec![{}]", each(items).join(", ")),
            Literal::Tuple(items) => format!("({},)", each(items).join(", ")),
            Literal::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| format!("({}, {})", owned(key), self.literal(value, &inner(type_, 0))));
                format!("[{}].into_iter().collect()", entries.collect::<Vec<_>>().join(", "))
            }
            Literal::Some(value) => format!("Some({})", self.literal(value, &inner(type_, 0))),
            Literal::Variant(id, at) => {
                let item = self.module.types.get(*id);
                let ident = item.and_then(|item| match &item.shape {
                    Shape::Names(constants) | Shape::Values(constants) => constants.get(*at),
                    _ => None,
                });
                format!("super::{}::{}", self.name(*id), ident.map_or("Other", |constant| constant.ident.as_str()))
            }
            Literal::Other(id, text) => {
                let constants = match self.module.types.get(*id).map(|item| &item.shape) {
                    Some(Shape::Names(constants)) => constants.as_slice(),
                    _ => &[],
                };
                let rest = rest(constants.iter().map(|constant| constant.ident.as_str()));
                format!("super::{}::{rest}({})", self.name(*id), owned(text))
            }
            Literal::Record { .. } | Literal::Union(..) => self.named_literal(literal),
            Literal::Json(value) => json(value),
        }
    }

    /// A record, or a variant of a union, as an expression.
    fn named_literal(&self, literal: &Literal) -> String {
        let shape = |id: usize| self.module.types.get(id).map(|item| &item.shape);
        match literal {
            Literal::Record { id, fields, extra } => {
                let Some(Shape::Record(record)) = shape(*id) else { return String::new() };
                let mut inits = Vec::new();
                for (at, field) in record.fields.iter().enumerate() {
                    let set = fields.iter().find(|(own, _)| *own == at);
                    inits.push(match set.map(|(_, literal)| self.literal(literal, &field.type_)) {
                        Some(value) if field.is_optional() => format!("{}: Some({value})", field.ident),
                        Some(value) => format!("{}: {value}", field.ident),
                        None => self.unset(field),
                    });
                }
                if let Some((ident, type_)) = &record.extra {
                    let map = if extra.is_empty() { Literal::Zero } else { Literal::Map(extra.clone()) };
                    let value = self.literal(&map, &Type::Map(Box::new(type_.clone())));
                    inits.push(format!("{ident}: {value}"));
                }
                format!("super::{} {{ {} }}", self.name(*id), inits.join(", "))
            }
            Literal::Union(id, at, value) => {
                let variant = match shape(*id) {
                    Some(Shape::Union(variants)) => variants.get(*at),
                    Some(Shape::Tagged(tagged)) => tagged.variants.get(*at).map(|tagged| &tagged.variant),
                    _ => None,
                };
                let Some(variant) = variant else { return String::new() };
                format!("super::{}::{}({})", self.name(*id), variant.ident, self.literal(value, &variant.type_))
            }
            _ => String::new(),
        }
    }
}

/// True if the value costs nothing, so that it need not be made on demand.
fn is_plain(literal: &Literal) -> bool {
    match literal {
        Literal::Bool(_) | Literal::Number(_) | Literal::Variant(..) => true,
        Literal::Some(inner) | Literal::Union(_, _, inner) => is_plain(inner),
        Literal::Tuple(items) => items.iter().all(is_plain),
        _ => false,
    }
}

/// The new record.
pub(super) fn construct(inits: Vec<String>) -> String {
    let inits = inside(inits, "        ");
    match inits.chars().next() {
        None => "Self {}".to_owned(),
        Some('\n') => format!("Self {{{inits}}}"),
        Some(_) => format!("Self {{ {inits} }}"),
    }
}

/// A tuple, nested if it is wide.
fn tuple(mut items: Vec<String>, indent: &str) -> String {
    while items.len() > WIDEST {
        items = items.chunks(WIDEST).map(|chunk| tuple(chunk.to_vec(), &format!("{indent}    "))).collect();
    }
    match items.as_slice() {
        [only] => format!("({only},)"),
        _ => format!("({})", inside(items, indent)),
    }
}

/// The single value of a property.
fn constant(value: &serde_json::Value) -> String {
    let literal = scalar(value);
    match value {
        serde_json::Value::String(_) => format!("Literal::Text({literal})"),
        serde_json::Value::Bool(_) => format!("Literal::Boolean({literal})"),
        value if value.is_i64() => format!("Literal::Integer({literal})"),
        _ => format!("Literal::Number({literal})"),
    }
}

fn owned(text: &str) -> String {
    format!("{}.to_owned()", string(text))
}

fn json(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Null => "ops::Value::Null".to_owned(),
        Value::Bool(bool) => format!("ops::Value::Bool({bool})"),
        Value::String(text) => format!("ops::Value::String({})", owned(text)),
        Value::Number(number) if number.is_i64() => format!("ops::Value::from({number}i64)"),
        Value::Number(number) if number.is_u64() => format!("ops::Value::from({number}u64)"),
        Value::Number(number) => format!("ops::Value::from({:?}f64)", number.as_f64().unwrap_or_default()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("ops::Value::Array(vec![{}])", items.join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "ops::Value::Object(Default::default())".to_owned(),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("({}, {})", owned(key), json(value)));
            let entries: Vec<String> = entries.collect();
            format!("ops::Value::Object([{}].into_iter().collect())", entries.join(", "))
        }
    }
}
