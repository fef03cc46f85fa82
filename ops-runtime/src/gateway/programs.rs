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
/// a program that waits exceeds a limit, programs that do not wait are dropped first, and then the oldest ones. A journal that alone exceeds the memory of one caller
/// is not kept, nor is one of a program that does not wait, and for which there is no room beside the others.
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
    /// True if the program waits, or has waited: then its journal has the answers of its user.
    has_waited: bool,
}

impl Known {
    /// The caller of the program: the part of its name before the key.
    fn caller(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(caller, _)| caller)
    }
}

impl Recent {
    /// Makes a journal the latest; returns the names of those that have to be removed. Only a program that waits displaces
    /// others: the journal of another one is removed itself if it has no room.
    fn touch(&self, name: &str, bytes: usize, waits: bool) -> Vec<String> {
        let mut known = lock(&self.known);
        let at = known.iter().position(|known| known.name == name);
        let before = at.and_then(|at| known.remove(at));
        let has_waited = waits || before.is_some_and(|before| before.has_waited);
        let latest = Known { name: name.to_owned(), since: Instant::now(), bytes, has_waited };
        let mut gone = Vec::new();
        while known.front().is_some_and(|oldest| oldest.since.elapsed() > KEPT_FOR) {
            gone.extend(known.pop_front());
        }
        // Those of the same caller first, so that no caller displaces the programs of others.
        let is_own = |known: &Known| known.caller() == latest.caller();
        if waits {
            make_room(&mut known, &OF_ONE, bytes, &mut gone, is_own);
            make_room(&mut known, &OF_ALL, bytes, &mut gone, |_| true);
        }
        if waits || has_room(&known, &OF_ONE, bytes, is_own) && has_room(&known, &OF_ALL, bytes, |_| true) {
            known.push_back(latest);
        } else {
            gone.push(latest);
        }
        gone.into_iter().map(|known| known.name).collect()
    }
}

/// True if a journal of so many bytes has room beside some others.
fn has_room(known: &VecDeque<Known>, room: &Room, bytes: usize, counts: impl Fn(&Known) -> bool) -> bool {
    let counted = || known.iter().filter(|known| counts(known));
    let taken = counted().map(|known| known.bytes).fold(bytes, usize::saturating_add);
    counted().count() < room.programs && taken <= room.bytes
}

/// Moves journals to the removed ones, until one of so many bytes has room beside the rest: first those of programs that have not
/// waited, which need none, and then the oldest.
fn make_room(
    known: &mut VecDeque<Known>,
    room: &Room,
    bytes: usize,
    gone: &mut Vec<Known>,
    counts: impl Fn(&Known) -> bool,
) {
    while !has_room(known, room, bytes, &counts) {
        let spare = known.iter().position(|known| counts(known) && !known.has_waited);
        let Some(first) = spare.or_else(|| known.iter().position(&counts)) else { return };
        gone.extend(known.remove(first));
    }
}

