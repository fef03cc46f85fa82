//! Metrics of calls, for the `metrics` facade (feature `metrics`); does nothing without it.
//!
//! - `ops_calls_total`, a counter: `side` (`caller` or `worker`), `operation`, `code` (`OK`, that of the error, or
//!   `DOMAIN` for an error that the operation itself declares)
//! - `ops_call_duration_seconds`, a histogram: `side`, `operation`
//! - `ops_calls_in_flight`, a gauge: `side`
//!
//! A subscription counts as one call, from its beginning to its end. Its code is that of an error that is its last
//! item. If the caller drops it before its end, the code is that of the error if the last item it read was one, or else
//! `ABORTED`.
//!
//! Only known operations and known codes become labels, so that peers cannot create any number of labels. Peers name
//! the operations that they announce, so forwarded calls of these have the label `forwarded`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::{CallError, ErrorCode, Text};

/// The label of operations that only peers know.
pub(super) static FORWARDED: Text = Text::Borrowed("forwarded");

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

/// The items of a subscription, which counts as a call from its beginning to its end.
pub(super) struct Metered<S> {
    items: S,
    /// `None` if the subscription has ended.
    meter: Option<Meter>,
    /// The code of the last item, if that is an error.
    failed: Option<ErrorCode>,
}

impl<S> Metered<S> {
    pub(super) fn new(items: S, meter: Meter) -> Self {
        Self { items, meter: Some(meter), failed: None }
    }
}

impl<T, S: Stream<Item = Result<T, CallError>> + Unpin> Stream for Metered<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let item = ready!(Pin::new(&mut self.items).poll_next(task));
        match &item {
            Some(item) => self.failed = item.as_ref().err().map(|error| error.code().clone()),
            None => {
                if let Some(mut meter) = self.meter.take() {
                    match &self.failed {
                        None => meter.succeed(),
                        Some(code) => meter.fail(code),
                    }
                }
            }
        }
        Poll::Ready(item)
    }
}

impl<S> Drop for Metered<S> {
    fn drop(&mut self) {
        // After an error, a caller may stop reading.
        if let (Some(meter), Some(code)) = (&mut self.meter, &self.failed) {
            meter.fail(code);
        }
    }
}
