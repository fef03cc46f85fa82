//! The limits of results.

use std::time::Duration;

/// How much of a result is shown, and how much is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResultLimits {
    /// Size of the shown part, as JSON text in bytes; at least 256.
    pub max_shown: usize,
    /// Memory limit for the kept results of one caller, in bytes. A result above it is not kept.
    pub max_caller_bytes: usize,
    /// Memory limit for all kept results, in bytes.
    pub max_bytes: usize,
    /// How long a result is kept after it was last read.
    pub keep: Duration,
}

impl Default for ResultLimits {
    /// 32 KiB are shown; 32 MiB are kept for a caller, 256 MiB in all, for ten minutes.
    fn default() -> Self {
        Self {
            max_shown: 32 * 1024,
            max_caller_bytes: 32 * 1024 * 1024,
            max_bytes: 256 * 1024 * 1024,
            keep: Duration::from_secs(600),
        }
    }
}

impl ResultLimits {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the size of the shown part, as JSON text in bytes.
    #[must_use]
    pub fn with_max_shown(mut self, bytes: usize) -> Self {
        self.max_shown = bytes;
        self
    }

    /// Sets the memory limits for kept results: of one caller, and of all. With zero, none are kept.
    #[must_use]
    pub fn with_max_bytes(mut self, of_caller: usize, in_all: usize) -> Self {
        (self.max_caller_bytes, self.max_bytes) = (of_caller, in_all);
        self
    }

    /// Sets how long a result is kept after it was last read.
    #[must_use]
    pub fn with_keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }
}