impl JournalStore for Recent {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.journals.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let (bytes, waits) = (journal.bytes(), journal.waits());
            if waits && bytes > OF_ONE.bytes {
                let message = format!(
                    "the calls of the program take {bytes} bytes of memory, and {} are the most of one that waits: read less \
                     in a program that asks the user",
                    OF_ONE.bytes
                );
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
            let gone = self.touch(name, bytes, waits);
            for gone in &gone {
                self.journals.remove(gone).await?;
            }
            // A program that does not wait needs no journal. Its older journal, which is removed, lacks its latest calls: a program
            // that was resumed with it would make these calls again.
            if gone.iter().any(|gone| gone == name) {
                return Ok(());
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
    use crate::gateway::{Gateway, Rate, Tools};
    use crate::{CallError, Context, Handler, OperationSpec, Registration, Registry};

    #[test]
    fn no_caller_pushes_out_the_programs_of_others() {
        let recent = Recent::default();
        assert!(recent.touch("bob/1", 1_000, true).is_empty());
        for n in 0..OF_ONE.programs {
            assert!(recent.touch(&format!("ann/{n}"), 1_000, true).is_empty(), "{n}");
        }
        assert_eq!(recent.touch("ann/more", 1_000, true), ["ann/0"]);
        // One that is saved again is no other.
        assert!(recent.touch("ann/more", 1_000, true).is_empty());
        let large = recent.touch("ann/large", OF_ONE.bytes - 3_000, true);
        assert_eq!((large.len(), large.first().map(String::as_str)), (OF_ONE.programs - 3, Some("ann/1")));
        assert!(recent.touch("bob/1", 1_000, true).is_empty());
    }

    #[test]
    fn programs_that_only_run_are_displaced_before_those_that_wait() {
        let recent = Recent::default();
        for n in 0..OF_ONE.programs {
            assert!(recent.touch(&format!("ann/{n}"), 1_000, n != 7).is_empty(), "{n}");
        }
        assert_eq!(recent.touch("ann/50", 1_000, true), ["ann/7"]);
        assert_eq!(recent.touch("ann/51", 1_000, true), ["ann/0"]);
        // One that runs on has the answers of its user.
        assert!(recent.touch("ann/1", 1_000, false).is_empty());
        assert_eq!(recent.touch("ann/52", 1_000, true), ["ann/2"]);
        assert!(recent.touch("bob/1", 1_000, true).is_empty());
        assert!(recent.touch("bob/2", OF_ONE.bytes - 2_000, false).is_empty());
        assert_eq!(recent.touch("bob/3", OF_ONE.bytes / 2, true), ["bob/2"]);
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

    #[tokio::test]
    async fn a_program_that_does_not_wait_displaces_none() {
        let recent = Recent::default();
        let many = OF_ONE.bytes / (7 * size_of::<Value>());
        let (small, large) = (of_zeros(1, "started"), of_zeros(many, "started"));
        // There is room for two large ones.
        recent.save("ann/0", &of_zeros(many, "asked")).await.unwrap();
        recent.save("ann/1", &of_zeros(1, "asked")).await.unwrap();
        recent.save("ann/2", &large).await.unwrap();
        recent.save("ann/3", &small).await.unwrap();
        // Its older journal is removed, since it lacks the latest calls.
        recent.save("ann/3", &large).await.unwrap();
        let known = || lock(&recent.known).iter().map(|known| known.name.clone()).collect::<Vec<_>>();
        assert_eq!(known(), ["ann/0", "ann/1", "ann/2"]);
        assert_eq!(recent.load("ann/3").await.unwrap(), None);
        assert!(recent.load("ann/0").await.unwrap().is_some());
        recent.remove("ann/2").await.unwrap();
        for n in 2..OF_ONE.programs {
            assert!(recent.touch(&format!("ann/{n}"), 1_000, true).is_empty(), "{n}");
        }
        recent.save("ann/more", &small).await.unwrap();
        assert_eq!((known().len(), recent.load("ann/more").await.unwrap()), (OF_ONE.programs, None));
        // Another caller has room of its own.
        recent.save("bob/1", &small).await.unwrap();
        assert_eq!(recent.load("bob/1").await.unwrap(), Some(small));
    }

    /// The table of names is a pass over all operations.
    #[tokio::test]
    async fn a_program_that_comes_too_soon_costs_no_table_of_names() {
        let registry = Registry::new();
        let limits = CallerLimits::new().with_rate(Rate::new(1, Duration::from_secs(3_600)));
        let gateway = Gateway::builder().with_registry(registry.clone()).with_tools(Tools::Code).with_limits(limits);
        let gateway = gateway.build().await.unwrap();
        let tools = gateway.tools();
        let run = || tools.call("gateway.execute", json!({ "code": "return 1" }));
        run().await.unwrap();
        assert!(gateway.core.view().await.unwrap().functions.get().is_some());
        // The operations are others now, and their names have no table yet.
        let look = Handler::dynamic(|_: Value, _: Context| async { Ok::<_, CallError>(json!(1)) });
        registry.register(Registration::new(OperationSpec::query("t.look"), look)).unwrap();
        assert_eq!(run().await.unwrap_err().code().as_str(), "TOO_MANY_REQUESTS");
        assert!(gateway.core.view().await.unwrap().functions.get().is_none());
    }

    #[test]
    fn all_together_take_no_more_than_there_is() {
        let recent = Recent::default();
        let each = OF_ALL.bytes / 8;
        for n in 0..8 {
            assert!(recent.touch(&format!("caller {n}/1"), each, true).is_empty(), "{n}");
        }
        assert_eq!(recent.touch("caller 8/1", each, true), ["caller 0/1"]);
    }
}
