//! Checks a JSON text without making a value of it.
//!
//! One pass through the text, led by the schema, as [`Checker`] and the repair go through a value. It answers one
//! question: is the text exactly what normalising would give, so that it can be passed on as it is? Whatever would take
//! a change, a second look or much memory is answered with no, and the value decides. So there is one rule: this may
//! say no too often, and yes never.
//!
//! A scan may also [mend](Scanner::mend) a text: what does not pass is made a value, repaired, and written in its place,
//! and the rest stays the text it is.
//!
//! The work is bounded by the length of the text: each byte is read once, and again to find tags that do not come first,
//! variants that fit, and parts to be mended, up to [`AGAIN`] times in all.

mod mend;
mod union;

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::check::{Checker, MAX_DEPTH};
use super::equal::equal;
use super::node::{
    ARRAY, Additional, ArrayRules, At, BOOLEAN, FRACTION, INTEGER, Kind, Literals, NULL, OBJECT, ObjectRules, STRING,
    Typed, Types,
};
use super::path::Path;
use crate::record::json::{Cursor, Fault, Figure, Text};

pub(super) use mend::Mended;
use mend::{Cut, Mender};

/// How many times the length of the text may be read again, and how many bytes more.
const AGAIN: usize = 3;
const FLOOR: usize = 4096;
/// So many names of properties that are not declared are compared with each other; of more, a set is made.
const FEW_NAMES: usize = 48;
/// Strings of so many bytes are unescaped to be looked at; it bounds the memory.
const MAX_ESCAPED: usize = 4096;
/// How many declared properties one object may have.
const MAX_PROPERTIES: usize = 1024;

/// Why a text does not pass.
pub(super) struct No;

impl From<Fault> for No {
    #[cold]
    fn from(_: Fault) -> Self {
        No
    }
}

type Passes = Result<(), No>;

/// A scan of one text.
pub(super) struct Scanner<'c, 'a, 't> {
    checker: &'c Checker<'a>,
    cursor: Cursor<'t>,
    /// How many more bytes may be read again.
    again: usize,
    /// The names of properties that are not declared, of all objects that are open: the first few of each.
    names: Vec<&'t str>,
    /// The names of those objects that have more, each with the position in `names` where its own begin.
    many: Vec<(usize, HashSet<&'t str>)>,
    /// Which declared properties have come, of all objects that are open: a bit each.
    seen: Vec<u64>,
    /// What is to be changed; `None` if a text that needs a change does not pass.
    mender: Option<Mender<'c, 'a, 't>>,
}

/// What is next, as far as its first byte tells.
#[derive(Clone, Copy)]
enum Next {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Next {
    fn types(self) -> u8 {
        match self {
            Self::Null => NULL,
            Self::Bool => BOOLEAN,
            Self::Number => INTEGER | FRACTION,
            Self::String => STRING,
            Self::Array => ARRAY,
            Self::Object => OBJECT,
        }
    }
}

impl<'c, 'a, 't> Scanner<'c, 'a, 't> {
    pub(super) fn new(checker: &'c Checker<'a>, text: &'t [u8]) -> Self {
        Self::at(checker, Cursor::new(text), text.len())
    }

    pub(super) fn of_str(checker: &'c Checker<'a>, text: &'t str) -> Self {
        Self::at(checker, Cursor::of_str(text), text.len())
    }

    fn at(checker: &'c Checker<'a>, cursor: Cursor<'t>, length: usize) -> Self {
        checker.budget.count_text(length);
        Scanner {
            checker,
            cursor,
            again: length.saturating_mul(AGAIN).saturating_add(FLOOR),
            names: Vec::new(),
            many: Vec::new(),
            seen: Vec::new(),
            mender: None,
        }
    }

    /// True if the text is JSON that conforms and that normalising would leave as it is.
    pub(super) fn passes(mut self, root: At<'a>) -> bool {
        self.scan(root)
    }

    fn scan(&mut self, root: At<'a>) -> bool {
        !self.checker.compat
            && self.cursor.is_utf8()
            && self.value(root, &Path::ROOT, 0).is_ok()
            && self.cursor.end().is_ok()
            && !self.checker.budget.is_dry()
    }

