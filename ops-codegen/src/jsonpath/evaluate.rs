//! The evaluation of queries, step by step.

use std::borrow::Cow;

use ops_runtime::spec::pointer;
use serde_json::Value;

use super::filter::{compare, pattern};
use super::query::{Expression, Operand, Path, Pattern, Segment, Selector};

/// How many nodes are kept at once.
const MAX_NODES: usize = 4_000_000;

/// What evaluations may still cost.
#[derive(Debug)]
pub(crate) struct Steps(usize);

impl Steps {
    pub(crate) fn new(steps: usize) -> Self {
        Self(steps)
    }

    /// Takes so many steps; `None` if there are too few.
    pub(crate) fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// The pointers of the nodes that the segments select from a root.
pub(super) fn select(segments: &[Segment], root: &Value, steps: &mut Steps) -> Option<Vec<String>> {
    let root = Node { value: root, parent: 0, step: Step::Root };
    let mut evaluation = Evaluation { nodes: vec![root], steps };
    let found = evaluation.run(0, segments)?;
    found.into_iter().map(|node| evaluation.pointer(node)).collect()
}

struct Evaluation<'v, 's> {
    /// All nodes that were visited, the root first.
    nodes: Vec<Node<'v>>,
    steps: &'s mut Steps,
}

#[derive(Clone, Copy)]
struct Node<'v> {
    value: &'v Value,
    parent: usize,
    step: Step<'v>,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Root,
    Name(&'v str),
    Index(usize),
}

impl<'v> Evaluation<'v, '_> {
    /// Selects from a node; returns the numbers of the nodes.
    fn run(&mut self, start: usize, segments: &[Segment]) -> Option<Vec<usize>> {
        let mut current = vec![start];
        for segment in segments {
            let mut next = Vec::new();
            for node in current {
                if !segment.descends {
                    self.apply(node, &segment.selectors, &mut next)?;
                    continue;
                }
                let mut stack = vec![node];
                while let Some(node) = stack.pop() {
                    self.apply(node, &segment.selectors, &mut next)?;
                    let first = stack.len();
                    self.children(node, &mut stack)?;
                    if let Some(children) = stack.get_mut(first..) {
                        children.reverse();
                    }
                }
            }
            current = next;
        }
        Some(current)
    }

