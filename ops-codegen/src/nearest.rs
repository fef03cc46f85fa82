//! What somebody may have meant, for the command `ops`; no part of the interface.

/// The candidates that are most like a word, the likest first, at most so many.
///
/// Case and the characters between words do not count; of words that are nothing alike none is given.
///
/// ```
/// use ops_codegen::nearest::nearest;
///
/// let names = ["petId", "limit", "listPets", "createPets"];
/// assert_eq!(nearest("petid", names, 3), ["petId"]);
/// assert_eq!(nearest("list_pet", names, 3), ["listPets"]);
/// assert!(nearest("colour", names, 3).is_empty());
/// ```
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let plain = plain(wanted);
    if plain.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(f64, &str)> =
        candidates.into_iter().filter_map(|candidate| Some((distance(&plain, candidate)?, candidate))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    // Beside a name that differs in its writing only, no other is meant.
    let is_sure = found.first().is_some_and(|(distance, _)| *distance == 0.0);
    found
        .into_iter()
        .take_while(|(distance, _)| !is_sure || *distance == 0.0)
        .take(most)
        .map(|(_, name)| name)
        .collect()
}

/// How unlike the words are; `None` if they are too unlike to be meant for each other.
fn distance(wanted: &str, candidate: &str) -> Option<f64> {
    /// No words longer than this are compared: the cost grows with the product of their lengths.
    const LONGEST: usize = 200;
    let candidate = plain(candidate);
    if wanted.chars().nth(LONGEST).is_some() || candidate.chars().nth(LONGEST).is_some() {
        return (wanted == candidate).then_some(0.0);
    }
    let length = wanted.chars().count().max(candidate.chars().count());
    let edits = strsim::damerau_levenshtein(wanted, &candidate);
    if edits * 3 <= length {
        return Some(edits as f64 / length as f64);
    }
    // A part of a name is worse than a misspelt one.
    let is_part = wanted.chars().nth(2).is_some() && candidate.contains(wanted);
    is_part.then(|| 1.0 + edits as f64 / length as f64)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A question for these: ``: did you mean `a` or `b`?``; nothing if there are none.
pub fn question(nearest: &[&str]) -> String {
    let names: Vec<String> = nearest.iter().map(|name| format!("`{}`", crate::report::line(name))).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => format!(": did you mean {only}?"),
        Some((last, rest)) => format!(": did you mean {} or {last}?", rest.join(", ")),
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
    }

    #[test]
    fn a_question() {
        assert_eq!(question(&[]), "");
        assert_eq!(question(&["a"]), ": did you mean `a`?");
        assert_eq!(question(&["a", "b", "c"]), ": did you mean `a`, `b` or `c`?");
    }
}