    fn next(&mut self) -> Result<Next, No> {
        Ok(match self.cursor.space() {
            Some(b'"') => Next::String,
            Some(b'{') => Next::Object,
            Some(b'[') => Next::Array,
            Some(b'-' | b'0'..=b'9') => Next::Number,
            Some(b'n') => Next::Null,
            Some(b't' | b'f') => Next::Bool,
            _ => return Err(No),
        })
    }

    /// Reads a value by a schema.
    fn value(&mut self, at: At<'a>, path: &Path<'_>, depth: u32) -> Passes {
        match &at.node.kind {
            Kind::Any => self.any(),
            Kind::Plain(types) => self.plain(*types),
            Kind::Typed(typed) => self.typed(at, typed, path, depth),
            Kind::Literals(values) => self.literal(values),
            Kind::Union(union) if depth < MAX_DEPTH => self.union(at, union, path, depth),
            Kind::Ref(_) => match self.checker.follow(at) {
                Some(target) => self.value(target, path, depth),
                None => self.any(),
            },
            Kind::Never | Kind::Union(_) | Kind::Intersect(_) => Err(No),
        }
    }

    /// Reads a value about which the schema says nothing.
    fn any(&mut self) -> Passes {
        match self.next()? {
            Next::Array => {
                self.cursor.open()?;
                let mut first = true;
                while self.cursor.next_item(&mut first)? {
                    self.any()?;
                }
                self.cursor.leave();
                Ok(self.cursor.end_list()?)
            }
            Next::Object => {
                self.cursor.open()?;
                let (mut first, names) = (true, self.names.len());
                while self.cursor.next_name(&mut first)? {
                    let name = self.name()?;
                    self.remember(name, names)?;
                    self.any()?;
                }
                self.forget(names);
                self.cursor.leave();
                Ok(self.cursor.end_object()?)
            }
            scalar => self.scalar(scalar),
        }
    }

    /// Reads a scalar about which the schema says nothing.
    fn scalar(&mut self, next: Next) -> Passes {
        match next {
            Next::Number => drop(self.cursor.number()?),
            Next::String => {
                self.cursor.eat();
                self.cursor.skip_string::<true>()?;
            }
            Next::Null => self.cursor.literal(b"null")?,
            Next::Bool => drop(self.boolean()?),
            Next::Array | Next::Object => return Err(No),
        }
        Ok(())
    }

    fn boolean(&mut self) -> Result<bool, No> {
        let is_true = self.cursor.peek() == Some(b't');
        self.cursor.literal(if is_true { b"true" } else { b"false" })?;
        Ok(is_true)
    }

    /// Reads a name and the colon behind it. One with escapes is left to the value.
    #[inline]
    fn name(&mut self) -> Result<&'t str, No> {
        self.cursor.eat();
        let Text::Borrowed(name) = self.cursor.string()? else { return Err(No) };
        self.cursor.colon()?;
        Ok(name)
    }

    /// Keeps the name of a property that is not declared; a name that comes twice is left to the value.
    fn remember(&mut self, name: &'t str, since: usize) -> Passes {
        let others = self.names.get(since..).unwrap_or_default();
        if others.len() >= FEW_NAMES {
            return self.remember_many(name, since);
        }
        if others.contains(&name) {
            return Err(No);
        }
        self.names.push(name);
        Ok(())
    }

    #[cold]
    fn remember_many(&mut self, name: &'t str, since: usize) -> Passes {
        if self.many.last().is_none_or(|(start, _)| *start != since) {
            self.many.push((since, self.names.iter().skip(since).copied().collect()));
        }
        let is_new = self.many.last_mut().is_some_and(|(_, names)| names.insert(name));
        if is_new { Ok(()) } else { Err(No) }
    }

    /// Forgets the names of the objects that begin here or behind.
    fn forget(&mut self, names: usize) {
        self.names.truncate(names);
        while self.many.pop_if(|(start, _)| *start >= names).is_some() {}
    }

