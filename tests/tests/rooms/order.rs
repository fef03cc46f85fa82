//! The order of the folders in ARCHITECTURE.md: each takes from those below it only.

use std::collections::BTreeSet;

use crate::Ties;

/// The first column of the first table of "Where things are", as it stands there: `call/`, `tls.rs`.
pub(crate) fn listed(text: &str) -> Vec<String> {
    let part = text.split("\n## Where things are\n").nth(1).unwrap_or_default();
    let rows = part.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).filter_map(|row| row.split('`').nth(1)).map(str::to_owned).collect()
}

/// What is wrong with a list of rooms: arrows that go up, and rooms that are not in it.
pub(crate) fn problems(listed: &[String], ties: &Ties) -> Vec<String> {
    let place = |room: &String| listed.iter().position(|listed| listed == room);
    let mut problems = Vec::new();
    let mut missing = BTreeSet::new();
    for ((from, to), (file, other)) in ties {
        match (place(from), place(to)) {
            (Some(above), Some(below)) if above < below => {}
            (Some(_), Some(_)) => {
                problems.push(format!("{to} stands above {from}, which takes from it: {file} -> {other}"))
            }
            (one, _) => drop(missing.insert(if one.is_none() { from } else { to })),
        }
    }
    problems.extend(missing.into_iter().map(|room| format!("{room} is not in the list")));
    problems
}

#[test]
fn the_order_is_read_and_checked() {
    let text = "# A\n\n## Where things are\n\nWords.\n\n| folder | what |\n|---|---|\n| `b/` | x `a` |\n| `a.rs` | y |\n\n| `c` | |\n";
    assert_eq!(listed(text), ["b/", "a.rs"]);
    let owned = |names: [&str; 2]| names.map(str::to_owned);
    let tie = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), (format!("{from}/x.rs"), format!("{to}/y.rs")));
    assert_eq!(problems(&owned(["b", "a"]), &Ties::from([tie("b", "a")])), [""; 0]);
    let found = problems(&owned(["b", "a"]), &Ties::from([tie("a", "b"), tie("b", "c")]));
    assert_eq!(found, ["b stands above a, which takes from it: a/x.rs -> b/y.rs", "c is not in the list"]);
}
