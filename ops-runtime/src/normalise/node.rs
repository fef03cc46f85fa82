//! The compiled form of a schema: a tree of nodes whose only cycles run through [`Target`]s.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::budget::Budget;
use super::number::{NumberRules, is_integral};
use super::pattern::Pattern;
use super::text::StringRules;

/// A schema or a shared definition, compiled.
///
/// The targets of `$ref`s (and of repeated combinations of schemas) inside it lie in `locals`.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) root: Node,
    pub(super) locals: Box<[Node]>,
}

impl Unit {
    pub(super) fn any() -> Self {
        Unit { root: Node::any(), locals: Box::default() }
    }

    pub(super) fn root(&self) -> At<'_> {
        At { unit: self, node: &self.root }
    }
}

/// A node together with the unit that its local references are resolved in.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) unit: &'a Unit,
    pub(super) node: &'a Node,
}

impl<'a> At<'a> {
    pub(super) fn to(self, node: &'a Node) -> Self {
        At { unit: self.unit, node }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) default: Option<Box<DefaultValue>>,
}

impl Node {
    pub(super) fn new(kind: Kind, default: Option<Value>) -> Self {
        Node { kind, default: default.map(|value| Box::new(DefaultValue { value, fits: OnceLock::new() })) }
    }

    pub(super) fn any() -> Self {
        Node::new(Kind::Any, None)
    }

    /// The kinds of value that might conform, as far as this node alone can tell.
    pub(super) fn types(&self) -> Types {
        match &self.kind {
            Kind::Any | Kind::Ref(_) => Types::ALL,
            Kind::Never => Types::NONE,
            Kind::Plain(types) => *types,
            Kind::Typed(typed) => typed.types,
            Kind::Literals(values) => values.types(),
            Kind::Union(union) => {
                union.variants.iter().fold(Types::NONE, |all, node| all.or(node.types())).and(union.types)
            }
            Kind::Intersect(all) => all.members.iter().fold(Types::ALL, |all, node| all.and(node.types())),
        }
    }
}

/// A `default`, and true if it conforms to its own schema (determined on first use).
#[derive(Debug)]
pub(super) struct DefaultValue {
    pub(super) value: Value,
    pub(super) fits: OnceLock<bool>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Every value conforms.
    Any,
    /// No value conforms.
    Never,
    /// Values of some kinds, without further rules.
    Plain(Types),
    /// Values of some kinds, with rules for each kind.
    Typed(Box<Typed>),
    /// One of these values.
    Literals(Literals),
    /// At least one of several schemas.
    Union(Box<Union>),
    /// All of several schemas that could not be merged into one.
    Intersect(Box<Intersect>),
    Ref(Target),
}

/// The values of an enum. Texts are found by their hash if there are many.
#[derive(Debug)]
pub(super) struct Literals {
    values: Box<[Value]>,
    types: Types,
    texts: OnceLock<HashSet<Box<str>>>,
}

impl Literals {
    /// Up to so many texts are compared one by one.
    const FEW: usize = 16;

    /// The kinds of the values.
    pub(super) fn types(&self) -> Types {
        self.types
    }

    pub(super) fn has_text(&self, text: &str) -> bool {
        if self.values.len() <= Self::FEW {
            return self.values.iter().any(|value| value.as_str() == Some(text));
        }
        let texts = || self.values.iter().filter_map(Value::as_str).map(Box::from).collect();
        self.texts.get_or_init(texts).contains(text)
    }
}

impl FromIterator<Value> for Literals {
    fn from_iter<T: IntoIterator<Item = Value>>(values: T) -> Self {
        let values: Box<[Value]> = values.into_iter().collect();
        let types = values.iter().fold(Types::NONE, |all, value| all.or(Types::of(value)));
        Literals { values, types, texts: OnceLock::new() }
    }
}

impl Deref for Literals {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.values
    }
}

/// Where a reference leads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Local(u32),
    Shared(u32),
    /// Nowhere; only the compatible reading keeps these.
    Missing,
}

/// A set of JSON types, and the one that is created by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types {
    mask: u8,
    pub(super) first: u8,
}

pub(super) const NULL: u8 = 1;
pub(super) const BOOLEAN: u8 = 2;
pub(super) const INTEGER: u8 = 4;
/// A number with a fraction; "number" is this bit and [`INTEGER`].
pub(super) const FRACTION: u8 = 8;
pub(super) const NUMBER: u8 = INTEGER | FRACTION;
pub(super) const STRING: u8 = 16;
pub(super) const ARRAY: u8 = 32;
pub(super) const OBJECT: u8 = 64;

impl Types {
    pub(super) const ALL: Types = Types { mask: 127, first: 0 };
    pub(super) const NONE: Types = Types { mask: 0, first: 0 };

    pub(super) const fn one(mask: u8) -> Self {
        Types { mask, first: mask }
    }

