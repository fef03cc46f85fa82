//! Unions told apart by the shape of the value.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde_core::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde_core::de::{self, Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_core::ser::Serializer;

use super::begun::Begun;
use super::buffer::Buffer;
use super::reader::short;
use super::try_variants::{self, Attempts};
use super::variant;

/// A union whose variants are told apart by the shape of the value.
///
/// Implemented by [`untagged!`](crate::__generated::untagged!).
pub trait Untagged: Sized {
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// The shapes that each variant takes, in the order of the variants.
    const SHAPES: &'static [&'static [Shape]];

    /// The variants that each success of an operation may be, by position in the output's `oneOf`; empty if the union is
    /// not one of successes, and takes no word of which of them came.
    const SUCCESSES: &'static [&'static [usize]] = &[];

    /// Reads a value as the variant at a position of [`SHAPES`](Self::SHAPES).
    ///
    /// # Errors
    ///
    /// When the value is not one of that variant, or there is no such variant.
    fn read<'de, D: Deserializer<'de>>(variant: usize, d: D) -> Result<Self, D::Error>;

    /// Writes the variant.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error>;
}

/// A kind of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number written without fraction and exponent.
    Integer,
    /// Any number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object whose undeclared properties are dropped.
    Object,
    /// An object whose undeclared properties are kept.
    Open,
    /// Any value.
    Any,
}

impl Kind {
    fn of(value: &Buffer<'_>) -> Self {
        match value {
            Buffer::Null => Self::Null,
            Buffer::Bool(_) => Self::Boolean,
            Buffer::I64(_) | Buffer::U64(_) => Self::Integer,
            Buffer::F64(_) => Self::Number,
            Buffer::Text(_) => Self::String,
            Buffer::List(_) => Self::Array,
            Buffer::Map(_) => Self::Object,
        }
    }
}

/// One of the shapes that a variant of an [`Untagged`] union takes.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    kind: Kind,
    needs: &'static [&'static str],
    knows: &'static [&'static str],
}

impl Shape {
    /// Makes a shape from a kind and, of an object, the names of the properties that are required and of the others that
    /// are declared.
    #[must_use]
    pub const fn new(kind: Kind, needs: &'static [&'static str], knows: &'static [&'static str]) -> Self {
        Self { kind, needs, knows }
    }

    /// Tells whether a value of the kind `kind` may have this shape.
    fn takes(&self, kind: Kind) -> bool {
        match self.kind {
            Kind::Any => true,
            Kind::Number => matches!(kind, Kind::Number | Kind::Integer),
            Kind::Open => kind == Kind::Object,
            own => own == kind,
        }
    }

    /// Counts the properties of `value` that this shape declares, or returns `None` if one that it requires is absent.
    fn score(&self, value: &Buffer<'_>) -> Option<Score> {
        let Buffer::Map(entries) = value else {
            return Some(Score::default());
        };
        let has = |name: &&&str| entries.iter().any(|(key, _)| key.0 == **name);
        let needed = self.needs.iter().filter(has).count();
        (needed == self.needs.len()).then(|| {
            let declared = needed + self.knows.iter().filter(has).count();
            let keeps = matches!(self.kind, Kind::Open | Kind::Any);
            Score { declared, kept: if keeps { entries.len().saturating_sub(declared) } else { 0 } }
        })
    }
}

/// How much of an object a variant holds. The variant with the greatest score is the likeliest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// The number of the object's properties that the variant declares.
    pub(super) declared: usize,
    /// The number of the other properties if the variant keeps these, otherwise 0.
    pub(super) kept: usize,
}

/// Returns the only variant that takes values of the kind `kind`, if there is exactly one.
fn only<U: Untagged>(kind: Kind) -> Option<usize> {
    let mut variants = variants::<U>(kind);
    let first = variants.next();
    if variants.next().is_none() { first } else { None }
}

/// True if a variant takes values of any kind.
pub(super) fn takes_anything<U: Untagged>(variant: usize) -> bool {
    U::SHAPES.get(variant).is_some_and(|shapes| shapes.iter().any(|shape| shape.kind == Kind::Any))
}

