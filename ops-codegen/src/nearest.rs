//! Suggestions for misspelt names, for the command `ops`; not part of the interface.

/// The candidates that are most similar to a word, the most similar first, at most `most`.
///
/// Case and the characters between words are ignored; dissimilar words are left out.
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
fn distance(wanted: &str, candidate: &str) -> Option<f64> {
    /// Longer words are not compared: the cost grows with the product of their lengths.
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
    // A part of a name is a worse match than a misspelt name.
    let is_part = wanted.chars().nth(2).is_some() && candidate.contains(wanted);
    is_part.then(|| 1.0 + edits as f64 / length as f64)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A question for these names: ``: did you mean `a` or `b`?``; empty if there are none.
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
