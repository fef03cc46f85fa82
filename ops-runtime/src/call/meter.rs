//! Metrics of calls, for the `metrics` facade (feature `metrics`); does nothing without it.
//!
//! - `ops_calls_total`, a counter: `side` (`caller` or `worker`), `operation`, `code` (`OK`, that of the error, or
//!   `DOMAIN` for an error that the operation itself declares)
//! - `ops_call_duration_seconds`, a histogram: `side`, `operation`
//! - `ops_calls_in_flight`, a gauge: `side`
//!
//! Only known operations and known codes become labels, so that peers cannot create any number of labels.

#[cfg(feature = "metrics")]
mod facade {
    use std::time::Instant;

    use metrics::{counter, gauge, histogram};

    use crate::{ErrorCode, Text};

    /// Counts one call.
    pub(crate) struct Meter {
        side: &'static str,
        operation: Text,
        code: Text,
        started: Instant,
    }

    impl Meter {
        /// A call begins.
        pub(crate) fn start(side: &'static str, operation: &Text) -> Self {
            gauge!("ops_calls_in_flight", "side" => side).increment(1.0);
            // What is dropped before its end was aborted.
            Self { side, operation: operation.clone(), code: "ABORTED".into(), started: Instant::now() }
        }

        pub(crate) fn succeed(&mut self) {
            self.code = "OK".into();
        }

        pub(crate) fn fail(&mut self, code: &ErrorCode) {
            self.code = match code {
                ErrorCode::Domain(_) => "DOMAIN".into(),
                code => code.as_str().to_owned().into(),
            };
        }
    }

    impl Drop for Meter {
        fn drop(&mut self) {
            let Self { side, operation, code, started } = self;
            let (operation, code) = (operation.clone(), std::mem::take(code));
            gauge!("ops_calls_in_flight", "side" => *side).decrement(1.0);
            histogram!("ops_call_duration_seconds", "side" => *side, "operation" => operation.clone())
                .record(started.elapsed());
            counter!("ops_calls_total", "side" => *side, "operation" => operation, "code" => code).increment(1);
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use crate::{ErrorCode, Text};

    /// Counts nothing.
    pub(crate) struct Meter;

    impl Meter {
        pub(crate) fn start(_: &'static str, _: &Text) -> Self {
            Self
        }

        pub(crate) fn succeed(&mut self) {}

        pub(crate) fn fail(&mut self, _: &ErrorCode) {}
    }
}

pub(super) use facade::Meter;