    fn plain(&mut self, types: Types) -> Passes {
        match self.next()? {
            next if !types.has(next.types()) => Err(No),
            Next::Number => self.number(types).map(drop),
            Next::Array | Next::Object => self.any(),
            scalar => self.scalar(scalar),
        }
    }

    /// Reads a number. One with a fraction, or written as one, is left to the value where integers are asked for.
    #[inline]
    fn number(&mut self, types: Types) -> Result<Figure, No> {
        match self.cursor.number()? {
            Figure::F64(_) if !types.has(FRACTION) => Err(No),
            figure => Ok(figure),
        }
    }

    fn typed(&mut self, at: At<'a>, typed: &'a Typed, path: &Path<'_>, depth: u32) -> Passes {
        match self.next()? {
            next if !typed.types.has(next.types()) => Err(No),
            Next::Number => {
                let figure = self.number(typed.types)?;
                let Some(rules) = &typed.number else { return Ok(()) };
                let fits = self.checker.budget.spend(rules.steps())
                    && number(figure).is_some_and(|number| rules.check(&number));
                if fits { Ok(()) } else { Err(No) }
            }
            Next::String => match &typed.string {
                Some(rules) => {
                    let checker = self.checker;
                    self.looked_at(|text| rules.check(text, &checker.budget))
                }
                None => self.scalar(Next::String),
            },
            Next::Array => match &typed.array {
                Some(rules) => self.array(at, rules, path, depth),
                None => self.any(),
            },
            Next::Object => match &typed.object {
                Some(rules) => self.object(at, rules, path, depth),
                None => self.any(),
            },
            scalar => self.scalar(scalar),
        }
    }

    /// Reads a string that has to fulfil a condition.
    #[inline]
    fn looked_at(&mut self, fits: impl FnOnce(&str) -> bool) -> Passes {
        self.cursor.eat();
        let start = self.cursor.at();
        // A long one with escapes would take memory.
        self.cursor.skip_string::<true>()?;
        let is_long = self.cursor.at() - start > MAX_ESCAPED;
        self.cursor.back_to(start);
        if is_long {
            return Err(No);
        }
        let (Text::Borrowed(text) | Text::Copied(text)) = self.cursor.string()?;
        if fits(text) { Ok(()) } else { Err(No) }
    }

    fn literal(&mut self, values: &Literals) -> Passes {
        let checker = self.checker;
        let has = |value: Value| {
            let is_affordable = checker.budget.spend(values.len() as u64 / 8);
            if is_affordable && values.iter().any(|other| equal(other, &value)) { Ok(()) } else { Err(No) }
        };
        match self.next()? {
            Next::String => self.looked_at(|text| values.has_text(text)),
            Next::Null => {
                self.scalar(Next::Null)?;
                has(Value::Null)
            }
            Next::Bool => {
                let value = self.boolean()?;
                has(Value::Bool(value))
            }
            Next::Number => {
                let number = number(self.cursor.number()?).ok_or(No)?;
                has(Value::Number(number))
            }
            Next::Array | Next::Object => Err(No),
        }
    }

    fn array(&mut self, at: At<'a>, rules: &'a ArrayRules, path: &Path<'_>, depth: u32) -> Passes {
        if rules.unique || rules.exact {
            return Err(No);
        }
        self.cursor.open()?;
        let (mut first, mut length) = (true, 0);
        while self.cursor.next_item(&mut first)? {
            match rules.item(length) {
                Some(node) => self.part(at.to(node), &path.index(length), depth + 1)?,
                None => self.any()?,
            }
            length += 1;
        }
        self.cursor.leave();
        self.cursor.end_list()?;
        let length = length as u64;
        let is_counted = rules.min.is_none_or(|min| length >= min) && rules.limit().is_none_or(|limit| length <= limit);
        if is_counted { Ok(()) } else { Err(No) }
    }