/// Returns the variants that take values of the kind `kind`.
fn variants<U: Untagged>(kind: Kind) -> impl Iterator<Item = usize> {
    let takes = move |shapes: &&[Shape]| shapes.iter().any(|shape| shape.takes(kind));
    U::SHAPES.iter().enumerate().filter(move |(_, shapes)| takes(shapes)).map(|(variant, _)| variant)
}

/// Returns the variants that `value` may be with their scores, the likeliest first.
pub(super) fn candidates<U: Untagged>(kind: Kind, value: &Buffer<'_>) -> Vec<(Score, usize)> {
    let mut scored: Vec<(Score, usize)> = variants::<U>(kind)
        .filter_map(|variant| {
            let shapes = U::SHAPES.get(variant)?.iter().filter(|shape| shape.takes(kind));
            Some((shapes.filter_map(|shape| shape.score(value)).max()?, variant))
        })
        .collect();
    // Stable, so that equals stay in the order of the document.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored
}

/// Reads an untagged union; the body of the `Deserialize` that [`untagged!`](crate::__generated::untagged!) writes.
///
/// # Errors
///
/// When the value is not one of any variant.
pub fn read_untagged<'de, U: Untagged, D: Deserializer<'de>>(d: D) -> Result<U, D::Error> {
    // A union inside the output, or the only success with content, is told apart by its shape alone.
    let told = if U::SUCCESSES.is_empty() { None } else { variant::take() };
    match told.and_then(|told| U::SUCCESSES.get(usize::from(told))) {
        Some(variants) if !variants.is_empty() => read_told(variants, d),
        _ => d.deserialize_any(UntaggedVisitor(PhantomData)),
    }
}

/// Reads a union of which only a few variants are left by what is known from outside.
///
/// A value that is none of these is read as another variant that declares something of the value. One that takes anything
/// would hide that a property is missing or wrong.
fn read_told<'de, U: Untagged, D: Deserializer<'de>>(variants: &[usize], d: D) -> Result<U, D::Error> {
    let value = Buffer::deserialize(d)?;
    let kind = Kind::of(&value);
    let told: Result<U, D::Error> = try_variants::attempt(|| match variants {
        [only] => U::read(*only, value.reader()),
        _ => try_variants::among(variants, kind, &value),
    });
    told.or_else(|error| try_variants::declaring(kind, &value).map_err(|_: D::Error| error))
}

/// Writes an untagged union; the body of the `Serialize` that [`untagged!`](crate::__generated::untagged!) writes.
///
/// # Errors
///
/// When the serializer fails.
pub fn write_untagged<U: Untagged, S: Serializer>(value: &U, s: S) -> Result<S::Ok, S::Error> {
    value.write(s)
}

/// Fails because a union has no variant at a position.
///
/// # Errors
///
/// Always.
pub fn no_variant<'de, U: Untagged, D: Deserializer<'de>>(_: D) -> Result<U, D::Error> {
    Err(D::Error::custom(format_args!("no such variant of {}", short(U::NAME))))
}

struct UntaggedVisitor<U>(PhantomData<fn() -> U>);

impl<U: Untagged> UntaggedVisitor<U> {
    /// Reads a scalar as the first variant that takes it as a known constant, or else as the first that takes it. A scalar needs
    /// no buffer.
    fn plain<E: de::Error>(kind: Kind, plain: &Buffer<'_>) -> Result<U, E> {
        if let Some(variant) = only::<U>(kind) {
            return U::read(variant, plain.reader());
        }
        let mut attempts = Attempts::new();
        for variant in variants::<U>(kind) {
            if let Some(read) = attempts.run(variant, plain, 0) {
                return Ok(read);
            }
        }
        attempts.end(|| E::invalid_type(plain.unexpected(), &Self(PhantomData)))
    }
}

