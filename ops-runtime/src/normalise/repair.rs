//! Repairs a value by its schema, in place and in one pass.
//!
//! [`Fixer::fix`] does the three steps of normalising together on the way through a value. It removes undeclared
//! properties and fills in defaults; the [`Mode`] decides if a part that still does not conform is converted, replaced,
//! or kept. A node that needs none of this is visited once and left alone. A node is checked first, or copied to be
//! able to go back, only if its schema is unclear (unions of several objects, intersections that could not be merged,
//! unique items).

mod another;
mod array;
mod common;
mod convert;
mod declared;
mod measure;
mod object;
mod told;
mod union;
mod variants;

use serde_json::Value;

use super::check::Checker;
use super::create::as_object;
use super::equal::{copy, discard};
use super::findings::Change;
use super::node::{At, Kind, OBJECT, Property, Typed, Types};
use super::number::integer;
use super::path::Path;
use told::{Repairs, Told};

pub(super) use common::{closes, has_nothing_of, may_declare, may_declare_some};
pub(crate) use measure::Measure;
pub(super) use told::Mark;

/// The steps that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Undeclared properties are removed and defaults filled in; nothing is repaired.
    Clean,
    /// As `Clean`, and values are rewritten as the schema asks if nothing is lost; all else stays unchanged.
    Repair,
    /// As `Clean`, and parts that do not conform are replaced as locally as possible.
    Normalise,
    /// Repairs only, exactly as the original makes them.
    Cast,
}

/// The undeclared properties that are removed.
#[derive(Clone, Copy)]
pub(super) enum Strip<'a> {
    All,
    /// For a member of an intersection, those that no member declares.
    Member(At<'a>, usize),
    None,
}

pub(super) struct Fixer<'c, 'a> {
    pub(super) checker: &'c Checker<'a>,
    pub(super) mode: Mode,
    measure: Measure,
    pub(super) repairs: Repairs,
    /// How often the original would have thrown.
    throws: usize,
    /// The properties being filled with defaults.
    filling: Vec<*const Property>,
    /// The one among them whose default would contain itself without end, and is ignored.
    endless: Option<*const Property>,
    /// The places where undeclared properties were removed; `None` if that is not reported.
    told: Option<Told>,
    /// The intersections whose members are being fixed, by their addresses and that of the value.
    open: Vec<(usize, usize)>,
    /// How many unions are being tried inside each other.
    trials: u32,
    /// True if the value was visited before, so that its nodes are counted already.
    is_again: bool,
}

impl<'c, 'a> Fixer<'c, 'a> {
    pub(super) fn new(checker: &'c Checker<'a>, mode: Mode, measure: Measure) -> Self {
        Fixer {
            checker,
            mode,
            measure,
            repairs: Repairs::default(),
            throws: 0,
            filling: Vec::new(),
            endless: None,
            told: None,
            open: Vec::new(),
            trials: 0,
            is_again: false,
        }
    }

    /// Begins a pass through the value in a mode.
    pub(super) fn begin(&mut self, mode: Mode, is_again: bool) {
        self.mode = mode;
        self.is_again = is_again;
        self.told = matches!(mode, Mode::Repair | Mode::Normalise).then(Told::default).filter(|_| !self.compat());
    }

    fn compat(&self) -> bool {
        self.checker.compat
    }

