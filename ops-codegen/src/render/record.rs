//! Records: the struct, its table and what it is by default.

use super::layout::{inside, lines};
use super::text::string;
use super::{Renderer, docs};
use crate::Error;
use crate::types::{Default, Field, Item, Literal, Record, Shape, Type};

impl Renderer<'_> {
    pub(super) fn record(&mut self, item: &Item, record: &Record) -> Result<(), Error> {
        self.push(&self.record_struct(item, record))?;
        let mut source = self.record_default(item, record).unwrap_or_default();
        source.push_str(&self.record_impl(item, record));
        source.push_str(&format!("ops::record!(super::{});", item.name));
        self.has_records = true;
        self.impls(&source);
        Ok(())
    }

    fn record_struct(&self, item: &Item, record: &Record) -> String {
        let default = if derives_default(record) { ", Default" } else { "" };
        let mut source = docs::of(item);
        source.push_str(&format!("#[derive(Debug, Clone, PartialEq{default})] pub struct {} {{", item.name));
        for field in &record.fields {
            source.push_str(&docs::of_field(field));
            source.push_str(&format!("pub {}: {},", field.ident, self.field_type(field)));
        }
        if let Some((ident, values)) = &record.extra {
            source.push_str(&docs::line("All other properties."));
            source.push_str(&format!("pub {ident}: {},", self.type_(&Type::Map(Box::new(values.clone())))));
        }
        source.push('}');
        source
    }

    fn field_type(&self, field: &Field) -> String {
        let type_ = self.type_(&field.type_);
        if field.is_optional() { format!("{}<{type_}>", self.prelude("Option")) } else { type_ }
    }

    fn record_impl(&self, item: &Item, record: &Record) -> String {
        let names: Vec<String> = record.fields.iter().map(|field| string(&field.json)).collect();
        let count = names.len();
        let index = if count == 0 {
            "    fn index(_: &str) -> usize {\n        0\n    }\n".to_owned()
        } else {
            let arms = names.iter().enumerate().map(|(i, name)| format!("{name} => {i}"));
            let arms = lines(arms.chain([format!("_ => {count}")]), "            ");
            format!("    fn index(name: &str) -> usize {{\n        match name {{\n{arms}        }}\n    }}\n")
        };
        let writer = if count == 0 && record.extra.is_none() { "_" } else { "m" };
        let mut source = format!("impl Record for super::{} {{\n", item.name);
        source.push_str(&format!("    const NAME: &'static str = {};\n", string(&item.name)));
        source.push_str(&format!("    const FIELDS: &'static [&'static str] = &[{}];\n", inside(names, "    ")));
        source.push_str(&index);
        source.push_str("    #[inline]\n");
        source.push_str("    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {\n");
        source.push_str(&self.read(record));
        source.push_str("    }\n");
        let arguments = format!("&self, {writer}: &mut M");
        source.push_str(&format!("    fn write<M: SerializeMap>({arguments}) -> Result<(), M::Error> {{\n"));
        source.push_str(&write(record));
        source.push_str("    }\n}\n");
        source
    }

    /// The body of `read`.
    fn read(&self, record: &Record) -> String {
        let fields = &record.fields;
        let extra = record.extra.as_ref().map(|(ident, _)| ident.as_str());
        let mut body = String::new();
        if let Some(ident) = extra {
            body.push_str(&format!("        let mut {ident} = ::std::collections::BTreeMap::new();\n"));
        }
        let next = extra.map_or_else(|| "m.next()?".to_owned(), |ident| format!("m.next_or(&mut {ident})?"));
        let inits = fields.iter().map(|field| self.init(field)).chain(extra.map(str::to_owned)).collect::<Vec<_>>();
        if fields.is_empty() {
            body.push_str(&format!("        while {next}.is_some() {{\n            m.skip()?;\n        }}\n"));
            body.push_str(&format!("        Ok({})\n", construct(inits, "        ")));
            return body;
        }
        let arms = (0..fields.len()).map(|i| format!("{i} => m.put(&mut s.{i})"));
        let arms = lines(arms.chain(["_ => m.skip()".to_owned()]), "                ");
        body.push_str(&format!(
            "        let mut s = ({});\n",
            tuple(vec!["None".to_owned(); fields.len()], "        ")
        ));
        body.push_str(&format!(
            "        while let Some(i) = {next} {{\n            match i {{\n{arms}            }}?;\n        }}\n"
        ));
        let pattern = |field: &Field| {
            if demanded(field) { format!("Some({})", field.ident) } else { field.ident.clone() }
        };
        let pattern: Vec<String> = fields.iter().map(pattern).collect();
        let missing = fields.iter().enumerate().filter(|(_, field)| demanded(field));
        let missing: Vec<String> = missing.map(|(i, _)| format!("({i}, s.{i}.is_none())")).collect();
        if missing.is_empty() {
            body.push_str(&format!("        let ({}) = s;\n", tuple(pattern, "        ")));
            body.push_str(&format!("        Ok({})\n", construct(inits, "        ")));
            return body;
        }
        let (pattern, inits) = (tuple(pattern, "            "), construct(inits, "            "));
        body.push_str(&format!("        match s {{\n            ({pattern}) => Ok({inits}),\n"));
        body.push_str(&format!(
            "            s => Err(m.missing(&[{}])),\n        }}\n",
            inside(missing, "            ")
        ));
        body
    }

    /// The field of the new record, from its slot.
    fn init(&self, field: &Field) -> String {
        let ident = &field.ident;
        // `null` stands for nothing where the type has no place for it.
        let flat = if self.module.types.takes_null(&field.type_) { "" } else { ".flatten()" };
        match &field.default {
            Default::Fits(Literal::Zero) => format!("{ident}: {ident}{flat}.unwrap_or_default()"),
            Default::Fits(literal) => {
                let lazy = !is_plain(literal);
                let value = self.literal(literal, &field.type_);
                let call = if lazy { format!("unwrap_or_else(|| {value})") } else { format!("unwrap_or({value})") };
                format!("{ident}: {ident}{flat}.{call}")
            }
            _ if field.required || flat.is_empty() => ident.clone(),
            _ => format!("{ident}: {ident}{flat}"),
        }
    }

    /// The impl of `Default`, where the record has one that cannot be derived.
    fn record_default(&self, item: &Item, record: &Record) -> Option<String> {
        if derives_default(record) {
            return None;
        }
        let fields = record.fields.iter().map(|field| {
            let value = match &field.default {
                Default::Fits(Literal::Zero) => "Default::default()".to_owned(),
                Default::Fits(literal) => self.literal(literal, &field.type_),
                _ if !field.required => "None".to_owned(),
                _ => self.only_value(&field.type_)?,
            };
            Some(format!("{}: {value}", field.ident))
        });
        let mut fields = fields.collect::<Option<Vec<String>>>()?;
        if let Some((ident, _)) = &record.extra {
            fields.push(format!("{ident}: Default::default()"));
        }
        let value = construct(fields, "        ");
        let start = format!("impl Default for super::{} {{\n    fn default() -> Self {{\n", item.name);
        Some(format!("{start}        {value}\n    }}\n}}\n"))
    }

    /// The one value of a type that has only one.
    fn only_value(&self, type_: &Type) -> Option<String> {
        let Type::Named(id) = self.module.types.resolve(type_) else { return None };
        let item = self.module.types.get(*id)?;
        match &item.shape {
            Shape::Names(constants) | Shape::Values(constants) => match constants.as_slice() {
                [only] => Some(format!("super::{}::{}", item.name, only.ident)),
                _ => None,
            },
            _ => None,
        }
    }

    /// A value of a type as an expression.
    fn literal(&self, literal: &Literal, type_: &Type) -> String {
        let type_ = self.module.types.resolve(type_);
        let inner = |type_: &Type, at: usize| match type_ {
            Type::List(inner) | Type::Option(inner) => (**inner).clone(),
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
            Literal::Some(value) => format!("Some({})", self.literal(value, &inner(type_, 0))),
            Literal::Variant(id, at) => {
                let item = self.module.types.get(*id);
                let ident = item.and_then(|item| match &item.shape {
                    Shape::Names(constants) | Shape::Values(constants) => constants.get(*at),
                    _ => None,
                });
                format!("super::{}::{}", self.name(*id), ident.map_or("Other", |constant| constant.ident.as_str()))
            }
            Literal::Json(value) => json(value),
        }
    }
}

