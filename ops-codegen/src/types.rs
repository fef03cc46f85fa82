//! The canonical form between JSON Schemas and Rust: schemas are lowered to it, and source is rendered from it.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ops_runtime::spec::pointer;
use serde_json::Value;

use crate::derive::Derive;
use crate::kinds::Kind;

/// The position of an [`Item`] in [`Types`].
pub(crate) type ItemId = usize;

/// All named types, in the order in which the operations reach them.
#[derive(Debug, Default)]
pub(crate) struct Types {
    pub(crate) items: Vec<Item>,
    /// The places of enums that a union describes beside plain strings: any other string is a valid value, too.
    pub(crate) open: HashSet<String>,
    /// The places of enum definitions that some union has beside plain strings. Their defaults may be other strings. But decoding
    /// counts other strings as unknown constants, because the same type may also stand alone.
    pub(crate) beside_text: HashSet<String>,
    /// The positions of the values of long enums, by their items; made on first lookup.
    index: RefCell<HashMap<ItemId, HashMap<Value, usize>>>,
    /// Which items are unions with a variant that is any JSON; found on first lookup.
    anything: RefCell<HashMap<ItemId, bool>>,
    /// Items whose shapes are too many to be looked through, by how deep they lie: with so much room or less.
    pub(crate) endless: RefCell<HashMap<(ItemId, usize), usize>>,
    /// How many properties of the defaults that were made into literals no record declares, and how many of these are dropped.
    /// Only differences of it are used.
    pub(crate) undeclared: Cell<[usize; 2]>,
    /// What comparing defaults with the variants of unions may still cost, in names of properties and in comparisons.
    pub(crate) names: Cell<usize>,
    /// How many properties, with the values of their defaults, the default that is being made into a literal may still leave out.
    pub(crate) inner: Cell<usize>,
}

/// A type that has a name.
#[derive(Debug)]
pub(crate) struct Item {
    /// The preferred name until names are assigned, then the identifier.
    pub(crate) name: String,
    /// The place of its schema, as a JSON pointer.
    pub(crate) pointer: String,
    /// The description in the document.
    pub(crate) docs: Option<String>,
    /// The text if there is no description.
    pub(crate) subject: String,
    /// True if an input reaches it, so that callers make values of it.
    pub(crate) sent: bool,
    /// Derives beside those that every type has.
    pub(crate) derives: Vec<Derive>,
    pub(crate) shape: Shape,
}

impl Item {
    /// The name of the definition that it is made from.
    pub(crate) fn definition(&self) -> Option<Cow<'_, str>> {
        self.pointer.strip_prefix("/$defs/").filter(|name| !name.contains('/')).map(pointer::unescaped)
    }
}

/// The kind of a named type.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Not known yet: its definition is still to be lowered.
    Pending,
    /// Another name for a type.
    Alias(Type),
    /// An alias that must be a type because it contains itself.
    Newtype(Type),
    /// An object with known properties.
    Record(Record),
    /// One of several strings, or any other.
    Names(Vec<Constant>),
    /// One of several scalars of any kind, or any other.
    Values(Vec<Constant>),
    /// A union distinguished by the value of a property.
    Tagged(Tagged),
    /// A union distinguished by the shape of the value.
    Union(Vec<Variant>),
}

/// A type at its use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Unit,
    Bool,
    I32,
    I64,
    U32,
    U64,
    F64,
    String,
    /// A string of a format with its own type.
    Format(Format),
    /// Bytes: base64 text in JSON, streamed if the binding can.
    Body,
    /// A content block of MCP.
    Block,
    /// Any JSON.
    Value,
    List(Box<Type>),
    Map(Box<Type>),
    Tuple(Vec<Type>),
    /// `null` or a value.
    Option(Box<Type>),
    Named(ItemId),
    /// A named type behind a pointer, because it would contain itself.
    Boxed(ItemId),
    /// A type of the user's.
    Custom(Rc<Custom>),
}

/// A type of the user's that stands for a schema.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Custom {
    /// The path, as it is written in any module.
    pub(crate) path: String,
    /// The name of the schema, for names that are made of it.
    pub(crate) name: String,
    /// The shapes of JSON values that the schema accepts.
    pub(crate) kinds: Vec<Kind>,
}