    /// Fixes a value; true if it conformed, apart from undeclared properties and defaults.
    pub(super) fn fix(&mut self, at: At<'a>, value: &mut Value, path: &Path<'_>, strip: Strip<'a>, depth: u32) -> bool {
        if !self.goes_on() {
            return false;
        }
        match &at.node.kind {
            Kind::Any => true,
            Kind::Never => self.keep(path, "nothing", Some(value)),
            Kind::Plain(types) => {
                if types.admits(value) {
                    self.write_integer(*types, value);
                    return true;
                }
                self.misfit(at, value, path, strip, depth)
            }
            Kind::Typed(typed) => self.typed(at, typed, value, path, strip, depth),
            Kind::Literals(values) => match self.found(|fixer| fixer.checker.is_one_of(values, value)) {
                Some(false) => self.misfit(at, value, path, strip, depth),
                conforms => conforms.is_some(),
            },
            Kind::Union(_) | Kind::Intersect(_) if !self.enters(0, depth) => self.too_deep(path, value),
            Kind::Union(union) => self.union(at, union, value, path, strip, depth),
            // An intersection that comes back to itself without a step into the value asks for nothing that is not
            // looked at already, as when values are checked.
            Kind::Intersect(_) if self.is_open(at, value) => true,
            Kind::Intersect(all) => {
                self.open.push(addresses(at, value));
                let conforms = self.intersect(at, all, value, path, strip, depth);
                self.open.pop();
                conforms
            }
            Kind::Ref(_) => match self.checker.follow(at) {
                // A default beside the reference has precedence over one behind it.
                Some(target) if at.node.default.is_some() && !self.compat() => {
                    self.with_default(at, target, value, path, strip, depth)
                }
                Some(target) => self.fix(target, value, path, strip, depth),
                None if self.compat() => self.keep(path, "a schema", Some(value)),
                None => true,
            },
        }
    }

    /// True if the members of an intersection are being fixed for this value already.
    fn is_open(&self, at: At<'a>, value: &Value) -> bool {
        let this = addresses(at, value);
        let mut of_value = self.open.iter().rev().take_while(|(_, value)| *value == this.1);
        !self.compat() && of_value.any(|open| *open == this)
    }