impl<'de, U: Untagged> Visitor<'de> for UntaggedVisitor<U> {
    type Value = U;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a variant of {}", short(U::NAME))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<U, E> {
        Self::plain(Kind::Boolean, &Buffer::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<U, E> {
        Self::plain(Kind::Integer, &Buffer::I64(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<U, E> {
        Self::plain(Kind::Integer, &Buffer::U64(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<U, E> {
        Self::plain(Kind::Number, &Buffer::F64(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<U, E> {
        Self::plain(Kind::String, &Buffer::Text(Cow::Borrowed(value)))
    }

    fn visit_unit<E: de::Error>(self) -> Result<U, E> {
        Self::plain(Kind::Null, &Buffer::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<U, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<U, D::Error> {
        d.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<U, A::Error> {
        let d = Begun(SeqAccessDeserializer::new(seq));
        match only::<U>(Kind::Array) {
            Some(variant) => U::read(variant, d),
            None => try_variants::read(Kind::Array, &Buffer::deserialize(d)?),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<U, A::Error> {
        let d = Begun(MapAccessDeserializer::new(map));
        match only::<U>(Kind::Object) {
            Some(variant) => U::read(variant, d),
            None => try_variants::read(Kind::Object, &Buffer::deserialize(d)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::record::from_value;

    #[derive(Debug, PartialEq)]
    enum Output {
        Flags(BTreeMap<String, bool>),
        Later(BTreeMap<String, i64>),
        Accepted(Value),
    }

    crate::__untagged!(Output {
        Object["is_new"] => Flags,
        Object[; "wait"] => Later,
        Any => Accepted
    } by [[0], [1], [2]]);

    #[test]
    fn a_success_with_a_fault_is_not_read_as_another_one() {
        let read = |success: Option<u16>, value: &Value| variant::scoped(success, || from_value::<Output>(value));
        let (new, wait) = (json!({ "is_new": true }), json!({ "wait": 1 }));
        assert_eq!(read(Some(0), &new).unwrap(), Output::Flags([("is_new".to_owned(), true)].into()));
        assert_eq!(read(Some(2), &new).unwrap(), Output::Accepted(new));
        // What another one declares may be that one.
        assert_eq!(read(Some(0), &wait).unwrap(), Output::Later([("wait".to_owned(), 1)].into()));
        for fault in [json!({ "is_new": 1 }), json!({ "x": 1 })] {
            let error = read(Some(0), &fault).unwrap_err();
            assert!(error.message.contains("expected a boolean"), "{fault}: {error:?}");
        }
        assert!(read(Some(0), &json!("x")).is_err());
        // Without a status, any value will do.
        assert_eq!(read(None, &json!("x")).unwrap(), Output::Accepted(json!("x")));
    }
    #[derive(Debug, PartialEq)]
    enum Stock {
        Failure(Value),
        Counts(BTreeMap<String, i64>),
    }

    crate::__untagged!(Stock {
        Object[; "message"] => Failure,
        Open => Counts
    });

    #[test]
    fn what_keeps_undeclared_properties_declares_them() {
        let strictly = |value: &Value| super::super::doubts::strictly(|| from_value::<Stock>(value)).0;
        let (message, count, fault) = (json!({ "message": "no" }), json!({ "a": 7 }), json!({ "a": "7" }));
        for read in [from_value::<Stock>, strictly] {
            assert_eq!(read(&message).unwrap(), Stock::Failure(message.clone()));
            assert_eq!(read(&count).unwrap(), Stock::Counts([("a".to_owned(), 7)].into()));
        }
        // Strict decoding does not read a value with a fault as another variant, so that it can be repaired.
        assert_eq!(strictly(&fault).unwrap_err().pointer, "/a");
        assert_eq!(from_value::<Stock>(&fault).unwrap(), Stock::Failure(fault));
    }

    #[derive(Debug, PartialEq)]
    enum Early {
        Queued,
        Other(Value),
    }

    crate::__values!(Early { "queued" => Queued, _ => Other });

    #[derive(Debug, PartialEq)]
    enum Late {
        Done,
        Other(Value),
    }

    crate::__values!(Late { "done" => Done, _ => Other });

    #[derive(Debug, PartialEq)]
    enum State {
        Early(Vec<Early>),
        Late(Vec<Late>),
    }

    crate::__untagged!(State { Array => Early, Array => Late } by [[0, 1], [1]]);

    #[test]
    fn of_the_variants_of_a_success_the_one_that_knows_most_is_meant() {
        let read = |success: Option<u16>, text: &str| {
            variant::scoped(success, || from_value::<State>(&json!([text]))).unwrap()
        };
        for success in [None, Some(0)] {
            assert_eq!(read(success, "queued"), State::Early(vec![Early::Queued]));
            assert_eq!(read(success, "done"), State::Late(vec![Late::Done]));
            assert_eq!(read(success, "lost"), State::Early(vec![Early::Other(json!("lost"))]));
        }
        assert_eq!(read(Some(1), "queued"), State::Late(vec![Late::Other(json!("queued"))]));
    }

    /// There is a doubt only about the chosen variant, and only if a variant that may know the constants failed.
    #[test]
    fn a_doubt_is_told_of_unknown_constants_beside_a_variant_that_failed() {
        use super::super::doubts::{Doubts, strictly};

        #[derive(Debug, PartialEq)]
        enum Mixed {
            Numbers(Vec<i64>),
            Early(Vec<Early>),
            Late(Vec<Late>),
        }
        crate::__untagged!(Mixed { Array => Numbers, Array => Early, Array => Late });

        #[derive(Debug, PartialEq)]
        enum Outer {
            Mixed(BTreeMap<String, Mixed>),
            Early(BTreeMap<String, Vec<Early>>),
        }
        crate::__untagged!(Outer { Object => Mixed, Object => Early });

        let doubted = |is_unknown| Doubts { is_unknown, ..Doubts::default() };
        let lost = || Mixed::Early(vec![Early::Other(json!("lost"))]);
        for (value, expected, is_unknown) in [
            (json!([1]), Mixed::Numbers(vec![1]), false),
            (json!(["queued"]), Mixed::Early(vec![Early::Queued]), false),
            (json!(["done"]), Mixed::Late(vec![Late::Done]), false),
            (json!(["lost"]), lost(), true),
        ] {
            let (read, doubts) = strictly(|| from_value::<Mixed>(&value));
            assert_eq!((read.unwrap(), doubts), (expected, doubted(is_unknown)), "{value}");
            // The doubts of one decoding do not reach the next.
            assert_eq!(strictly(|| ()).1, doubted(false));
        }
        let outer = |text: &str| strictly(|| from_value::<Outer>(&json!({ "a": [text] })));
        let (read, doubts) = outer("lost");
        assert_eq!((read.unwrap(), doubts), (Outer::Mixed([("a".to_owned(), lost())].into()), doubted(true)));
        // Variants failed here, too, but the result has no unknown constants.
        let (read, doubts) = outer("done");
        let done = Mixed::Late(vec![Late::Done]);
        assert_eq!((read.unwrap(), doubts), (Outer::Mixed([("a".to_owned(), done)].into()), doubted(false)));
    }

    /// Schemas allow undeclared properties, so what is dropped is no reason to repair the value as a variant that failed.
    #[test]
    fn no_doubt_is_told_of_what_is_dropped() {
        use super::super::doubts::{Doubts, strictly};

        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Cat {
            claws: i64,
        }

        #[derive(Debug, PartialEq)]
        enum Mixed {
            Numbers(Vec<i64>),
            Cats(Vec<Cat>),
        }
        crate::__untagged!(Mixed { Array => Numbers, Array => Cats });

        let (read, doubts) = strictly(|| from_value::<Mixed>(&json!([{ "claws": 1, "new": 2 }])));
        assert_eq!((read.unwrap(), doubts), (Mixed::Cats(vec![Cat { claws: 1 }]), Doubts::default()));
    }
}