/// A format of strings with its own type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `date-time` (RFC 3339): `chrono::DateTime<FixedOffset>`.
    DateTime,
    /// `date` (RFC 3339): `chrono::NaiveDate`.
    Date,
    /// `uuid` (RFC 9562): `uuid::Uuid`.
    Uuid,
    /// `uri` (RFC 3986): `url::Url`, which writes a normal form of what it read.
    Uri,
}

impl Format {
    /// The formats, by their names in schemas.
    pub(crate) const ALL: [(&'static str, Self); 4] =
        [("date-time", Self::DateTime), ("date", Self::Date), ("uuid", Self::Uuid), ("uri", Self::Uri)];

    /// The type, below the runtime's path.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::DateTime => "DateTime",
            Self::Date => "Date",
            Self::Uuid => "Uuid",
            Self::Uri => "Url",
        }
    }
}

impl Type {
    /// The type, or `null`.
    pub(crate) fn nullable(self) -> Self {
        match self {
            // These accept `null` already.
            Self::Option(_) | Self::Value | Self::Unit => self,
            other => Self::Option(Box::new(other)),
        }
    }

    /// The named types inside.
    pub(crate) fn named(&self, found: &mut Vec<ItemId>) {
        match self {
            Self::Named(id) | Self::Boxed(id) => found.push(*id),
            Self::List(inner) | Self::Map(inner) | Self::Option(inner) => inner.named(found),
            Self::Tuple(items) => items.iter().for_each(|item| item.named(found)),
            _ => {}
        }
    }

    /// True if it is a type of the user's, or has one inside.
    pub(crate) fn has_custom(&self) -> bool {
        match self {
            Self::Custom(_) => true,
            Self::List(inner) | Self::Map(inner) | Self::Option(inner) => inner.has_custom(),
            Self::Tuple(items) => items.iter().any(Self::has_custom),
            _ => false,
        }
    }

    /// The named types that a value contains directly, not behind a pointer.
    pub(crate) fn held(&mut self) -> Vec<&mut Type> {
        match self {
            Self::Named(_) => vec![self],
            Self::Option(inner) => inner.held(),
            Self::Tuple(items) => items.iter_mut().flat_map(Type::held).collect(),
            _ => Vec::new(),
        }
    }

    /// Of the named types that a value contains directly, those that are parts of a tuple.
    pub(crate) fn held_in_tuples(&mut self) -> Vec<&mut Type> {
        match self {
            Self::Option(inner) => inner.held_in_tuples(),
            Self::Tuple(_) => self.held(),
            _ => Vec::new(),
        }
    }
}

/// An object with known properties.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) fields: Vec<Field>,
    /// The properties with a single possible value.
    pub(crate) constants: Vec<(String, Value)>,
    /// The type of undeclared properties and the field that keeps them; `None` if they are not kept.
    pub(crate) extra: Option<(String, Type)>,
}

impl Record {
    /// True if the property is a field or has a single possible value.
    pub(crate) fn declares(&self, property: &str) -> bool {
        self.fields.iter().any(|field| field.json == property)
            || self.constants.iter().any(|(name, _)| name == property)
    }
}

/// A property.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) json: String,
    /// The identifier; assigned after lowering.
    pub(crate) ident: String,
    pub(crate) docs: Option<String>,
    /// What the schema says of the value beyond its type: keywords and their values.
    pub(crate) says: Vec<(&'static str, Value)>,
    pub(crate) type_: Type,
    pub(crate) required: bool,
    /// True if a caller has to set it, even if reading does not require it.
    pub(crate) given: bool,
    pub(crate) default: Default,
    pub(crate) read_only: bool,
    pub(crate) write_only: bool,
    pub(crate) deprecated: bool,
}

impl Field {
    /// True if the field may be absent and has no default.
    pub(crate) fn is_optional(&self) -> bool {
        !self.required && !matches!(self.default, Default::Fits(_))
    }

    /// True if reading the type requires the property.
    pub(crate) fn is_demanded(&self) -> bool {
        self.required && !matches!(self.default, Default::Fits(_))
    }

