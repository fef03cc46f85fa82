//! The sandbox for programs of models, and the store for waiting ones; the names by which they call operations.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::find::View;
use super::gate::Gate;
use super::limits::{CallerLimits, Limiter};
use crate::BoxFuture;
use crate::model::lock::lock;
use crate::program::{Functions, Hold, Journal, JournalStore, Limits, MemoryStore, Sandbox};
use crate::run::principal::Principal;

/// Limits of waiting programs, of one caller and of all callers: their number, and the memory of their journals in bytes. If
/// a limit is exceeded, the oldest program is dropped. A journal that alone exceeds the memory of one caller is not kept.
const OF_ONE: Room = Room { programs: 50, bytes: 64 << 20 };
const OF_ALL: Room = Room { programs: 1_000, bytes: 256 << 20 };

/// How long a program may wait.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The sandbox for programs, and the store for waiting ones.
pub(super) struct Programs {
    pub(super) sandbox: Sandbox,
    pub(super) store: Arc<dyn JournalStore>,
    /// How many programs each caller may run: as many as it may make calls.
    pub(super) limiter: Limiter,
    /// Where the operations lead.
    pub(super) place: String,
}

impl Programs {
    pub(super) fn new(
        limits: Limits,
        of_callers: CallerLimits,
        store: Option<Arc<dyn JournalStore>>,
        place: String,
    ) -> Self {
        let store = store.unwrap_or_else(|| Arc::new(Recent::default()));
        Self { sandbox: Sandbox::new(limits), store, limiter: Limiter::new(of_callers), place }
    }
}

/// The limits of a store.
struct Room {
    programs: usize,
    bytes: usize,
}

/// Journals in memory: limited in number, size and time.
#[derive(Default)]
struct Recent {
    journals: MemoryStore,
    /// The oldest first.
    known: Mutex<VecDeque<Known>>,
}

struct Known {
    name: String,
    since: Instant,
    bytes: usize,
}

impl Known {
    /// The caller of the program: the part of its name before the key.
    fn caller(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(caller, _)| caller)
    }
}

impl Recent {
    /// Makes a journal the latest; returns the names of those that have to be removed.
    fn touch(&self, name: &str, bytes: usize) -> Vec<String> {
        let mut known = lock(&self.known);
        known.retain(|known| known.name != name);
        let latest = Known { name: name.to_owned(), since: Instant::now(), bytes };
        let mut gone = Vec::new();
        while known.front().is_some_and(|oldest| oldest.since.elapsed() > KEPT_FOR) {
            gone.extend(known.pop_front());
        }
        // Those of the same caller first, so that no caller displaces the programs of others.
        let is_own = |known: &Known| known.caller() == latest.caller();
        make_room(&mut known, &OF_ONE, bytes, &mut gone, is_own);
        make_room(&mut known, &OF_ALL, bytes, &mut gone, |_| true);
        known.push_back(latest);
        gone.into_iter().map(|known| known.name).collect()
    }
}

/// Moves the oldest of some journals to the removed ones, until one of so many bytes has room beside the rest.
fn make_room(
    known: &mut VecDeque<Known>,
    room: &Room,
    bytes: usize,
    gone: &mut Vec<Known>,
    counts: impl Fn(&Known) -> bool,
) {
    loop {
        let counted = || known.iter().filter(|known| counts(known));
        let taken = counted().map(|known| known.bytes).fold(bytes, usize::saturating_add);
        if counted().count() < room.programs && taken <= room.bytes {
            return;
        }
        let Some(oldest) = known.iter().position(&counts) else { return };
        gone.extend(known.remove(oldest));
    }
}

impl JournalStore for Recent {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.journals.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let bytes = journal.bytes();
            if bytes > OF_ONE.bytes {
                if journal.waits() {
                    return Err(io::Error::other(format!(
                        "the calls of the program take {bytes} bytes of memory, and {} are the most of one that waits: read less \
                         in a program that asks the user",
                        OF_ONE.bytes
                    )));
                }
                // A program that does not wait needs no journal. An older journal lacks its latest calls: a program that was
                // resumed with it would make these calls again.
                return self.remove(name).await;
            }
            for gone in self.touch(name, bytes) {
                self.journals.remove(&gone).await?;
            }
            self.journals.save(name, journal).await
        })
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        self.journals.hold(name)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        lock(&self.known).retain(|known| known.name != name);
        self.journals.remove(name)
    }
}