    pub(super) fn of(value: &Value) -> Self {
        Types::one(match value {
            Value::Null => NULL,
            Value::Bool(_) => BOOLEAN,
            Value::Number(number) if is_integral(number) => INTEGER,
            Value::Number(_) => FRACTION,
            Value::String(_) => STRING,
            Value::Array(_) => ARRAY,
            Value::Object(_) => OBJECT,
        })
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Some(Types::one(match name {
            "null" => NULL,
            "boolean" => BOOLEAN,
            "integer" => INTEGER,
            "number" => NUMBER,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => return None,
        }))
    }

    pub(super) fn or(self, other: Types) -> Self {
        Types { mask: self.mask | other.mask, first: if self.first == 0 { other.first } else { self.first } }
    }

    pub(super) fn and(self, other: Types) -> Self {
        let mask = self.mask & other.mask;
        // The first type of either side that both sides admit.
        let first = [self.first & mask, other.first & mask].into_iter().find(|bits| *bits != 0).unwrap_or(0);
        Types { mask, first }
    }

    pub(super) fn is_all(self) -> bool {
        self.mask == Types::ALL.mask
    }

    pub(super) fn is_none(self) -> bool {
        self.mask == 0
    }

    pub(super) fn has(self, bits: u8) -> bool {
        self.mask & bits != 0
    }

    pub(super) fn meets(self, other: Types) -> bool {
        self.mask & other.mask != 0
    }

    /// Only whole numbers, so that `1.0` may be written as `1`.
    pub(super) fn wants_integer(self) -> bool {
        self.mask & NUMBER == INTEGER
    }

    pub(super) fn admits(self, value: &Value) -> bool {
        let bit = match value {
            Value::Null => NULL,
            Value::Bool(_) => BOOLEAN,
            Value::Number(number) => {
                return self.mask & FRACTION != 0 || self.mask & INTEGER != 0 && is_integral(number);
            }
            Value::String(_) => STRING,
            Value::Array(_) => ARRAY,
            Value::Object(_) => OBJECT,
        };
        self.mask & bit != 0
    }

    /// The type to create.
    pub(super) fn made(self) -> u8 {
        if self.first != 0 { self.first } else { self.mask & self.mask.wrapping_neg() }
    }

    /// The names in plain words: `string or null`.
    pub(super) fn describe(self) -> String {
        let mut names = Vec::new();
        for (bits, name) in [
            (OBJECT, "object"),
            (ARRAY, "array"),
            (STRING, "string"),
            (FRACTION, "number"),
            (INTEGER, "integer"),
            (BOOLEAN, "boolean"),
            (NULL, "null"),
        ] {
            if self.mask & bits != 0 && !(bits == INTEGER && self.mask & FRACTION != 0) {
                names.push(name);
            }
        }
        match names.split_last() {
            None => "nothing".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }
}

/// The rules of a typed node; the rules of one kind do not constrain values of another.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) types: Types,
    pub(super) number: Option<NumberRules>,
    pub(super) string: Option<StringRules>,
    pub(super) array: Option<ArrayRules>,
    pub(super) object: Option<ObjectRules>,
}

#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) prefix: Vec<Node>,
    pub(super) rest: Rest,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique: bool,
    /// Exactly the items of `prefix`: the tuple of the compatible reading.
    pub(super) exact: bool,
}

impl ArrayRules {
    /// The most items that may be there.
    pub(super) fn limit(&self) -> Option<u64> {
        let sealed = (self.exact || matches!(self.rest, Rest::Never)).then_some(self.prefix.len() as u64);
        match (self.max, sealed) {
            (Some(max), Some(sealed)) => Some(max.min(sealed)),
            (max, sealed) => max.or(sealed),
        }
    }

    /// The schema of the item at this index.
    pub(super) fn item(&self, index: usize) -> Option<&Node> {
        match (self.prefix.get(index), &self.rest) {
            (Some(node), _) => Some(node),
            (None, Rest::Each(node)) => Some(node),
            (None, _) => None,
        }
    }
}

/// The schema of the items after `prefix`.
#[derive(Debug, Default)]
pub(super) enum Rest {
    #[default]
    Any,
    Never,
    Each(Node),
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) properties: Vec<Property>,
    /// Positions in `properties`, ordered by name.
    pub(super) by_name: Vec<u32>,
    pub(super) patterns: Vec<(Pattern, Node)>,
    pub(super) additional: Additional,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    /// How many properties are required.
    pub(super) required: usize,
    /// How many properties are required or may be filled by a default.
    pub(super) wanted: usize,
    /// Names that are required but not declared: the compatible reading lists but does not check them.
    pub(super) ghosts: Vec<Box<str>>,
    /// True if any properties are declared.
    pub(super) declares: bool,
    /// True if undeclared properties stay (step 1 of normalising).
    pub(super) keeps_undeclared: bool,
    /// True if as many properties are required as declared: the original then accepts closed objects of that size.
    pub(super) counts_keys: bool,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: Box<str>,
    pub(super) node: Node,
    pub(super) required: bool,
    /// True if it is declared only under a condition, so that its presence or absence tells nothing.
    pub(super) is_conditional: bool,
    /// True if it is `writeOnly`, as far as this unit tells: only requests have it.
    pub(super) is_write_only: bool,
    /// True if it is required but not described. A generated type has no field for it.
    pub(super) is_undescribed: bool,
}