/// Whether the value is there at no cost, so that it need not be made on demand.
fn is_plain(literal: &Literal) -> bool {
    match literal {
        Literal::Bool(_) | Literal::Number(_) | Literal::Variant(..) => true,
        Literal::Some(inner) => is_plain(inner),
        Literal::Tuple(items) => items.iter().all(is_plain),
        _ => false,
    }
}

/// Whether the type demands the property when it is read.
fn demanded(field: &Field) -> bool {
    field.required && !matches!(field.default, Default::Fits(_))
}

fn derives_default(record: &Record) -> bool {
    record.fields.iter().all(|field| match &field.default {
        Default::Fits(literal) => *literal == Literal::Zero,
        _ => !field.required,
    })
}

/// The body of `write`.
fn write(record: &Record) -> String {
    let mut calls: Vec<String> = Vec::new();
    for field in &record.fields {
        let put = if field.is_optional() { "put_some" } else { "put" };
        calls.push(format!("        {put}(m, {}, &self.{})", string(&field.json), field.ident));
    }
    if let Some((ident, _)) = &record.extra {
        calls.push(format!("        put_extra::<Self, _, _>(m, &self.{ident})"));
    }
    if calls.is_empty() { "        Ok(())\n".to_owned() } else { calls.join("?;\n") + "\n" }
}

/// The new record.
fn construct(inits: Vec<String>, indent: &str) -> String {
    let inits = inside(inits, indent);
    match inits.chars().next() {
        None => "Self {}".to_owned(),
        Some('\n') => format!("Self {{{inits}}}"),
        Some(_) => format!("Self {{ {inits} }}"),
    }
}

/// The inside of a tuple, which of one item needs a comma.
fn tuple(items: Vec<String>, indent: &str) -> String {
    match items.as_slice() {
        [only] => format!("{only},"),
        _ => inside(items, indent),
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
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("({}, {})", owned(key), json(value)));
            let entries: Vec<String> = entries.collect();
            format!("[{}].into_iter().collect::<ops::Value>()", entries.join(", "))
        }
    }
}
