//! Objects and arrays: the rules of their parts.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Lowering;
use crate::model::keywords::certain;
use crate::normalise::draft::{ArrayDraft, Extra, ObjectDraft};
use crate::normalise::node::{Additional, ArrayRules, Kind, Node, ObjectRules, Property, Rest, Target};
use crate::normalise::pattern::Pattern;
use crate::normalise::reference::{Found, Raw};

/// In how many schemas `writeOnly` is looked for behind references and in parts.
const STEPS: u32 = 16;

impl<'s> Lowering<'s, '_> {
    pub(super) fn array(&mut self, draft: &ArrayDraft<'s>, depth: u32) -> ArrayRules {
        let mut prefix = Vec::with_capacity(draft.prefix.len());
        for schemas in &draft.prefix {
            prefix.push(self.each_with(schemas, &draft.conditional, depth));
        }
        ArrayRules {
            prefix,
            rest: match &draft.rest {
                Extra::Unspecified | Extra::Any => Rest::Any,
                Extra::Never => Rest::Never,
                Extra::Each(schemas) => Rest::Each(self.each_with(schemas, &draft.conditional, depth)),
            },
            min: draft.min,
            max: draft.max,
            unique: draft.unique,
            exact: false,
        }
    }

    pub(super) fn object(
        &mut self,
        draft: ObjectDraft<'s>,
        among_unions: bool,
        unknown: bool,
        depth: u32,
    ) -> ObjectRules {
        let mut required: HashSet<&str> = draft.required.iter().copied().collect();
        let declares = !(draft.properties.is_empty() && draft.patterns.is_empty());
        let mut conditional: HashMap<&str, Vec<Raw<'s>>> = HashMap::new();
        for (name, schema) in &draft.conditional {
            conditional.entry(*name).or_default().extend(schema);
        }
        let mut properties = Vec::with_capacity(draft.properties.len());
        for (name, schemas) in &draft.properties {
            let below = conditional.get(name).map_or(&[][..], Vec::as_slice);
            let (node, is_required) = (self.each_with(schemas, below, depth), required.remove(name));
            // What a definition of the table says is found out with its default, so that it need not be read now.
            let reads = is_required || node.default.is_some() || matches!(node.kind, Kind::Ref(Target::Local(_)));
            let is_write_only = schemas.iter().any(|raw| self.is_write_only(*raw, reads, &mut { STEPS }));
            properties.push(Property {
                name: (*name).into(),
                node,
                // A response need not have properties that only requests have (OpenAPI 3.0, section 4.7.24.2).
                required: is_required && !is_write_only,
                is_conditional: false,
                is_write_only,
                is_undescribed: false,
            });
        }
        let any = |name: &str, required| Property {
            name: name.into(),
            node: Node::any(),
            required,
            is_conditional: !required,
            is_write_only: false,
            is_undescribed: required,
        };
        // Required without being declared: any value will do, but it must be present.
        for name in draft.required.iter().filter(|name| required.remove(*name)) {
            properties.push(any(name, true));
        }
        // It is unknown here if a condition holds: what it declares is kept unchanged.
        let is_open = !draft.sealed && (declares || among_unions || !matches!(draft.additional, Extra::Unspecified));
        let unknown = unknown || draft.hides && !draft.sealed;
        if is_open {
            let mut known: HashSet<&str> = properties.iter().map(|property: &Property| &*property.name).collect();
            let names: Vec<&str> =
                draft.conditional.iter().map(|(name, _)| *name).filter(|name| known.insert(name)).collect();
            properties.extend(names.into_iter().map(|name| any(name, false)));
        }
        let mut patterns = Vec::with_capacity(draft.patterns.len());
        for (source, raw) in &draft.patterns {
            let pattern = Pattern::new(source, false);
            // Of a pattern that cannot be read, any name may be: it stays, and nothing is asked of it.
            let is_readable = self.reads(&pattern);
            patterns.push((pattern, if is_readable { self.schema(*raw, depth + 1) } else { Node::any() }));
        }
        ObjectRules {
            properties,
            patterns,
            // If properties are counted, undeclared ones count too.
            keeps_undeclared: unknown
                || draft.min.is_some_and(|min| min > 0) && !matches!(draft.additional, Extra::Never)
                || matches!(draft.additional, Extra::Any | Extra::Each(_))
                || !declares && matches!(draft.additional, Extra::Unspecified),
            // Beside unions, what is unknown may declare what none of their variants does.
            declares: declares || unknown,
            additional: match draft.additional {
                Extra::Unspecified => Additional::Unspecified,
                // The variants of a union beside it also declare properties, so others are only stripped, not refused.
                Extra::Never if among_unions || draft.hides && !draft.sealed => Additional::Unspecified,
                Extra::Never => Additional::False,
                Extra::Any => Additional::True,
                // `unevaluatedProperties` is about what they do not declare.
                Extra::Each(_) if !draft.sealed && (among_unions || unknown) => Additional::True,
                Extra::Each(schemas) => Additional::Each(self.each(&schemas, depth)),
            },
            min: draft.min,
            max: draft.max,
            ..ObjectRules::default()
        }
        .indexed()
    }

    /// True if a schema says `writeOnly`, itself or by what it refers to or consists of, null aside. Definitions of the table
    /// count if they are to be read for it.
    fn is_write_only(&mut self, raw: Raw<'s>, reads: bool, steps: &mut u32) -> bool {
        let (Some(left), Value::Object(map)) = (steps.checked_sub(1), raw.schema) else { return false };
        *steps = left;
        if map.get("writeOnly") == Some(&Value::Bool(true)) {
            return true;
        }
        let reference = map.get("$ref").and_then(Value::as_str);
        let is_behind = match reference.map(|reference| self.anchors.resolve(raw, reference)) {
            Some(Found::Here(target)) => self.is_write_only(target, reads, steps),
            Some(Found::Shared(key)) => reads && self.definitions.is_write_only(&key),
            Some(Found::Nowhere) | None => false,
        };
        is_behind || certain(raw.schema).any(|member| self.is_write_only(raw.to(member), reads, steps))
    }

    /// True if a pattern can be read; if not, that is told.
    pub(super) fn reads(&mut self, pattern: &Pattern) -> bool {
        let problem = pattern.admit(self.patterns);
        let is_readable = problem.is_none();
        problem.into_iter().for_each(|problem| self.problems.add(problem));
        is_readable
    }
}
