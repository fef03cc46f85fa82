//! The limits of a program.

use std::time::Duration;

use crate::model::setters::options;

options! {
    /// The limits of a program. Each limit that is reached ends the program with an error that names it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ops_runtime::program::Limits;
    ///
    /// let limits = Limits::new().with_time(Duration::from_secs(10)).with_calls(50);
    /// assert_eq!((limits.calls, limits.memory), (50, 64 << 20));
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Limits {
        {}
        /// The time from start to end, including waiting; a minute by default.
        time, with_time: Duration = Duration::from_secs(60),
        /// The processor time of its own code; ten seconds by default.
        ///
        /// On Linux, Android and the systems of Apple, time in which other threads have the processor does not count.
        cpu, with_cpu: Duration = Duration::from_secs(10),
        /// Bytes of memory of one program; 64 MiB by default.
        memory, with_memory: usize = 64 << 20,
        /// Bytes of memory of all programs of a sandbox, beyond 2 MiB for each, including what the host keeps of the inputs
        /// and results of their calls, and of their own results; 1 GiB by default.
        total_memory, with_total_memory: usize = 1 << 30,
        /// Number of calls; 1,000 by default.
        calls, with_calls: usize = 1_000,
        /// Number of calls in flight; further ones wait. 16 by default.
        calls_in_flight, with_calls_in_flight: usize = 16,
        /// Bytes of JSON of all inputs and results of its calls together; 8 MiB by default.
        traffic, with_traffic: usize = 8 << 20,
        /// Bytes of JSON of its result; 1 MiB by default.
        output, with_output: usize = 1 << 20,
        /// Bytes of its console output; the rest is left out. 64 KiB by default.
        logs, with_logs: usize = 64 << 10,
        /// Bytes of its source; 256 KiB by default.
        source, with_source: usize = 256 << 10,
        /// Number of concurrent programs of a sandbox; further ones wait. 512 by default.
        programs, with_programs: usize = 512,
    }
}

impl Limits {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }
}