    fn typed(
        &mut self,
        at: At<'a>,
        typed: &'a Typed,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if !typed.types.admits(value) {
            if !(self.mode == Mode::Cast && self.compat() && typed.types.has(OBJECT) && value.is_array()) {
                return self.misfit(at, value, path, strip, depth);
            }
            return self.array_as_object(at, typed, value, path, depth);
        }
        match value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(number) => {
                let fits = match &typed.number {
                    Some(rules) => self.found(|fixer| fixer.checker.budget.spend(rules.steps()) && rules.check(number)),
                    None => Some(true),
                };
                let Some(fits) = fits else { return false };
                // Written as an integer if it is one, even out of bounds.
                self.write_integer(typed.types, value);
                fits || self.misfit(at, value, path, strip, depth)
            }
            Value::String(text) => {
                let Some(rules) = &typed.string else { return true };
                match self.found(|fixer| rules.check(text, &fixer.checker.budget)) {
                    Some(false) => self.misfit(at, value, path, strip, depth),
                    conforms => conforms.is_some(),
                }
            }
            Value::Array(items) => match &typed.array {
                None => true,
                Some(_) if !self.enters_parts(items.len(), depth) => self.too_deep(path, value),
                Some(rules) => self.array(at, rules, items, path, strip, depth),
            },
            Value::Object(map) => match &typed.object {
                None => true,
                Some(_) if !self.enters_parts(map.len(), depth) => self.too_deep(path, value),
                Some(rules) => self.object(at, rules, map, path, strip, depth),
            },
        }
    }

    /// The original treats an array as an object whose keys are the indices and "length".
    fn array_as_object(
        &mut self,
        at: At<'a>,
        typed: &'a Typed,
        value: &mut Value,
        path: &Path<'_>,
        depth: u32,
    ) -> bool {
        let Some(mut object) = copy(value) else { return self.keep(path, "object", Some(value)) };
        let mut map = as_object(object.take());
        map.insert("length".to_owned(), value.as_array().map_or(0, Vec::len).into());
        object = Value::Object(map);
        let (mark, throws) = (self.mark(), self.throws);
        self.typed(at, typed, &mut object, path, Strip::None, depth);
        if let (Value::Object(map), Some(rules)) = (&mut object, &typed.object) {
            self.drop_undeclared(rules, map, path);
        }
        self.rollback(mark);
        if self.throws != throws {
            return self.keep(path, "object", Some(value));
        }
        self.record(path, "object".to_owned(), "array");
        discard(std::mem::replace(value, object));
        false
    }

    /// Rewrites `1.0` as `1` if only an integer conforms, so that it decodes into one.
    fn write_integer(&self, types: Types, value: &mut Value) {
        if self.mode != Mode::Cast
            && !self.compat()
            && types.wants_integer()
            && let Value::Number(number) = value
            && let Some(integer) = integer(number)
        {
            *number = integer;
        }
    }

    /// Handles a value that does not conform, by the mode.
    fn misfit(&mut self, at: At<'a>, value: &mut Value, path: &Path<'_>, strip: Strip<'a>, depth: u32) -> bool {
        if self.is_accepted(at, value) {
            return true;
        }
        match self.mode {
            Mode::Repair => self.convert(at, value, path, strip, depth),
            _ => self.replace(at, value, path, depth),
        }
    }

    /// Replaces a value that does not conform by a created one, if one can be created.
    fn replace(&mut self, at: At<'a>, value: &mut Value, path: &Path<'_>, depth: u32) -> bool {
        if self.mode == Mode::Clean {
            return false;
        }
        let like = if self.compat() { Types::NONE } else { Types::of(value) };
        let expected = self.checker.expectation(at, Some(value));
        match self.created(at, like, depth) {
            Some(created) => {
                self.record(path, expected, kind(Some(value)));
                discard(std::mem::replace(value, created));
                false
            }
            None => self.keep(path, &expected, Some(value)),
        }
    }

    /// A created replacement for a value; `None` where the original throws.
    fn created(&mut self, at: At<'a>, like: Types, depth: u32) -> Option<Value> {
        let mut created = self.checker.create(at, like, depth)?;
        let target = self.checker.follow(at)?;
        let array = match &target.node.kind {
            Kind::Typed(typed) => {
                typed.array.as_ref().filter(|rules| !rules.exact && typed.types.made() == super::node::ARRAY)
            }
            _ => None,
        };
        let (mark, throws) = (self.mark(), self.throws);
        if array.is_some() && self.compat() {
            // The items of a created array are cast in turn, and so is a default; a default that is no array throws.
            created.as_array()?;
            self.fix(target, &mut created, path_of_created(), Strip::None, depth + 1);
        } else if self.mode == Mode::Normalise {
            // A made-up value gets its optional defaults as any other value does.
            self.within(Mode::Clean, |fixer| fixer.fix(at, &mut created, path_of_created(), Strip::All, depth + 1));
        }
        self.rollback(mark);
        // If the created value does not fit, the received one is as good, and is kept; the original replaces it.
        let fits = self.throws == throws && (self.compat() || self.checker.check(at, &created, depth));
        fits.then_some(created)
    }

    /// A node whose own default has precedence over that of the schema it refers to.
    fn with_default(
        &mut self,
        at: At<'a>,
        target: At<'a>,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let creates = match &target.node.kind {
            // These are cast inside; the default replaces only values of another type.
            Kind::Typed(typed) => !typed.types.admits(value) || !(value.is_array() || value.is_object()),
            Kind::Plain(_) | Kind::Literals(_) => true,
            _ => false,
        };
        let replaces = !matches!(self.mode, Mode::Clean | Mode::Repair);
        if creates && replaces && !self.checker.check(target, value, depth) && !self.is_accepted(target, value) {
            return self.replace(at, value, path, depth);
        }
        self.fix(target, value, path, strip, depth)
    }

    /// The value of an absent property; `None` if it must stay absent.
    fn fix_absent(&mut self, at: At<'a>, depth: u32) -> Option<Value> {
        if !self.compat() {
            return if matches!(at.node.kind, Kind::Any) { None } else { self.created(at, Types::NONE, depth) };
        }
        if !self.checker.enter(depth) || self.checker.admits_absence(at, 0) {
            return None;
        }
        match &at.node.kind {
            Kind::Never => None,
            Kind::Ref(_) => self.fix_absent(self.checker.follow(at)?, depth + 1),
            Kind::Union(_) if self.checker.default_of(at).is_some() => self.created(at, Types::NONE, depth),
            Kind::Union(union) => self.fix_absent(at.to(union.variants.first()?), depth + 1),
            _ => self.created(at, Types::NONE, depth),
        }
    }

    /// Runs a function in another mode, on a value that is also processed before or afterwards.
    fn within<T>(&mut self, mode: Mode, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.mode, mode);
        let result = self.again(run);
        self.mode = outer;
        result
    }

    /// Runs a function on nodes that are counted already, or never are.
    fn again<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.is_again, true);
        let result = run(self);
        self.is_again = outer;
        result
    }

    /// Goes on after the steps ran out, if the known size of the value allows more.
    #[inline]
    fn goes_on(&self) -> bool {
        !self.checker.budget.is_dry() || self.checker.budget.refill(None)
    }

    /// What is found out about a value, once more if the steps ran out on the way: then the result means nothing. `None`
    /// if there are no more steps.
    fn found<T>(&self, find: impl Fn(&Self) -> T) -> Option<T> {
        self.checker.found(None, || find(self))
    }

    /// Enters a schema, which takes so many steps more; once more if the known size of the value allows more of them.
    fn enters(&self, steps: u64, depth: u32) -> bool {
        let enters = || self.checker.enter(depth) && self.checker.budget.spend(steps);
        enters() || self.checker.budget.is_dry() && self.goes_on() && enters()
    }

    /// Enters a list or an object with so many parts.
    fn enters_parts(&self, parts: usize, depth: u32) -> bool {
        if !self.is_again {
            self.checker.budget.grow(parts);
        }
        self.enters(parts as u64 / 2, depth)
    }

    /// The current ends of the lists of reports.
    pub(super) fn mark(&self) -> Mark {
        Mark { repairs: self.repairs.mark(), told: self.told.as_ref().map_or(0, Told::mark) }
    }

    /// Takes back the reports since a mark.
    pub(super) fn rollback(&mut self, mark: Mark) {
        self.repairs.undo(mark.repairs);
        if let Some(told) = &mut self.told {
            told.undo(mark.told);
        }
    }

    fn too_deep(&mut self, path: &Path<'_>, value: &Value) -> bool {
        // That the steps ran out is reported once, for the whole value.
        let is_told = self.mode == Mode::Clean || self.checker.budget.is_dry();
        if is_told { false } else { self.keep(path, "less nesting", Some(value)) }
    }

    /// Records a part that could not be repaired, where the original throws.
    fn keep(&mut self, path: &Path<'_>, expected: &str, value: Option<&Value>) -> bool {
        self.throws += 1;
        self.remain(path, expected.to_owned(), kind(value))
    }

    /// Records a part that remains wrong, where nothing is thrown.
    fn remain(&mut self, path: &Path<'_>, expected: String, found: &'static str) -> bool {
        self.note(path, || expected, found, Change::Kept);
        false
    }

    /// Records a made-up value.
    fn record(&mut self, path: &Path<'_>, expected: String, found: &'static str) {
        self.note(path, || expected, found, Change::MadeUp);
    }

    fn note(&mut self, path: &Path<'_>, expected: impl FnOnce() -> String, found: &'static str, change: Change) {
        if self.mode != Mode::Clean {
            self.repairs.tell(path, expected, found, change);
        }
    }

    /// Records the repair of an absent value.
    pub(super) fn fix_root_absent(&mut self, at: At<'a>) -> Option<Value> {
        if self.checker.admits_absence(at, 0) {
            return None;
        }
        let expected = self.checker.expectation(at, None);
        let created = self.fix_absent(at, 0);
        match created {
            Some(_) => self.record(&Path::ROOT, expected, kind(None)),
            None => {
                self.remain(&Path::ROOT, expected, kind(None));
            }
        }
        created
    }
}

fn addresses(at: At<'_>, value: &Value) -> (usize, usize) {
    (std::ptr::from_ref(at.node).addr(), std::ptr::from_ref(value).addr())
}

/// Changes inside a created value are not reported.
fn path_of_created() -> &'static Path<'static> {
    const { &Path::ROOT }
}

/// The kind of a value, to be reported instead of the value.
pub(crate) fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "absent",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    }
}