    fn value(&self, node: usize) -> &'v Value {
        self.nodes.get(node).map_or(&Value::Null, |node| node.value)
    }

    /// Adds a node; returns its number.
    fn add(&mut self, parent: usize, step: Step<'v>, value: &'v Value) -> Option<usize> {
        self.steps.spend(1)?;
        if self.nodes.len() == MAX_NODES {
            return None;
        }
        self.nodes.push(Node { value, parent, step });
        Some(self.nodes.len() - 1)
    }

    fn children(&mut self, node: usize, found: &mut Vec<usize>) -> Option<()> {
        match self.value(node) {
            Value::Object(members) => {
                for (name, value) in members {
                    found.push(self.add(node, Step::Name(name), value)?);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    found.push(self.add(node, Step::Index(index), value)?);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn apply(&mut self, node: usize, selectors: &[Selector], found: &mut Vec<usize>) -> Option<()> {
        let value = self.value(node);
        for selector in selectors {
            self.steps.spend(1)?;
            match (selector, value) {
                (Selector::Name(name), Value::Object(members)) => {
                    if let Some((name, value)) = members.get_key_value(name) {
                        found.push(self.add(node, Step::Name(name), value)?);
                    }
                }
                (Selector::Wildcard, _) => self.children(node, found)?,
                (Selector::Index(index), Value::Array(items)) => {
                    let length = i64::try_from(items.len()).ok()?;
                    let index = usize::try_from(if *index < 0 { *index + length } else { *index }).ok();
                    if let Some((index, value)) = index.and_then(|index| Some((index, items.get(index)?))) {
                        found.push(self.add(node, Step::Index(index), value)?);
                    }
                }
                (Selector::Slice { start, end, step }, Value::Array(items)) => {
                    for index in slice(*start, *end, *step, items.len()) {
                        if let Some(value) = items.get(index) {
                            found.push(self.add(node, Step::Index(index), value)?);
                        }
                    }
                }
                (Selector::Filter(filter), _) => {
                    let mut all = Vec::new();
                    let first = self.nodes.len();
                    self.children(node, &mut all)?;
                    let children = self.nodes.split_off(first);
                    for child in children {
                        let at = self.nodes.len();
                        self.nodes.push(child);
                        let is_wanted = self.test(at, filter)?;
                        // What a filter visited is needed no more.
                        self.nodes.truncate(at + usize::from(is_wanted));
                        found.extend(is_wanted.then_some(at));
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn test(&mut self, node: usize, filter: &Expression) -> Option<bool> {
        self.steps.spend(1)?;
        match filter {
            Expression::Or(parts) => self.first(node, parts, true),
            Expression::And(parts) => Some(!self.first(node, parts, false)?),
            Expression::Not(inner) => Some(!self.test(node, inner)?),
            Expression::Exists(path) => Some(!self.path(node, path)?.is_empty()),
            Expression::Compare(left, operator, right) => {
                let (left, right) = (self.operand(node, left)?, self.operand(node, right)?);
                compare(left.as_deref(), *operator, right.as_deref(), self.steps)
            }
            Expression::Matches { text, by, is_whole } => {
                let text = self.operand(node, text)?;
                let Some(text) = text.as_deref().and_then(Value::as_str) else { return Some(false) };
                self.steps.spend(1 + text.len().saturating_mul(16))?;
                Some(match by {
                    Pattern::Known(regex) => regex.is_match(text),
                    Pattern::Found(operand) => {
                        let found = self.operand(node, operand)?;
                        let Some(by) = found.as_deref().and_then(Value::as_str) else { return Some(false) };
                        self.steps.spend(by.len().saturating_mul(text.len().saturating_add(64)))?;
                        pattern(by, *is_whole).is_ok_and(|regex| regex.is_match(text))
                    }
                })
            }
        }
    }

    /// True if one of the tests has that result.
    fn first(&mut self, node: usize, parts: &[Expression], wanted: bool) -> Option<bool> {
        for part in parts {
            if self.test(node, part)? == wanted {
                return Some(true);
            }
        }
        Some(false)
    }

    fn path(&mut self, node: usize, path: &Path) -> Option<Vec<usize>> {
        self.run(if path.is_relative { node } else { 0 }, &path.segments)
    }

    /// The value of an operand, if it has one.
    fn operand<'o>(&mut self, node: usize, operand: &'o Operand) -> Option<Option<Cow<'o, Value>>>
    where
        'v: 'o,
    {
        let number = |number: usize| Some(Some(Cow::Owned(Value::from(number))));
        match operand {
            Operand::Literal(value) => Some(Some(Cow::Borrowed(value))),
            Operand::Path(path) | Operand::Value(path) => {
                let found = self.path(node, path)?;
                let one = if let [one] = found[..] { Some(Cow::Borrowed(self.value(one))) } else { None };
                Some(one)
            }
            Operand::Count(path) => number(self.path(node, path)?.len()),
            Operand::Length(inner) => match self.operand(node, inner)?.as_deref() {
                Some(Value::String(text)) => {
                    self.steps.spend(text.len() / 64)?;
                    number(text.chars().count())
                }
                Some(Value::Array(items)) => number(items.len()),
                Some(Value::Object(members)) => number(members.len()),
                _ => Some(None),
            },
        }
    }

    /// The JSON pointer of a node.
    fn pointer(&mut self, node: usize) -> Option<String> {
        let (mut steps, mut at) = (Vec::new(), node);
        while let Some(Node { parent, step, .. }) = self.nodes.get(at) {
            match step {
                Step::Root => break,
                step => steps.push(*step),
            }
            at = *parent;
        }
        let mut text = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Root => {}
                Step::Name(name) => pointer::push(&mut text, name),
                Step::Index(index) => pointer::push(&mut text, &index.to_string()),
            }
        }
        self.steps.spend(text.len() / 8)?;
        Some(text)
    }
}

/// The indices of a slice (section 2.3.4.2.2).
fn slice(start: Option<i64>, end: Option<i64>, step: i64, length: usize) -> Vec<usize> {
    let Ok(length) = i64::try_from(length) else { return Vec::new() };
    let normal = |index: i64| if index < 0 { length.saturating_add(index) } else { index };
    let mut indices = Vec::new();
    if step > 0 {
        let (mut at, end) =
            (normal(start.unwrap_or(0)).clamp(0, length), normal(end.unwrap_or(length)).clamp(0, length));
        while at < end {
            indices.extend(usize::try_from(at));
            at = at.saturating_add(step);
        }
    } else if step < 0 {
        let last = length.saturating_sub(1);
        let mut at = normal(start.unwrap_or(last)).clamp(-1, last);
        let end = end.map_or(-1, |end| normal(end).clamp(-1, last));
        while at > end {
            indices.extend(usize::try_from(at));
            at = at.saturating_add(step);
        }
    }
    indices
}