/// The schema of undeclared properties.
#[derive(Debug, Default)]
pub(super) enum Additional {
    #[default]
    Unspecified,
    True,
    False,
    Each(Node),
    /// The original throws when it meets one.
    Broken,
}

impl ObjectRules {
    /// Derives the lookup tables from the rules themselves.
    pub(super) fn indexed(mut self) -> Self {
        self.by_name = (0u32..).take(self.properties.len()).collect();
        let properties = &self.properties;
        let key = |index: &u32| (properties.get(*index as usize).map(|property| &property.name), *index);
        self.by_name.sort_unstable_by_key(key);
        self.required = self.properties.iter().filter(|property| property.required).count();
        self.wanted = self.properties.iter().filter(|property| property.wanted()).count();
        self
    }

    /// The property of this name; `cursor` is the position of the last one, because most values come in schema order.
    pub(super) fn find(&self, name: &str, cursor: &mut usize) -> Option<&Property> {
        if let Some(property) = self.properties.get(*cursor)
            && *property.name == *name
        {
            *cursor += 1;
            return Some(property);
        }
        let position = if self.properties.len() <= 8 {
            self.properties.iter().position(|property| *property.name == *name)?
        } else {
            let at = |index: &u32| self.properties.get(*index as usize).map_or("", |property| &*property.name);
            let found = self.by_name.binary_search_by(|index| at(index).cmp(name)).ok()?;
            *self.by_name.get(found)? as usize
        };
        *cursor = position + 1;
        self.properties.get(position)
    }

    /// The schemas of a name by patterns.
    pub(super) fn listed(&self, name: &str, budget: &Budget) -> impl Iterator<Item = &Node> {
        self.patterns.iter().filter(move |(pattern, _)| pattern.is_in(name, budget)).map(|(_, node)| node)
    }

    pub(super) fn counts(&self, map: &Map<String, Value>) -> bool {
        let count = map.len() as u64;
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }
}

impl Property {
    /// True if a generated type has it as a constant, and refuses any other value. Behind a reference, it is an enum.
    pub(super) fn is_constant(&self) -> bool {
        let Kind::Literals(values) = &self.node.kind else { return false };
        let [only] = &**values else { return false };
        self.required && self.node.default.as_ref().is_none_or(|default| default.value == *only)
    }

    /// True if its absence may need work.
    pub(super) fn wanted(&self) -> bool {
        // A reference may lead to a default.
        let may_be_filled = || self.node.default.is_some() || matches!(self.node.kind, Kind::Ref(_));
        self.required || !self.is_write_only && may_be_filled()
    }
}

#[derive(Debug)]
pub(super) struct Union {
    /// The types that the value must also have.
    pub(super) types: Types,
    pub(super) variants: Vec<Node>,
    pub(super) discriminator: Option<Discriminator>,
    /// True if a value may be of several variants at once (`anyOf`), so that the properties of all of them are declared.
    pub(super) overlaps: bool,
    /// Determined on first use, once the variants behind references are compiled.
    pub(super) shape: OnceLock<Shape>,
}

impl Union {
    pub(super) fn new(variants: Vec<Node>) -> Self {
        Union { types: Types::ALL, variants, discriminator: None, overlaps: false, shape: OnceLock::new() }
    }
}

/// OpenAPI's discriminator, as it stands beside the variants.
#[derive(Debug)]
pub(super) struct Discriminator {
    pub(super) property: Box<str>,
    pub(super) mapping: Vec<(Box<str>, u32)>,
    /// The names of the variants' definitions.
    pub(super) names: Vec<(Box<str>, u32)>,
    /// The variant of values without the property, or with another value (`defaultMapping` of OpenAPI 3.2).
    pub(super) otherwise: Option<u32>,
}

/// How to tell the variants of a union apart.
#[derive(Debug)]
pub(super) struct Shape {
    /// The types of each variant.
    pub(super) types: Vec<Types>,
    /// The values by which the discriminator selects variants.
    pub(super) declared: Option<Tag>,
    /// A property with a constant in each variant.
    pub(super) tag: Option<Tag>,
    /// A property with a constant in each variant, with scalars other than strings among them. Only types use it.
    pub(super) scalar_tag: Option<Box<str>>,
}

/// A property whose value names the variant.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) property: Box<str>,
    /// Ordered by value.
    pub(super) variants: Vec<(Box<str>, Named)>,
}

/// What the value of a tag names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// The variant of this number.
    One(u32),
    /// One of several variants, which have to be tried.
    Several,
}

#[derive(Debug)]
pub(super) struct Intersect {
    pub(super) members: Vec<Node>,
    /// `unevaluatedProperties: false` of the compatible reading.
    pub(super) sealed: bool,
}