impl View {
    /// The names by which a program of that caller calls operations.
    pub(super) fn functions(&self, gate: &Gate, principal: &Principal) -> Arc<Functions> {
        if *principal == Principal::Owner {
            return self.functions.get_or_init(|| Arc::new(self.named(|_| true))).clone();
        }
        // Operations that the caller may not call have no name for it, not even in a suggestion.
        let table = gate.registry().table();
        Arc::new(self.named(|id| table.get(id).is_some_and(|entry| principal.sees(&entry.spec))))
    }

    fn named(&self, sees: impl Fn(&str) -> bool) -> Functions {
        let seen = self.names.iter().filter(|(id, _)| sees(id));
        seen.map(|(id, name)| (name.namespace.to_owned(), name.operation.to_owned(), id.to_owned())).collect()
    }

    /// The function of an operation in a program.
    pub(super) fn function(&self, id: &str) -> Option<String> {
        self.names.name(id).map(|name| name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_caller_pushes_out_the_programs_of_others() {
        let recent = Recent::default();
        assert!(recent.touch("bob/1", 1_000).is_empty());
        for n in 0..OF_ONE.programs {
            assert!(recent.touch(&format!("ann/{n}"), 1_000).is_empty(), "{n}");
        }
        assert_eq!(recent.touch("ann/more", 1_000), ["ann/0"]);
        // One that is saved again is no other.
        assert!(recent.touch("ann/more", 1_000).is_empty());
        let large = recent.touch("ann/large", OF_ONE.bytes - 3_000);
        assert_eq!((large.len(), large.first().map(String::as_str)), (OF_ONE.programs - 3, Some("ann/1")));
        assert!(recent.touch("bob/1", 1_000).is_empty());
    }

    /// The memory of a list is many times the length of its JSON.
    #[tokio::test]
    async fn journals_count_by_the_memory_that_they_take() {
        let recent = Recent::default();
        // Two such journals reach the limit of a caller.
        let journal = of_zeros(OF_ONE.bytes / (7 * size_of::<Value>()), "asked");
        let text = journal.to_json().unwrap();
        assert!(text.len() * 10 < OF_ONE.bytes, "{}", text.len());
        for n in 0..3 {
            recent.save(&format!("ann/{n}"), &journal).await.unwrap();
        }
        assert!(recent.load("ann/0").await.unwrap().is_none());
        assert!(recent.load("ann/1").await.unwrap().is_some());
        assert!(recent.load("ann/2").await.unwrap().is_some());
    }

    /// The journal of a program with one call, whose input is a list of that many zeros.
    fn of_zeros(number: usize, state: &str) -> Journal {
        let calls = json!([{ "id": "t.add", "input": vec![0; number], "state": state }]);
        let journal = json!({ "version": 1, "program": "", "seed": [1, 1, 1, 1], "started": 0, "calls": calls });
        Journal::from_json(&journal.to_string()).unwrap()
    }

    #[tokio::test]
    async fn no_program_displaces_others_by_its_size() {
        let recent = Recent::default();
        let small = of_zeros(1, "asked");
        for name in ["bob/1", "ann/1", "ann/2"] {
            recent.save(name, &small).await.unwrap();
        }
        let many = OF_ONE.bytes / (2 * size_of::<Value>());
        let large = of_zeros(many, "asked");
        let refused = recent.save("ann/2", &large).await.unwrap_err().to_string();
        let wanted = format!(
            "the calls of the program take {} bytes of memory, and 67108864 are the most of one that waits: read less in a \
             program that asks the user",
            large.bytes()
        );
        assert_eq!(refused, wanted);
        for name in ["bob/1", "ann/1", "ann/2"] {
            assert_eq!(recent.load(name).await.unwrap().as_ref(), Some(&small), "{name}");
        }
        // A large program that does not wait goes on. Its older journal is removed, since it lacks the latest calls.
        recent.save("ann/2", &of_zeros(many, "started")).await.unwrap();
        assert_eq!(recent.load("ann/2").await.unwrap(), None);
        assert_eq!(recent.load("bob/1").await.unwrap(), Some(small));
        let known: Vec<String> = lock(&recent.known).iter().map(|known| known.name.clone()).collect();
        assert_eq!(known, ["bob/1", "ann/1"]);
    }

    #[test]
    fn all_together_take_no_more_than_there_is() {
        let recent = Recent::default();
        let each = OF_ALL.bytes / 8;
        for n in 0..8 {
            assert!(recent.touch(&format!("caller {n}/1"), each).is_empty(), "{n}");
        }
        assert_eq!(recent.touch("caller 8/1", each), ["caller 0/1"]);
    }
}