    fn object(&mut self, at: At<'a>, rules: &'a ObjectRules, path: &Path<'_>, depth: u32) -> Passes {
        if !rules.patterns.is_empty() || rules.properties.len() > MAX_PROPERTIES {
            return Err(No);
        }
        self.cursor.open()?;
        let mut cut = Cut::behind(self.cursor.at());
        let (names, seen, removed) = (self.names.len(), self.seen.len(), self.removed());
        self.seen.resize(seen + rules.properties.len().div_ceil(64), 0);
        let (mut first, mut position) = (true, 0);
        let (mut count, mut required, mut wanted) = (0_u64, 0, 0);
        while self.cursor.next_name(&mut first)? {
            let start = self.cursor.at();
            let name = self.name()?;
            let Some(property) = rules.find(name, &mut position) else {
                self.remember(name, names)?;
                if !rules.keeps_undeclared {
                    self.remove(rules, name)?;
                    cut.remove(self.cursor.at());
                    continue;
                }
                if let Additional::Each(node) = &rules.additional
                    && self.is_absence(at.to(node), depth)
                {
                    self.remove_null(at.to(node), &path.key(name))?;
                    cut.remove(self.cursor.at());
                    continue;
                }
                self.keep(&cut, start);
                count += 1;
                match &rules.additional {
                    Additional::Each(node) => self.part(at.to(node), &path.key(name), depth + 1)?,
                    Additional::Unspecified | Additional::True => self.any()?,
                    Additional::False | Additional::Broken => return Err(No),
                }
                cut.keep(self.cursor.at());
                continue;
            };
            // Behind what was found.
            let index = position - 1;
            let Some(bits) = self.seen.get_mut(seen + index / 64) else { return Err(No) };
            let bit = 1 << (index % 64);
            // The last of two with one name counts, and not both would be passed on.
            if *bits & bit != 0 {
                return Err(No);
            }
            *bits |= bit;
            let is_absence = !property.required && self.is_absence(at.to(&property.node), depth);
            if is_absence && !self.is_by_type() {
                // Another value takes its place.
                if self.checker.default_of_absent(at, property).is_some() {
                    return Err(No);
                }
                self.remove_null(at.to(&property.node), &path.key(name))?;
                cut.remove(self.cursor.at());
                continue;
            }
            self.keep(&cut, start);
            count += 1;
            required += usize::from(property.required);
            wanted += usize::from(property.wanted());
            if is_absence {
                self.cursor.literal(b"null")?;
            } else if property.is_constant() && self.is_by_type() {
                // A wrong constant is repaired together with its object.
                self.value(at.to(&property.node), &path.key(name), depth + 1)?;
            } else {
                self.part(at.to(&property.node), &path.key(name), depth + 1)?;
            }
            cut.keep(self.cursor.at());
        }
        self.end_cut(&cut);
        self.cursor.leave();
        self.cursor.end_object()?;
        let fits = required == rules.required
            && rules.min.is_none_or(|min| count >= min)
            && rules.max.is_none_or(|max| count <= max)
            && (wanted == rules.wanted || self.lacks_no_default(at, rules, seen))
            // An object of which nothing is left is seldom what was asked for.
            && !(path.is_root() && count == 0 && self.removed() > removed);
        self.forget(names);
        self.seen.truncate(seen);
        if !fits {
            return Err(No);
        }
        self.tell_removed(path, removed);
        Ok(())
    }

    /// True if no default would be filled in for a property that is absent.
    fn lacks_no_default(&self, at: At<'a>, rules: &'a ObjectRules, seen: usize) -> bool {
        let is_there =
            |index: usize| self.seen.get(seen + index / 64).is_some_and(|bits| bits >> (index % 64) & 1 == 1);
        let mut absent = rules.properties.iter().enumerate().filter(|(index, _)| !is_there(*index));
        // Every property of the schema is looked at, however small the object is.
        self.checker.budget.spend(rules.properties.len() as u64 / 4)
            && !absent.any(|(_, property)| property.wanted() && self.checker.default_of_absent(at, property).is_some())
    }
}

fn number(figure: Figure) -> Option<Number> {
    match figure {
        Figure::U64(value) => Some(value.into()),
        Figure::I64(value) => Some(value.into()),
        Figure::F64(value) => Number::from_f64(value),
    }
}