    /// True if a value can't be made without setting the property.
    pub(crate) fn is_set(&self) -> bool {
        self.is_demanded() || self.given
    }
}

/// The default of a property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Default {
    None,
    /// As the schema has it.
    Raw(Value),
    /// As the schema has it, only for the documentation: the receiver of the value applies it.
    Told(Value),
    /// As a value of the property's type.
    Fits(Literal),
}

/// A value of a known type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    /// The value of `Default`: nothing, zero, an empty list.
    Zero,
    Bool(bool),
    /// A number, written with the type's suffix if needed.
    Number(String),
    Text(String),
    List(Vec<Literal>),
    Tuple(Vec<Literal>),
    Map(Vec<(String, Literal)>),
    Some(Box<Literal>),
    Variant(ItemId, usize),
    /// A string that is no constant of its enum.
    Other(ItemId, String),
    /// A record, with the properties that are set by their positions, and others by their names.
    Record {
        id: ItemId,
        fields: Vec<(usize, Literal)>,
        extra: Vec<(String, Literal)>,
    },
    /// A variant of a union.
    Union(ItemId, usize, Box<Literal>),
    /// Any JSON.
    Json(Value),
}

/// The member of a schema that names the values of its `enum`, as the reader of documents keeps it.
pub(crate) const NAMES: &str = "x-enum-varnames";

/// The member that describes them.
pub(crate) const DESCRIPTIONS: &str = "x-enum-descriptions";

/// A value of an enum.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) value: Value,
    /// The preferred name until names are assigned, then the identifier.
    pub(crate) ident: String,
    pub(crate) docs: Option<String>,
}

/// A union distinguished by the value of a property.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) property: String,
    pub(crate) variants: Vec<TaggedVariant>,
}

/// A variant, and the values of the property that select it.
#[derive(Debug)]
pub(crate) struct TaggedVariant {
    pub(crate) tags: Vec<Value>,
    /// True if it is what an object without a tag, or with another, is read as.
    pub(crate) is_default: bool,
    pub(crate) variant: Variant,
}

/// A variant of a union.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The preferred name until names are assigned, then the identifier.
    pub(crate) ident: String,
    pub(crate) docs: Option<String>,
    pub(crate) type_: Type,
    /// The successes that it may be, by position in the output's `oneOf`; empty if the union is not one of successes.
    pub(crate) successes: Vec<u16>,
}

/// True if two values are the same constant: `1.0` is `1`.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    by_value(one) == by_value(other)
}

/// The value, as an integer if it is a number without a fraction.
fn by_value(value: &Value) -> Cow<'_, Value> {
    match whole(value).and_then(|whole| i64::try_from(whole).ok()) {
        Some(integer) if value.is_f64() => Cow::Owned(integer.into()),
        _ => Cow::Borrowed(value),
    }
}

/// The number as an integer, if it is one: `20`, but also `20.0`.
pub(crate) fn whole(value: &Value) -> Option<i128> {
    let exact = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    exact.or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)?;
        // A number of this kind is printed with all its digits.
        format!("{float:.0}").parse().ok()
    })
}

impl Types {
    /// Counts properties that no record declares: those that are kept, and those that are dropped.
    pub(crate) fn note_undeclared(&self, kept: usize, dropped: usize) {
        let [all, lost] = self.undeclared.get();
        self.undeclared.set([all + kept + dropped, lost + dropped]);
    }

    pub(crate) fn get(&self, id: ItemId) -> Option<&Item> {
        self.items.get(id)
    }

    /// The position of a value among the constants of an item. `1.0` is the constant `1`.
    pub(crate) fn position(&self, id: ItemId, constants: &[Constant], value: &Value) -> Option<usize> {
        const FEW: usize = 32;
        let value = by_value(value);
        if constants.len() <= FEW {
            return constants.iter().position(|constant| by_value(&constant.value) == value);
        }
        let mut index = self.index.borrow_mut();
        let positions = index.entry(id).or_insert_with(|| {
            constants.iter().enumerate().map(|(at, constant)| (by_value(&constant.value).into_owned(), at)).collect()
        });
        positions.get(&*value).copied()
    }

