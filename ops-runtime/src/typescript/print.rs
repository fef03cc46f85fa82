//! Types as TypeScript, whole or cut.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use super::policy::{Extent, Optional, Policy, Words};
use super::scope::{Lowered, Scope};
use super::text;
use super::tree::{Doc, Object, Property, Type};

/// A line is broken beyond so many characters.
const WIDTH: usize = 100;

/// Writes types, and remembers the named ones that it mentions.
pub(super) struct Printer<'p> {
    pub(super) out: String,
    policy: &'p Policy,
    /// True if something was left out.
    pub(super) is_cut: bool,
    mentioned: VecDeque<(usize, Place)>,
}

/// Where a type is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// How far lines are indented.
    pub(super) indent: usize,
    /// True for what callers give, of which nothing that is required may be cut.
    pub(super) is_input: bool,
    /// True if a caller cannot do without it.
    pub(super) is_due: bool,
    /// How many objects it is inside.
    pub(super) depth: usize,
}

impl Place {
    fn inside(self) -> Self {
        Self { indent: self.indent + 2, depth: self.depth + 1, ..self }
    }
}

/// How tightly what surrounds a type binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tight {
    Not,
    Union,
    Intersection,
    Array,
}

impl<'p> Printer<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self { out: String::new(), policy, is_cut: false, mentioned: VecDeque::new() }
    }

    /// Writes a type.
    pub(super) fn type_(&mut self, scope: &Scope<'_>, type_: &Type, place: Place) {
        self.within(scope, type_, place, Tight::Not);
    }

    fn within(&mut self, scope: &Scope<'_>, type_: &Type, place: Place, tight: Tight) {
        match type_ {
            Type::Unknown => self.out.push_str("unknown"),
            Type::Never => self.out.push_str("never"),
            Type::Null => self.out.push_str("null"),
            Type::Boolean => self.out.push_str("boolean"),
            Type::Number => self.out.push_str("number"),
            Type::String => self.out.push_str("string"),
            Type::Literal(text) => self.out.push_str(text),
            Type::Named(number) => {
                self.mentioned.push_back((*number, place));
                self.out.push_str(scope.item(*number).map_or("unknown", |item| &item.name));
            }
            Type::Array(item) => {
                self.within(scope, item, place, Tight::Array);
                self.out.push_str("[]");
            }
            Type::Tuple(items, least, rest) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push_str(", ");
                    }
                    self.within(scope, item, place, if at < *least { Tight::Not } else { Tight::Array });
                    if at >= *least {
                        self.out.push('?');
                    }
                }
                if let Some(rest) = rest {
                    self.out.push_str(", ...");
                    self.within(scope, rest, place, Tight::Array);
                    self.out.push_str("[]");
                }
                self.out.push(']');
            }
            Type::Object(object) => self.object(scope, object, place),
            Type::Union(members) => self.joined(scope, members, place, tight, Tight::Union),
            Type::Intersection(members) => self.joined(scope, members, place, tight, Tight::Intersection),
        }
    }

    fn joined(&mut self, scope: &Scope<'_>, members: &[Type], place: Place, tight: Tight, own: Tight) {
        let literals = members.iter().filter(|member| matches!(member, Type::Literal(_))).count();
        if literals > self.policy.values {
            return self.cut_literals(members, tight);
        }
        if tight >= own {
            self.out.push('(');
        }
        let sign = if own == Tight::Union { "| " } else { "& " };
        for (at, member) in members.iter().enumerate() {
            if at > 0 {
                let line = self.out.len() - self.out.rfind('\n').map_or(0, |at| at + 1);
                let next = match member {
                    Type::Literal(text) => text.len() + 3,
                    Type::Named(number) => scope.item(*number).map_or(0, |item| item.name.len()) + 3,
                    Type::Array(_) | Type::Object(_) => 20,
                    _ => 10,
                };
                if line + next > WIDTH {
                    self.line(place.indent + 2);
                } else {
                    self.out.push(' ');
                }
                self.out.push_str(sign);
            }
            self.within(scope, member, place, own);
        }
        if tight >= own {
            self.out.push(')');
        }
    }

    /// Writes what literals have in common, and the first of them as a comment.
    fn cut_literals(&mut self, members: &[Type], tight: Tight) {
        self.is_cut = true;
        let mut bases: Vec<&str> = Vec::new();
        let mut shown = Vec::new();
        for member in members {
            let base = match member {
                Type::Literal(text) if text.starts_with('"') => "string",
                Type::Literal(text) if text == "true" || text == "false" => "boolean",
                Type::Literal(text) if !text.starts_with(['[', '{']) => "number",
                Type::Null => "null",
                _ => "unknown",
            };
            if !bases.contains(&base) {
                bases.push(base);
            }
            if let Type::Literal(text) = member
                && shown.len() < self.policy.first.min(self.policy.values)
            {
                shown.push(text::comment(text));
            }
        }
        let more = members.len() - shown.len();
        let type_ = if bases.contains(&"unknown") { "unknown".to_owned() } else { bases.join(" | ") };
        let type_ = if tight > Tight::Not && bases.len() > 1 { format!("({type_})") } else { type_ };
        self.out.push_str(&format!("{type_} /* {} | ... {more} more */", shown.join(" | ")));
    }

    fn object(&mut self, scope: &Scope<'_>, object: &Object, place: Place) {
        let inside = place.inside();
        let extent = self.extent(place);
        if !place.is_due && place.depth >= extent.depth {
            self.is_cut = true;
            return self.out.push_str("{ [key: string]: unknown }");
        }
        let others = object.others.as_deref();
        if let (Some(others), []) = (others, object.properties.as_slice()) {
            if object.is_open {
                let told = told(scope, others).map(|told| format!(" /* {told} */"));
                return self.out.push_str(&format!("{{ [key: string]: unknown{} }}", told.unwrap_or_default()));
            }
            self.out.push_str("{ [key: string]: ");
            self.within(scope, others, Place { indent: place.indent, ..inside }, Tight::Not);
            self.out.push_str(" }");
            return;
        }
        if is_short(object, self.policy) {
            return self.on_one_line(scope, object, inside);
        }
        self.out.push('{');
        let mut left_out = 0;
        let mut listed: Vec<String> = Vec::new();
        let mut written = 0;
        for property in &object.properties {
            let is_due = place.is_due && !property.is_optional;
            let is_full = written + listed.len() >= extent.properties;
            let (is_listed, is_gone) =
                if is_due { (false, false) } else { (place.is_input && self.is_listed(property, place), is_full) };
            if is_gone {
                left_out += 1;
            } else if is_listed {
                listed.push(format!(
                    "{}{}: unknown",
                    text::property(&property.name),
                    if property.is_optional { "?" } else { "" }
                ));
            } else {
                written += 1;
                self.property(scope, property, Place { is_due, ..inside });
            }
        }
        self.fill(&listed, inside.indent);
        if left_out > 0 {
            self.is_cut = true;
            self.line(inside.indent);
            self.out.push_str(&format!("[key: string]: unknown; // {left_out} more"));
        } else if others.is_some() {
            // All properties would have to be of this type, too, so it can only be told.
            self.line(inside.indent);
            self.out.push_str("[key: string]: unknown;");
            if let Some(told) = others.and_then(|others| told(scope, others)) {
                self.out.push_str(&format!(" // {told}"));
            }
        }
        self.line(place.indent);
        self.out.push('}');
    }

    fn extent(&self, place: Place) -> Extent {
        if place.is_input { self.policy.given } else { self.policy.got }
    }

    /// True if only the name of an optional property is written.
    fn is_listed(&self, property: &Property, place: Place) -> bool {
        // The body of a request is one of its properties, and is told by its own.
        let is_body = place.depth == 0 && matches!(property.type_, Type::Object(_) | Type::Named(_));
        match self.policy.optional {
            Optional::Whole => false,
            Optional::Simple => !is_body && !is_simple(&property.type_, 6),
            Optional::Names => !is_body,
        }
    }

    fn fill(&mut self, listed: &[String], indent: usize) {
        if listed.is_empty() {
            return;
        }
        self.is_cut = true;
        let mut width = WIDTH;
        for property in listed {
            if width + property.len() + 2 > WIDTH {
                self.line(indent);
                width = indent;
            } else {
                self.out.push(' ');
            }
            self.out.push_str(property);
            self.out.push(';');
            width += property.len() + 2;
        }
    }

    fn property(&mut self, scope: &Scope<'_>, property: &Property, place: Place) {
        let words = if place.is_due {
            self.policy.due
        } else if place.is_input {
            self.policy.input
        } else {
            self.policy.output
        };
        self.doc(&property.doc, words, place.indent);
        self.line(place.indent);
        self.name(property);
        self.within(scope, &property.type_, place, Tight::Not);
        self.out.push(';');
    }

    fn name(&mut self, property: &Property) {
        self.out.push_str(&text::property(&property.name));
        self.out.push_str(if property.is_optional { "?: " } else { ": " });
    }

    fn on_one_line(&mut self, scope: &Scope<'_>, object: &Object, place: Place) {
        self.out.push_str("{ ");
        for (at, property) in object.properties.iter().enumerate() {
            if at > 0 {
                self.out.push_str("; ");
            }
            self.name(property);
            let is_due = place.is_due && !property.is_optional;
            self.within(scope, &property.type_, Place { is_due, ..place }, Tight::Not);
        }
        self.out.push_str(" }");
    }

    /// Writes what is said of something, before it.
    pub(super) fn doc(&mut self, doc: &Doc, words: Words, indent: usize) {
        if doc.is_empty() {
            return;
        }
        let lines = match words {
            Words::None => {
                self.is_cut = true;
                return;
            }
            Words::Sentences(most, limit) => {
                let (mut line, is_cut) = text::sentences(&doc.text, most, limit);
                self.is_cut |= is_cut;
                for (tag, value) in &doc.tags {
                    if *tag == "pattern" && value.len() > 40 {
                        continue;
                    }
                    line = format!("{line} @{tag} {value}").trim().to_owned();
                }
                vec![line]
            }
            Words::All => {
                let tags = doc.tags.iter().map(|(tag, value)| format!("@{tag} {value}").trim_end().to_owned());
                text::lines(&doc.text).into_iter().chain(tags).collect()
            }
        };
        self.comment(&lines, indent);
    }

    /// Writes a comment of these lines, in which nothing can end it.
    pub(super) fn comment(&mut self, lines: &[String], indent: usize) {
        match lines {
            [] => {}
            [line] if line.is_empty() => {}
            [line] if line.len() < 160 => {
                self.line(indent);
                self.out.push_str(&format!("/** {line} */"));
            }
            lines => {
                self.line(indent);
                self.out.push_str("/**");
                for line in lines {
                    self.line(indent);
                    self.out.push_str(if line.is_empty() { " *" } else { " * " });
                    self.out.push_str(line);
                }
                self.line(indent);
                self.out.push_str(" */");
            }
        }
    }

    pub(super) fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Writes the named types that were mentioned: first those that callers need, then the others as far as they go.
    ///
    /// What is not written is declared as `unknown`, which is true of all.
    pub(super) fn named(&mut self, scope: &mut Scope<'_>, indent: usize) {
        let mut places: HashMap<usize, bool> = HashMap::new();
        let mut late: VecDeque<(usize, Place)> = VecDeque::new();
        let mut undone: BTreeSet<(usize, usize)> = BTreeSet::new();
        loop {
            while let Some((number, place)) = self.mentioned.pop_front() {
                if place.is_due && !places.contains_key(&number) {
                    places.insert(number, true);
                    let lowered = scope.lowered(number);
                    self.item(scope, number, &lowered, Place { indent, ..place });
                } else if !places.contains_key(&number) {
                    late.push_back((number, place));
                }
            }
            let Some((number, place)) = late.pop_front() else { break };
            if places.contains_key(&number) {
                continue;
            }
            let lowered = scope.lowered(number);
            let is_small = matches!(&lowered.type_, Type::Union(members) if members.iter().all(|m| matches!(m, Type::Literal(_) | Type::Null)))
                || is_simple(&lowered.type_, 6);
            if (place.depth < self.extent(place).depth || is_small) && self.out.len() < self.policy.size {
                places.insert(number, true);
                undone.remove(&(0, number));
                self.item(scope, number, &lowered, Place { indent, ..place });
            } else {
                undone.insert((0, number));
            }
        }
        let names: Vec<String> = undone
            .into_iter()
            .filter(|(_, number)| !places.contains_key(number))
            .filter_map(|(_, number)| scope.item(number).map(|item| format!("type {} = unknown", item.name)))
            .collect();
        self.fill(&names, indent);
    }

    fn item(&mut self, scope: &Scope<'_>, number: usize, lowered: &Rc<Lowered>, place: Place) {
        let words = if place.is_due {
            self.policy.due
        } else if place.is_input {
            self.policy.input
        } else {
            self.policy.output
        };
        self.doc(&lowered.doc, words, place.indent);
        self.line(place.indent);
        let name = scope.item(number).map_or("Unknown", |item| item.name.as_str()).to_owned();
        self.out.push_str(&format!("type {name} = "));
        self.type_(scope, &lowered.type_, place);
        self.out.push(';');
    }
}

