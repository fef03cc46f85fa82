//! Patterns that cannot be read: nothing may depend on whether a text matches them.

use super::keyword::{ANY, Id, Keyword, Schema, Union};
use crate::normalise::findings::Problems;
use crate::normalise::pattern::Pattern;
use crate::normalise::pattern::size::Allowance;

/// Tells which patterns cannot be read, and leaves out what would take them for matched.
///
/// Such a pattern asks nothing of a text, and `patternProperties` nothing of a value. What must not hold, or is a condition,
/// may hold or not: then nothing, or either consequence, is asked.
pub(super) fn settle(schemas: &mut [Schema], problems: &mut Problems) {
    let mut leads: Vec<Vec<usize>> = vec![Vec::new(); schemas.len()];
    let mut open = Vec::new();
    let allowance = Allowance::default();
    for (at, schema) in schemas.iter_mut().enumerate() {
        let Schema::Rules(rules) = schema else { continue };
        for keyword in &mut rules.keywords {
            if forget(keyword, &allowance, problems) {
                open.push(at);
            }
            keyword.each(|id, _| leads.iter_mut().skip(*id as usize).take(1).for_each(|from| from.push(at)));
        }
    }
    if open.is_empty() {
        return;
    }
    // Those that lead to such a pattern.
    let mut is_unknown = vec![false; schemas.len()];
    while let Some(at) = open.pop() {
        if let Some(mark) = is_unknown.get_mut(at).filter(|mark| !**mark) {
            *mark = true;
            open.extend(leads.get(at).into_iter().flatten());
        }
    }
    let is_unknown = |id: Id| is_unknown.get(id as usize).copied().unwrap_or_default();
    for schema in schemas {
        let Schema::Rules(rules) = schema else { continue };
        rules.keywords.retain(|keyword| !matches!(keyword, Keyword::Not(id) if is_unknown(*id)));
        for keyword in &mut rules.keywords {
            match keyword {
                Keyword::If { condition, then, otherwise } if is_unknown(*condition) => {
                    *keyword = Keyword::Any(Union { variants: vec![*then, *otherwise], tag: None });
                }
                Keyword::One(union) if union.variants.iter().any(|id| is_unknown(*id)) => {
                    *keyword = Keyword::Any(Union { variants: std::mem::take(&mut union.variants), tag: None });
                }
                Keyword::Contains { item, max, .. } if is_unknown(*item) => *max = None,
                _ => {}
            }
        }
    }
}

/// True if a keyword has patterns that cannot be read. What it would ask by them of the parts of a value is left out.
fn forget(keyword: &mut Keyword, allowance: &Allowance, problems: &mut Problems) -> bool {
    let mut reads = |pattern: &Pattern| {
        let problem = pattern.admit(allowance);
        let is_readable = problem.is_none();
        problem.into_iter().for_each(|problem| problems.add(problem));
        is_readable
    };
    let mut forgets = false;
    match keyword {
        Keyword::Text(rules) => rules.patterns.iter().for_each(|pattern| forgets |= !reads(pattern)),
        Keyword::Properties(properties) => {
            for (_, id) in properties.patterns.iter_mut().filter(|(pattern, _)| !reads(pattern)) {
                *id = ANY;
                forgets = true;
            }
        }
        _ => {}
    }
    forgets
}