    /// Forgets lookups by the numbers of items, which have changed.
    pub(crate) fn renumbered(&mut self) {
        self.index.take();
        self.anything.take();
    }

    /// The type at the end of a chain of aliases.
    pub(crate) fn resolve<'a>(&'a self, mut type_: &'a Type) -> &'a Type {
        // Cyclic aliases were removed; the limit is for safety.
        for _ in 0..=self.items.len() {
            match type_ {
                Type::Named(id) => match self.get(*id).map(|item| &item.shape) {
                    Some(Shape::Alias(target)) => type_ = target,
                    _ => break,
                },
                _ => break,
            }
        }
        type_
    }

    /// The type without names that are only other names, and without a pointer: two types are one if these are equal.
    ///
    /// `None` if it is too large to be written out.
    pub(crate) fn plain(&self, type_: &Type) -> Option<Type> {
        const ROOM: usize = 64;
        self.plain_in(type_, &mut { ROOM })
    }

    fn plain_in(&self, type_: &Type, room: &mut usize) -> Option<Type> {
        *room = room.checked_sub(1)?;
        let mut inner = |type_: &Type| self.plain_in(type_, room).map(Box::new);
        Some(match self.resolve(type_) {
            Type::List(item) => Type::List(inner(item)?),
            Type::Map(value) => Type::Map(inner(value)?),
            Type::Option(some) => Type::Option(inner(some)?),
            Type::Tuple(items) => {
                Type::Tuple(items.iter().map(|item| inner(item).map(|item| *item)).collect::<Option<_>>()?)
            }
            Type::Boxed(id) => match self.get(*id).map(|item| &item.shape) {
                Some(Shape::Alias(target)) => return self.plain_in(target, room),
                _ => Type::Named(*id),
            },
            other => other.clone(),
        })
    }

    /// True if `null` is a value of the type: also of a union with a variant that is any JSON.
    pub(crate) fn takes_null(&self, type_: &Type) -> bool {
        match self.resolve(type_) {
            Type::Option(_) | Type::Value | Type::Unit => true,
            Type::Named(id) | Type::Boxed(id) => {
                *self.anything.borrow_mut().entry(*id).or_insert_with(|| self.has_anything(*id))
            }
            _ => false,
        }
    }

    /// True if a union has a variant that is any JSON.
    fn has_anything(&self, id: ItemId) -> bool {
        let is_any = |variant: &Variant| matches!(self.resolve(&variant.type_), Type::Value);
        matches!(self.get(id).map(|item| &item.shape), Some(Shape::Union(variants)) if variants.iter().any(is_any))
    }
}

impl Shape {
    /// Every type that the shape names, for changes.
    pub(crate) fn types_mut(&mut self) -> Vec<&mut Type> {
        match self {
            Self::Pending | Self::Names(_) | Self::Values(_) => Vec::new(),
            Self::Alias(type_) | Self::Newtype(type_) => vec![type_],
            Self::Record(record) => {
                let extra = record.extra.as_mut().map(|(_, type_)| type_);
                record.fields.iter_mut().map(|field| &mut field.type_).chain(extra).collect()
            }
            Self::Tagged(tagged) => tagged.variants.iter_mut().map(|v| &mut v.variant.type_).collect(),
            Self::Union(variants) => variants.iter_mut().map(|v| &mut v.type_).collect(),
        }
    }

    /// Every type that the shape names.
    pub(crate) fn types(&self) -> Vec<&Type> {
        match self {
            Self::Pending | Self::Names(_) | Self::Values(_) => Vec::new(),
            Self::Alias(type_) | Self::Newtype(type_) => vec![type_],
            Self::Record(record) => {
                let extra = record.extra.as_ref().map(|(_, type_)| type_);
                record.fields.iter().map(|field| &field.type_).chain(extra).collect()
            }
            Self::Tagged(tagged) => tagged.variants.iter().map(|v| &v.variant.type_).collect(),
            Self::Union(variants) => variants.iter().map(|v| &v.type_).collect(),
        }
    }
}
