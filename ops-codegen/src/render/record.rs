//! Records: the struct, its table and what it is by default.

use super::text::string;
use super::{Renderer, docs};
use crate::Error;
use crate::types::{Default, Field, Item, Literal, Record, Shape, Type};

impl Renderer<'_> {
    pub(super) fn record(&mut self, item: &Item, record: &Record) -> Result<(), Error> {
        self.push(&self.record_struct(item, record))?;
        if let Some(source) = self.record_default(item, record) {
            self.push(&source)?;
        }
        self.push(&self.record_impl(item, record))?;
        self.lines(&format!("ops::record!({});", item.name));
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
        let names: String = record.fields.iter().map(|field| format!("{}, ", string(&field.json))).collect();
        let cases = record.fields.iter().enumerate();
        let cases: String = cases.map(|(i, field)| format!("{} => {i}, ", string(&field.json))).collect();
        let count = record.fields.len();
        let result = self.prelude("Result");
        let index = if count == 0 {
            "fn index(_: &str) -> usize { 0 }".to_owned()
        } else {
            format!("fn index(name: &str) -> usize {{ match name {{ {cases} _ => {count} }} }}")
        };
        let writer = if count == 0 && record.extra.is_none() { "_" } else { "m" };
        format!(
            "impl ops::record::Record for {name} {{
                const NAME: &'static str = {literal};
                const FIELDS: &'static [&'static str] = &[{names}];
                {index}
                fn read<'de, A: ops::record::prelude::MapAccess<'de>>(
                    m: &mut ops::record::Reader<A, Self>,
                ) -> {result}<Self, A::Error> {{ {read} }}
                fn write<M: ops::record::prelude::SerializeMap>(
                    &self,
                    {writer}: &mut M,
                ) -> {result}<(), M::Error> {{ {write} }}
            }}",
            name = item.name,
            literal = string(&item.name),
            read = self.read(record),
            write = write(record),
        )
    }

    /// The body of `read`.
    fn read(&self, record: &Record) -> String {
        let fields = &record.fields;
        let extra = record.extra.as_ref().map(|(ident, _)| ident.as_str());
        let start = extra.map(|ident| format!("let mut {ident} = ::std::collections::BTreeMap::new();"));
        let mut body = start.unwrap_or_default();
        let next = extra.map_or_else(|| "m.next()?".to_owned(), |ident| format!("m.next_or(&mut {ident})?"));
        let extra_init = extra.map(|ident| format!("{ident},")).unwrap_or_default();
        if fields.is_empty() {
            body.push_str(&format!("while {next}.is_some() {{ m.skip()?; }} Ok(Self {{ {extra_init} }})"));
            return body;
        }
        let nothing = "None, ".repeat(fields.len());
        let arms: String = (0..fields.len()).map(|i| format!("{i} => m.put(&mut s.{i}),")).collect();
        body.push_str(&format!(
            "let mut s = ({nothing}); while let Some(i) = {next} {{ match i {{ {arms} _ => m.skip(), }}?; }}"
        ));
        let inits: String = fields.iter().map(|field| format!("{}, ", self.init(field))).collect();
        let inits = format!("{inits}{extra_init}");
        let demanded = |field: &&Field| demanded(field);
        let pattern = |field: &Field| {
            if demanded(&field) { format!("Some({}), ", field.ident) } else { format!("{}, ", field.ident) }
        };
        let pattern: String = fields.iter().map(pattern).collect();
        if !fields.iter().any(|field| demanded(&field)) {
            body.push_str(&format!("let ({pattern}) = s; Ok(Self {{ {inits} }})"));
            return body;
        }
        let missing = fields.iter().enumerate().filter(|(_, field)| demanded(field));
        let missing: String = missing.map(|(i, _)| format!("({i}, s.{i}.is_none()), ")).collect();
        body.push_str(&format!(
            "match s {{ ({pattern}) => Ok(Self {{ {inits} }}), s => Err(m.missing(&[{missing}])) }}"
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
                let lazy = !matches!(literal, Literal::Bool(_) | Literal::Number(_) | Literal::Variant(..));
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
                Default::Fits(Literal::Zero) => "::std::default::Default::default()".to_owned(),
                Default::Fits(literal) => self.literal(literal, &field.type_),
                _ if !field.required => "None".to_owned(),
                _ => self.only_value(&field.type_)?,
            };
            Some(format!("{}: {value},", field.ident))
        });
        let mut fields = fields.collect::<Option<String>>()?;
        if let Some((ident, _)) = &record.extra {
            fields.push_str(&format!("{ident}: ::std::collections::BTreeMap::new(),"));
        }
        let name = &item.name;
        Some(format!("impl ::std::default::Default for {name} {{ fn default() -> Self {{ Self {{ {fields} }} }} }}"))
    }

    /// The one value of a type that has only one.
    fn only_value(&self, type_: &Type) -> Option<String> {
        let Type::Named(id) = self.module.types.resolve(type_) else { return None };
        let item = self.module.types.get(*id)?;
        match &item.shape {
            Shape::Names(constants) | Shape::Values(constants) => match constants.as_slice() {
                [only] => Some(format!("self::{}::{}", item.name, only.ident)),
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
            Literal::Zero => "::std::default::Default::default()".to_owned(),
            Literal::Bool(bool) => bool.to_string(),
            Literal::Number(number) => number.clone(),
            Literal::Text(text) => owned(text),
            Literal::List(items) => format!("::std::vec![{}]", each(items).join(", ")),
            Literal::Tuple(items) => format!("({},)", each(items).join(", ")),
            Literal::Some(value) => format!("Some({})", self.literal(value, &inner(type_, 0))),
            Literal::Variant(id, at) => {
                let item = self.module.types.get(*id);
                let ident = item.and_then(|item| match &item.shape {
                    Shape::Names(constants) | Shape::Values(constants) => constants.get(*at),
                    _ => None,
                });
                format!("self::{}::{}", self.name(*id), ident.map_or("Other", |constant| constant.ident.as_str()))
            }
            Literal::Json(value) => json(value),
        }
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
        calls.push(format!("ops::record::{put}(m, {}, &self.{})", string(&field.json), field.ident));
    }
    if let Some((ident, _)) = &record.extra {
        calls.push(format!("ops::record::put_extra::<Self, _, _>(m, &self.{ident})"));
    }
    if calls.is_empty() { "Ok(())".to_owned() } else { calls.join("?; ") }
}

fn owned(text: &str) -> String {
    format!("::std::string::ToString::to_string({})", string(text))
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
            format!("ops::Value::Array(::std::vec![{}])", items.join(", "))
        }
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("({}, {})", owned(key), json(value)));
            let entries: Vec<String> = entries.collect();
            format!("[{}].into_iter().collect::<ops::Value>()", entries.join(", "))
        }
    }
}