/// True if an object has few properties of short types, and nothing is said of them.
fn is_short(object: &Object, policy: &Policy) -> bool {
    let is_short = |property: &Property| {
        (property.doc.is_empty() || policy.is_silent()) && is_simple(&property.type_, 3) && property.name.len() < 20
    };
    object.others.is_none() && object.properties.len() <= 3 && object.properties.iter().all(is_short)
}

/// True if a type is about as short as `unknown`, with at most so many literals.
fn is_simple(type_: &Type, literals: usize) -> bool {
    match type_ {
        Type::Object(_) | Type::Tuple(..) | Type::Intersection(_) => false,
        Type::Literal(text) => text.len() < 24,
        Type::Array(item) => is_simple(item, literals) && !matches!(**item, Type::Union(_)),
        Type::Union(members) => members.len() <= literals && members.iter().all(|member| is_simple(member, literals)),
        Type::Named(_) => false,
        _ => true,
    }
}

/// A type in a few words; `None` if it takes more.
fn told(scope: &Scope<'_>, type_: &Type) -> Option<String> {
    Some(match type_ {
        Type::Null => "null".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Number => "number".to_owned(),
        Type::String => "string".to_owned(),
        Type::Named(number) => scope.item(*number)?.name.clone(),
        Type::Array(item) => format!("{}[]", told(scope, item)?),
        Type::Union(members) if members.len() <= 4 => {
            members.iter().map(|member| told(scope, member)).collect::<Option<Vec<_>>>()?.join(" | ")
        }
        _ => return None,
    })
}
