//! Hostile documents, responses and messages.
//!
//! A [`Case`] is one attack, at a size that its caller chooses. The program `hostile` of this package runs one case; the
//! tests run it as a child process under limits of memory and of CPU time, so that a bound that breaks fails a test and
//! not the machine. `tests/bench/hostile` runs the cases of each family at sizes that double, and prints what they cost.

mod cases;
pub mod floods;
mod peer;
pub mod raw;

/// What an attack came to: what the library said or returned, in a line; `Err` says which promise was broken.
pub type Outcome = Result<String, String>;

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, unique, in words joined by `-`.
    pub name: &'static str,
    /// What its input grows by, for cases whose cost is measured over size.
    pub family: Option<&'static str>,
    /// The size at which the test runs it: about how many bytes the attacker sends, or what the case says.
    pub size: usize,
    /// The most memory that it may have, in MB.
    pub megabytes: u64,
    /// The most CPU time that it may take, in seconds, in a build without optimisation.
    pub seconds: u64,
    /// Attacks with an input of this size, and says what came of it.
    pub run: fn(size: usize) -> Outcome,
}

impl Case {
    /// Makes a case that may have 512 MB and 20 s.
    pub const fn new(name: &'static str, size: usize, run: fn(usize) -> Outcome) -> Self {
        Self { name, family: None, size, megabytes: 512, seconds: 20, run }
    }

    /// Measures its cost over size, too, as one of a family.
    #[must_use]
    pub const fn with_family(mut self, family: &'static str) -> Self {
        self.family = Some(family);
        self
    }

    /// Sets the memory, in MB, and the CPU time, in seconds, that it may have.
    #[must_use]
    pub const fn with_limits(mut self, megabytes: u64, seconds: u64) -> Self {
        self.megabytes = megabytes;
        self.seconds = seconds;
        self
    }
}

/// Every case.
pub fn cases() -> Vec<Case> {
    cases::all()
}

/// Runs a future to its end on a runtime of its own, with two threads.
///
/// # Panics
///
/// If there can be no runtime.
#[expect(clippy::expect_used, reason = "a case without a runtime has failed")]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}
