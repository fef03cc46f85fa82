//! Generated code as its user reads it: types, how values of them are made, and methods.

use std::collections::BTreeMap;

use serde_json::Value;

mod read;

/// A type at its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Unit,
    Bool,
    Integer,
    Float,
    String,
    /// Any JSON.
    Value,
    Body,
    List(Box<Type>),
    Map(Box<Type>),
    Tuple(Vec<Type>),
    Option(Box<Type>),
    Boxed(Box<Type>),
    /// Anything that becomes the type.
    Into(Box<Type>),
    Named(String),
    /// One that no request is made of by these tests.
    Other(String),
}

/// A named type.
#[derive(Debug)]
pub(super) enum Shape {
    Alias(Type),
    Newtype(Type),
    Record(Record),
    /// Scalars and their variants, and the variant for all others.
    Constants(Vec<(Value, String)>, String),
    /// Variants and their types; with the property and the values of it that tell them apart, if one does.
    Union(Vec<(String, Type)>, Option<Tags>),
}

/// The property that tells variants apart, and the variant of each value.
#[derive(Debug)]
pub(super) struct Tags {
    pub(super) property: String,
    pub(super) variants: Vec<(Value, String)>,
}

/// A struct with named fields.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Names and types of the fields.
    pub(super) fields: Vec<(String, Type)>,
    /// The properties of the fields, and then those with a single value.
    pub(super) properties: Vec<String>,
    /// The values of those.
    pub(super) values: Vec<Value>,
    /// The arguments of `new`; `None` if there is no such function.
    pub(super) new: Option<Vec<(String, Type)>>,
    pub(super) has_default: bool,
    /// True if the last field is a map of the properties that the schema does not declare.
    pub(super) keeps_others: bool,
}

impl Record {
    /// The property of a field; `None` for the field that keeps undeclared properties.
    pub(super) fn property(&self, field: &str) -> Option<&str> {
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        let is_rest = at + 1 == self.fields.len() && self.keeps_others;
        if is_rest { None } else { self.properties.get(at).map(String::as_str) }
    }

    /// The field of a property, and its type.
    pub(super) fn field(&self, property: &str) -> Option<&(String, Type)> {
        self.fields.iter().find(|(name, _)| self.property(name) == Some(property))
    }

    /// The properties with a single value, which have no fields.
    pub(super) fn constants(&self) -> &[String] {
        let fields = self.fields.len() - usize::from(self.keeps_others);
        self.properties.get(fields..).unwrap_or_default()
    }
}

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: String,
    /// The struct that is the operation.
    pub(super) name: String,
    pub(super) input: Type,
    pub(super) method: String,
    /// True if the method takes the input.
    pub(super) takes_input: bool,
    pub(super) is_subscription: bool,
}

/// A generated module.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) types: BTreeMap<String, Shape>,
    pub(super) operations: Vec<Operation>,
    /// The trait with their methods.
    pub(super) methods: String,
    /// Types, and what they are made of by `From`.
    pub(super) conversions: Vec<(String, Type)>,
}

impl Code {
    /// Reads a generated module.
    ///
    /// # Errors
    /// If it is not Rust, or not as the generator writes it.
    pub(super) fn read(source: &str) -> Result<Self, String> {
        read::read(source)
    }

    /// The type at the end of a chain of other names, without a pointer.
    pub(super) fn resolve<'a>(&'a self, type_: &'a Type) -> &'a Type {
        let mut type_ = type_;
        for _ in 0..=self.types.len() {
            match type_ {
                Type::Boxed(inner) | Type::Into(inner) => type_ = inner,
                Type::Named(name) => match self.types.get(name) {
                    Some(Shape::Alias(target)) => type_ = target,
                    _ => break,
                },
                _ => break,
            }
        }
        type_
    }

    pub(super) fn record<'a>(&'a self, type_: &'a Type) -> Option<(&'a str, &'a Record)> {
        match self.resolve(type_) {
            Type::Named(name) => match self.types.get(name) {
                Some(Shape::Record(record)) => Some((name, record)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The names of all types that inputs reach, in the order in which they are found.
    pub(super) fn sent(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        let mut open: Vec<&Type> = self.operations.iter().map(|operation| &operation.input).rev().collect();
        while let Some(type_) = open.pop() {
            match type_ {
                Type::List(inner) | Type::Map(inner) | Type::Option(inner) => open.push(inner),
                Type::Boxed(inner) | Type::Into(inner) => open.push(inner),
                Type::Tuple(items) => open.extend(items.iter().rev()),
                Type::Named(name) if seen.insert(name) => {
                    found.push(name);
                    match self.types.get(name) {
                        Some(Shape::Alias(inner) | Shape::Newtype(inner)) => open.push(inner),
                        Some(Shape::Record(record)) => open.extend(record.fields.iter().rev().map(|(_, t)| t)),
                        Some(Shape::Union(variants, _)) => open.extend(variants.iter().rev().map(|(_, t)| t)),
                        Some(Shape::Constants(..)) | None => {}
                    }
                }
                _ => {}
            }
        }
        found
    }
}
