//! The names of tools.
//!
//! MCP allows letters, digits, `_`, `-` and `.`, up to 128 of them; the models of hosts allow 64, and no dots. So an id
//! becomes a name that all of them accept: every other character becomes `_`, so `math.add` is `math_add`.
//!
//! A client may call a tool by a name that was listed long ago. So names do not depend on the order in which operations
//! come, and a name that an operation had is no other operation's while the server runs.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::model::text::hash;

/// The longest name that hosts pass on to models.
const MAX: usize = 64;

/// How many names of former operations are remembered. Beyond that, the names of new operations end with a digest of the id:
/// no other operation can get such a name, so it need not be remembered.
const REMEMBERED: usize = 1 << 14;

/// The names of a server's tools, now and before.
#[derive(Default)]
pub(super) struct Names {
    /// The operation of each name. It is stored as the digest of its id, because an id may be long.
    owners: HashMap<String, u128>,
}

/// The name of an operation, and its former names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) former: Vec<String>,
}

impl Names {
    /// The names of all operations, in the order of `operations`. Each of these is an id and the text that becomes the name.
    ///
    /// A name ends with a hash of the id if it would be too long, or if another operation could get it now or had it before.
    pub(super) fn give(&mut self, operations: &[(&str, Cow<'_, str>)]) -> Vec<Named> {
        let all: Vec<Candidates> = operations.iter().map(|(id, text)| Candidates::new(id, text)).collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in all.iter().flat_map(|candidates| &candidates.names) {
            *uses.entry(name).or_default() += 1;
        }
        let room = REMEMBERED.saturating_add(all.len());
        let mut given = Vec::with_capacity(all.len());
        for Candidates { owner, names, last } in &all {
            let is_free = |name: &&String| {
                let has_it = |former: &u128| former == owner;
                uses.get(name.as_str()) == Some(&1) && self.owners.get(*name).map_or(self.owners.len() < room, has_it)
            };
            let name = names.iter().find(is_free).unwrap_or(last);
            if self.owners.len() < room {
                self.owners.insert(name.clone(), *owner);
            }
            given.push(Named { name: name.clone(), former: Vec::new() });
        }
        let present: HashMap<u128, usize> = all.iter().map(|candidates| candidates.owner).zip(0..).collect();
        for (name, owner) in &self.owners {
            if let Some(named) = present.get(owner).and_then(|index| given.get_mut(*index))
                && named.name != *name
            {
                named.former.push(name.clone());
            }
        }
        given
    }
}

/// The names that an operation may have.
struct Candidates {
    /// The digest of its id.
    owner: u128,
    /// The names that other operations may want, too; the best one is first.
    names: Vec<String>,
    /// The name that no other operation can get: it ends with the digest.
    last: String,
}

impl Candidates {
    fn new(id: &str, text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(id).into();
        let owner = digest.into_iter().take(16).fold(0_u128, |owner, byte| (owner << 8) | u128::from(byte));
        let plain: String = text.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
        let hashed = with_end(&plain, &format!("{:08x}", hash(id, 0)));
        let last = with_end(&plain, &format!("{owner:032x}"));
        let is_fit = plain.len() <= MAX && !has_digest(&plain);
        let names = if is_fit { vec![plain, hashed] } else { vec![hashed] };
        Self { owner, names, last }
    }
}

/// The name, cut if necessary, followed by `_` and the end.
fn with_end(name: &str, end: &str) -> String {
    let kept: String = name.chars().take(MAX.saturating_sub(end.len() + 1)).collect();
    format!("{kept}_{end}")
}

/// True if a name looks as if it ended with a digest.
fn has_digest(name: &str) -> bool {
    let is_digest = |end: &str| end.len() == 32 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once('_').is_some_and(|(_, end)| is_digest(end))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn given(names: &mut Names, ids: &[&str]) -> Vec<Named> {
        let operations: Vec<_> = ids.iter().map(|id| (*id, Cow::Borrowed(*id))).collect();
        names.give(&operations)
    }

    fn give(names: &mut Names, ids: &[&str]) -> Vec<String> {
        given(names, ids).into_iter().map(|named| named.name).collect()
    }

    #[test]
    fn names_are_unlike_however_alike_their_hashes_are() {
        let ids = crate::model::text::alike("a.x");
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let given: BTreeSet<String> = give(&mut Names::default(), &ids).into_iter().collect();
        assert_eq!(given.len(), 512);
        assert!(given.iter().all(|name| name.len() <= MAX), "{given:?}");
    }

    #[test]
    fn names_are_legal_and_unlike() {
        let long = ["1", "2"].map(|end| format!("a.{}{end}", "x".repeat(100)));
        let ids: [&str; 7] =
            ["math.add", "github.repos/list-for-org", "größe.ändern", "a.b_c", "a_b.c", &long[0], &long[1]];
        let names = give(&mut Names::default(), &ids);
        assert_eq!(names[..3], ["math_add", "github_repos_list-for-org", "gr__e__ndern"]);
        // Both names have a hash, because the plain name could mean either operation.
        let hashed = ["a.b_c", "a_b.c"].map(|id| format!("a_b_c_{:08x}", hash(id, 0)));
        assert_eq!(names[3..5], hashed);
        let cut = long.map(|id| format!("a_{}_{:08x}", "x".repeat(53), hash(&id, 0)));
        assert_eq!(names[5..], cut);
        assert!(cut[0] != cut[1] && cut.iter().all(|name| name.len() == MAX), "{cut:?}");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_arrival() {
        let ids = ["a.b_c", "a_b.c", "a_b_c.d", "x.y"];
        let at_once = give(&mut Names::default(), &ids);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let (mut names, mut present) = (Names::default(), BTreeSet::new());
            for index in order {
                present.insert(ids[index]);
                give(&mut names, &present.iter().copied().collect::<Vec<_>>());
            }
            assert_eq!(give(&mut names, &ids), at_once, "{order:?}");
        }
    }

    #[test]
    fn a_name_is_of_one_operation_for_ever() {
        let (old, new) = ("files_backup.delete", "files.backup_delete");
        let [plain, of_old, of_new] = ["", old, new].map(|id| match id {
            "" => "files_backup_delete".to_owned(),
            id => format!("files_backup_delete_{:08x}", hash(id, 0)),
        });
        let told = |named: &Named| (named.name.clone(), named.former.clone());
        let mut names = Names::default();
        assert_eq!(give(&mut names, &[old]), std::slice::from_ref(&plain));
        let both = given(&mut names, &[new, old]);
        assert_eq!(told(&both[0]), (of_new.clone(), vec![]));
        assert_eq!(told(&both[1]), (of_old.clone(), vec![plain.clone()]));
        // If the operation with the plain name is gone, the other one does not get that name. The first gets it again when it is
        // back.
        assert_eq!(told(&given(&mut names, &[new])[0]), (of_new.clone(), vec![]));
        assert_eq!(told(&given(&mut names, &[old])[0]), (plain, vec![of_old.clone()]));
        // An id that is made to result in the name of another operation gets a different name.
        let made = format!("files.backup_delete_{:08x}", hash(old, 0));
        assert_eq!(give(&mut names, &[&made]), [format!("{of_old}_{:08x}", hash(&made, 0))]);
    }

    #[test]
    fn operations_that_come_and_go_take_bounded_memory() {
        let digest = "b8787d583f62188734b9677b371dd82e";
        let many: Vec<String> = (0..=REMEMBERED).map(|number| format!("many.op{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let mut names = Names::default();
        assert_eq!(give(&mut names, &many)[REMEMBERED], format!("many_op{REMEMBERED}"));
        // Remembered names stay, and names that are not remembered are computed equally each time.
        for _ in 0..2 {
            assert_eq!(give(&mut names, &["a.new"]), [format!("a_new_{digest}")]);
            assert_eq!(give(&mut names, &["many.op7"]), ["many_op7"]);
        }
        assert_eq!(names.owners.len(), REMEMBERED + 1);
        // An id that is made to result in a name with a digest gets a different name.
        let made = format!("a.new_{digest}");
        assert_eq!(give(&mut Names::default(), &[&made]), [format!("a_new_{digest}_{:08x}", hash(&made, 0))]);
    }
}
