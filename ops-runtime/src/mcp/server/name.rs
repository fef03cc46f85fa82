//! The names of tools.
//!
//! MCP allows letters, digits, `_`, `-` and `.`, up to 128 of them; the models of hosts allow 64, and no dots. So an id
//! becomes a name that all of them accept: every other character becomes `_`, so `math.add` is `math_add`.

use std::collections::BTreeSet;

use crate::model::text::hash;

/// The longest name that hosts pass on to models.
const MAX: usize = 64;

/// Assigns unique names to ids.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// The name of an operation, made from its id only. It ends with a hash of the id if an earlier operation has that
    /// name, or if it would be too long.
    pub(super) fn give(&mut self, id: &str) -> String {
        let plain: String = id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
        let mut name = plain.clone();
        let mut attempt = 0;
        while name.len() > MAX || self.0.contains(&name) {
            let hash = hash(id, attempt);
            name = format!("{}_{hash:08x}", plain.chars().take(MAX - 9).collect::<String>());
            attempt += 1;
        }
        self.0.insert(name.clone());
        name
    }
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unlike_however_alike_their_hashes_are() {
        let mut names = Names::default();
        let given: BTreeSet<String> = crate::model::text::alike("a.x").iter().map(|id| names.give(id)).collect();
        assert_eq!(given.len(), 512);
    }

    #[test]
    fn names_are_legal_and_unlike() {
        let long = "x".repeat(100);
        let mut names = Names::default();
        let mut give = |id: &str| names.give(id);
        assert_eq!(give("math.add"), "math_add");
        assert_eq!(give("github.repos/list-for-org"), "github_repos_list-for-org");
        assert_eq!(give("a.b_c"), "a_b_c");
        let second = give("a_b.c");
        assert!(second.starts_with("a_b_c_") && second.len() == 14, "{second}");
        assert_eq!(give("größe.ändern"), "gr__e__ndern");
        let cut = [give(&format!("a.{long}1")), give(&format!("a.{long}2"))];
        assert!(cut[0] != cut[1] && cut.iter().all(|name| name.len() == MAX), "{cut:?}");
    }
}
