//! What a program may take.

use std::time::Duration;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident, $with:ident: $type:ty = $default:expr,)*) => {
        /// What a program may take. Each limit that is reached ends the program with an error that names it.
        ///
        /// ```
        /// use std::time::Duration;
        /// use ops_runtime::program::Limits;
        ///
        /// let limits = Limits::new().with_time(Duration::from_secs(10)).with_calls(50);
        /// assert_eq!((limits.calls, limits.memory), (50, 64 << 20));
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $with(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )*
        }
    };
}

limits! {
    /// The time from start to end, the time for which it waits included; by default a minute.
    time, with_time: Duration = Duration::from_secs(60),
    /// The time for which its own code runs; by default ten seconds.
    cpu, with_cpu: Duration = Duration::from_secs(10),
    /// Bytes of memory of one program; by default 64 MiB.
    memory, with_memory: usize = 64 << 20,
    /// Bytes of memory of all programs of a sandbox together, beyond 2 MiB that each has, with what the host keeps of the inputs and
    /// results of their calls; by default 1 GiB.
    total_memory, with_total_memory: usize = 1 << 30,
    /// How many calls it may make; by default 1,000.
    calls, with_calls: usize = 1_000,
    /// How many calls may be in flight at once; others wait. By default 16.
    calls_in_flight, with_calls_in_flight: usize = 16,
    /// Bytes of JSON of all inputs and results of its calls together; by default 8 MiB.
    traffic, with_traffic: usize = 8 << 20,
    /// Bytes of JSON of its result; by default 1 MiB.
    output, with_output: usize = 1 << 20,
    /// Bytes of what it writes to the console; the rest is left out. By default 64 KiB.
    logs, with_logs: usize = 64 << 10,
    /// Bytes of its source; by default 256 KiB.
    source, with_source: usize = 256 << 10,
    /// How many programs of a sandbox may be under way at once; others wait. By default 512.
    programs, with_programs: usize = 512,
}

impl Limits {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }
}
