//! The conformance suite of the call protocol: the same cases over every transport.
//!
//! A transport takes part by an implementation of [`harness::Harness`] and a line `conformance!(name, Harness);`. What is
//! of one transport only stands in its own file.

#[cfg(any(feature = "nats", feature = "redis"))]
mod broker_faults;
mod cases;
mod harness;
mod in_process;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "nats")]
mod nats;
#[cfg(all(feature = "nats", feature = "nkeys"))]
mod nats_accounts;
#[cfg(feature = "nats")]
mod nats_limits;
mod operations;
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
mod proxy;
#[cfg(feature = "websocket")]
mod python;
mod random;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_faults;
#[cfg(feature = "redis")]
mod redis_limits;
#[cfg(feature = "redis")]
mod redis_recovery;
#[cfg(any(feature = "nats", feature = "redis"))]
mod servers;
#[cfg(all(feature = "redis", feature = "tls", feature = "websocket"))]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;
#[cfg(feature = "websocket")]
mod websocket_bounds;
#[cfg(feature = "websocket")]
mod websocket_faults;
#[cfg(feature = "websocket")]
mod websocket_memory;
#[cfg(feature = "websocket")]
mod websocket_recovery;

/// Makes a test of every case over one transport.
macro_rules! conformance {
    ($name:ident, $harness:ty) => {
        mod $name {
            crate::conformance!(@cases $harness;
                calls: dynamic_and_typed, every_error_code, errors_that_are_declared, an_error_of_a_tool_is_an_answer,
                    envelopes_pass_as_they_are, nested_calls, identity_counts_where_it_may, metadata_and_trace_travel,
                    nobody_serves_it, a_thousand_at_once, big_payloads, repairs_are_told, bodies_of_requests;
                limits: the_deadline_is_enforced_on_both_sides, the_deadline_travels, a_dropped_call_is_aborted,
                    a_cancelled_call_is_aborted, an_abort_drops_nested_calls, a_worker_that_stops_finishes;
                subscriptions: finite, endless_until_the_caller_stops, ended_by_the_worker, failing_midway,
                    in_order, slow_readers_hold_up_nobody, nobody_reads, silent_ones_time_out, many_at_once,
                    refused_before_the_first_item, errors_among_the_items, errors_among_the_items_and_an_abort,
                    taken_for_another_kind, with_a_window_of_nothing, items_that_are_too_large;
                workers: each_request_is_started_once, killed_with_calls_in_flight, announced_later, one_of_two_stops,
                    described_by_one_that_is_left;
            );
        }
    };
    (@cases $harness:ty; $($module:ident: $($case:ident),+;)+) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            crate::harness::limited(crate::cases::$module::$case::<$harness>()).await;
        }
    )+)+};
}
use conformance;

conformance!(in_process_conforms, crate::in_process::InProcessHarness);
#[cfg(feature = "websocket")]
conformance!(websocket_to_spokes, crate::websocket::ToSpokes);
#[cfg(feature = "websocket")]
conformance!(websocket_through_a_hub, crate::websocket::ThroughHub);
#[cfg(feature = "nats")]
conformance!(nats_conforms, crate::nats::NatsHarness);
#[cfg(feature = "redis")]
conformance!(redis_conforms, crate::redis::RedisHarness);
