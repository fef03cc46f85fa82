//! Suggestions for misspelt names: of operations, and of arguments at a shell.

use crate::model::text::readable;

/// The longest word that is compared, in characters: the cost grows with the product of the lengths.
const LONGEST: usize = 200;

/// How many pairs of characters are compared for one word: a thousand names of 30 characters.
const STEPS: usize = 1_000_000;

/// The candidates that are most similar to a word, the most similar first, at most `most`.
///
/// Case and the characters between words are ignored; dissimilar words are left out. The cost is bounded: when the steps
/// for it are spent, the other candidates are left out.
///
/// ```
/// use ops_runtime::nearest::nearest;
///
/// let names = ["petId", "limit", "listPets", "createPets"];
/// assert_eq!(nearest("petid", names, 3), ["petId"]);
/// assert_eq!(nearest("list_pet", names, 3), ["listPets"]);
/// assert!(nearest("colour", names, 3).is_empty());
/// ```
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    among(wanted, &mut candidates.into_iter(), most)
}

/// Like [`nearest`], compiled once for all kinds of lists.
fn among<'a>(wanted: &str, candidates: &mut dyn Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let plain = plain(wanted);
    if plain.is_empty() {
        return Vec::new();
    }
    let mut steps = STEPS;
    let found = candidates.filter_map(|candidate| Some((distance(&plain, candidate, &mut steps)?, candidate)));
    let mut found: Vec<(f64, &str)> = found.collect();
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    // If a name differs only in its notation, no other is meant.
    let is_sure = found.first().is_some_and(|(distance, _)| *distance == 0.0);
    found
        .into_iter()
        .take_while(|(distance, _)| !is_sure || *distance == 0.0)
        .take(most)
        .map(|(_, name)| name)
        .collect()
}

/// The distance between the words; `None` if they are too dissimilar.
fn distance(wanted: &[char], candidate: &str, steps: &mut usize) -> Option<f64> {
    let candidate = plain(candidate);
    if wanted == candidate {
        return Some(0.0);
    }
    if wanted.len().max(candidate.len()) > LONGEST {
        return None;
    }
    // A part of a name is a worse match than a misspelt name.
    let is_part = wanted.len() > 2 && candidate.windows(wanted.len()).any(|part| part == wanted);
    let length = wanted.len().max(candidate.len());
    // Words whose lengths differ by more take as many edits at least.
    if !is_part && wanted.len().abs_diff(candidate.len()) * 3 > length {
        return None;
    }
    *steps = steps.checked_sub(wanted.len().saturating_mul(candidate.len()))?;
    let edits = edits(wanted, &candidate);
    let share = edits as f64 / length as f64;
    if edits * 3 <= length { Some(share) } else { is_part.then_some(1.0 + share) }
}

/// How many characters have to be added, removed, replaced, or swapped with the next, each at most once (the distance of
/// optimal string alignment).
fn edits(one: &[char], other: &[char]) -> usize {
    // Rows of the table of distances between beginnings of the two words.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        let mut left = row + 1;
        for (column, b) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut least = (at(&last, column) + usize::from(a != b)).min(at(&last, column + 1) + 1).min(left + 1);
            let swapped = column.checked_sub(1).filter(|at| previous == Some(b) && other.get(*at) == Some(a));
            if let Some(start) = swapped {
                least = least.min(at(&before, start) + 1);
            }
            next.push(least);
            left = least;
        }
        previous = Some(a);
        (before, last) = (last, next);
    }
    last.last().copied().unwrap_or_default()
}

fn plain(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A question for these names: ``: did you mean `a` or `b`?``; empty if there are none.
pub fn question(nearest: &[&str]) -> String {
    if nearest.is_empty() { String::new() } else { format!(": did you mean {}?", either(nearest)) }
}

/// The names that are similar, else the first of all in their order, at most `most`.
#[cfg(feature = "http")]
pub(crate) fn closest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let mut all: Vec<&str> = names.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    let mut found = nearest(wanted, all.iter().copied(), most);
    if found.is_empty() {
        found = all;
    }
    found.truncate(most);
    found
}

/// The names as they stand in a message: `` `a`, `b` or `c` ``.
pub(crate) fn either(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", readable(name, LONGEST))).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_found() {
        for (wanted, candidates, found) in [
            ("petid", &["petId", "petIds"][..], &["petId"][..]),
            ("pet_id", &["petId"], &["petId"]),
            ("nmae", &["name", "game", "same"], &["name"]),
            ("pet", &["createPet", "pets", "x"], &["pets", "createPet"]),
            ("sale", &["sales", "order"], &["sales"]),
            ("lst", &["list", "last"], &["last", "list"]),
            ("a", &["b"], &[]),
            ("", &["", "a"], &[]),
            ("--", &["__"], &[]),
        ] {
            assert_eq!(nearest(wanted, candidates.iter().copied(), 5), found, "{wanted}");
        }
        let long = "x".repeat(100_000);
        assert_eq!(nearest(&long, [long.as_str(), "y"], 5), [long.as_str()]);
        let many: Vec<String> = (0..100_000).map(|i| format!("{i:0>190}")).collect();
        let found = nearest(&"1".repeat(190), many.iter().map(String::as_str).chain([long.as_str()]), 5);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, wanted) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("nmae", "name", 1),
            ("ab", "ba", 1),
            ("ca", "abc", 3),
            ("abcdef", "badcfe", 3),
            ("müller", "muller", 1),
        ] {
            let chars = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(edits(&chars(one), &chars(other)), wanted, "{one} {other}");
            assert_eq!(edits(&chars(other), &chars(one)), wanted, "{other} {one}");
        }
    }

    #[test]
    fn a_question() {
        assert_eq!(question(&[]), "");
        assert_eq!(question(&["a"]), ": did you mean `a`?");
        assert_eq!(question(&["a", "b", "c"]), ": did you mean `a`, `b` or `c`?");
    }
}
