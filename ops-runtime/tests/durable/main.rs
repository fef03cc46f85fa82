//! The conformance suite of durable calls: the same cases over every engine.
//!
//! An engine takes part by an implementation of [`harness::Harness`] and a line `conformance!(name, Harness);`. What is of
//! one engine only stands in its own file.
//!
//! Cases mostly wait: for leases, delays and deadlines. So many more run side by side than there are processors, which the
//! usual harness of tests cannot be told by a program; the arguments are those of `cargo test`.

mod cases;
mod faulty;
mod harness;
#[cfg(feature = "http")]
mod http;
mod in_memory;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "metrics")]
mod metrics;
mod operations;
#[cfg(feature = "jetstream")]
#[path = "../jetstream/servers.rs"]
mod servers;

use libtest_mimic::{Arguments, Trial};

/// How many cases run at a time, unless `--test-threads` says otherwise.
const AT_ONCE: usize = 16;

/// Makes a test of every case over one engine.
macro_rules! conformance {
    ($trials:expr, $name:literal, $harness:ty) => {
            conformance!(@cases $trials, $name, $harness;
                engine: an_id_is_submitted_once, one_ending_wins, a_lease_ends, an_ending_after_the_lease,
                    a_late_close, a_lease_of_an_earlier_run, submitted_again_while_it_is_discarded,
                    fresh_jobs_hold_up_no_other, what_is_given_back, never_too_many, steps_are_kept_once,
                    steps_are_kept_for_their_time, what_is_listed,
                    listed_while_they_are_discarded;
                submit: typed_and_by_id, ids_that_name_no_operation, all_that_is_wrong_with_an_input, taken_up_by_its_id, waits_for_a_worker, many_at_once, there_is_no_such_job,
                    of_another_operation, big_inputs_and_results, access_is_checked_when_it_runs,
                    jobs_of_others_are_not_found, handlers_know_their_job, a_subscription_is_no_job, names_of_queues, progress_is_a_stream;
                keys: a_repeat_attaches, without_characters, another_input_is_a_conflict, a_key_is_of_its_operation_tenant_and_identity,
                    fifty_at_once_make_one_job, a_repeat_while_the_first_ends, retention_frees_the_key,
                    a_freed_key_has_new_steps, found_by_its_key;
                times: delayed, at_a_time, the_deadline_passes_without_a_worker, the_deadline_passes_in_the_handler,
                    the_deadline_leaves_no_time_for_another_attempt, deadlines_of_policies_pass,
                    durations_without_end;
                retries: until_it_succeeds, until_attempts_are_used_up, what_is_never_tried_again, an_identity_of_the_handler_is_tried_again,
                    results_that_json_does_not_have, codes_that_the_policy_names, policies_by_pattern, policies_of_operations,
                    deadlines_of_operations, errors_of_any_size_are_kept, waits_grow, a_panic_is_a_failure;
                cancel: delayed, queued, running, between_attempts, between_attempts_after_its_worker_died, ended,
                    with_its_steps, with_its_steps_while_it_waits, with_its_steps_after_their_worker_died,
                    with_its_steps_after_its_ending_is_over, with_its_steps_and_discarded,
                    with_its_steps_and_submitted_again,
                    by_many_at_once;
                steps: once_over_all_attempts, closures_are_kept, nested_with_one_place, side_by_side,
                    another_input_is_a_conflict, of_several_calls, two_of_one_name, of_a_call_that_is_repeated,
                    a_step_that_failed, with_the_identity_of_their_call, with_too_much_metadata, more_than_may_wait,
                    nested_with_one_that_may_wait, given_back_by_a_drain,
                    their_worker_dies, in_a_plain_call, in_the_lane_of_their_job, in_the_queue_that_they_had,
                    left_behind;
                dead: listed_with_its_history, tried_again, tried_again_by_many_at_once, discarded,
                    tried_again_and_discarded_at_once,
                    tried_again_after_its_key_was_submitted_again, tried_again_by_another_process, a_deadline_begins_anew,
                    a_deadline_begins_anew_without_the_delay, a_step_of_a_job_that_is_gone,
                    failed_ones_are_tried_again, failed_and_cancelled_ones_are_discarded,
                    failures_of_earlier_versions;
                workers: a_job_survives_its_worker, one_attempt_is_not_run_again, killed_again_and_again, they_come_and_go,
                    a_drain_finishes_jobs, a_process_ends_after_its_drain, a_stop_gives_them_back,
                    a_stop_has_a_limit, older_ones_leave_what_they_do_not_know,
                    older_ones_end_nothing_that_they_do_not_know,
                    later_formats_are_left, a_flood_holds_up_nobody_else, queues_have_workers_of_their_own,
                    a_slow_job_keeps_its_lease, a_blocking_job_keeps_its_lease,
                    work_on_blocking_threads_keeps_its_lease;
                schedules: each_time_once, replaced_and_removed, missed_and_removed, given_back_and_removed,
                    retried_and_removed, set_by_many_at_once, one_time_is_cancelled, by_cron, of_others, what_cannot_be_scheduled;
            );
    };
    (@cases $trials:expr, $name:literal, $harness:ty; $($module:ident: $($case:ident),+;)+) => {$($(
        let name = concat!($name, "::", stringify!($module), "::", stringify!($case));
        $trials.push(trial(name, || crate::cases::$module::$case::<$harness>()));
    )+)+};
}

/// A test with threads of its own.
fn trial<F: Future<Output = ()>>(name: &str, run: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(harness::limited(run()));
        Ok(())
    })
}

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let mut trials = vec![
        trial("in_memory::nothing_is_kept_for_ever", in_memory::nothing_is_kept_for_ever),
        trial("in_memory::a_late_notice_ends_no_other_job", in_memory::a_late_notice_ends_no_other_job),
        trial("faulty::a_late_response_frees_no_key", faulty::a_late_response_frees_no_key),
        trial("faulty::a_schedule_is_removed_in_two_calls", faulty::a_schedule_is_removed_in_two_calls),
        trial(
            "faulty::a_stop_has_a_limit_while_the_engine_is_away",
            faulty::a_stop_has_a_limit_while_the_engine_is_away,
        ),
        trial(
            "in_memory::the_deadline_passes_while_the_worker_hangs",
            in_memory::the_deadline_passes_while_the_worker_hangs,
        ),
    ];
    trials.push(Trial::test("in_memory::a_paused_clock_is_the_clock", || {
        in_memory::a_paused_clock_is_the_clock();
        Ok(())
    }));
    trials.push(Trial::test("in_memory::a_worker_that_drains_hears_of_cancellations", || {
        in_memory::a_worker_that_drains_hears_of_cancellations();
        Ok(())
    }));
    trials.push(Trial::test("in_memory::a_step_of_another_identity_is_cancelled_with_its_job", || {
        in_memory::a_step_of_another_identity_is_cancelled_with_its_job();
        Ok(())
    }));
    trials.push(Trial::test("faulty::a_step_whose_job_is_looked_up_for_long", || {
        faulty::a_step_whose_job_is_looked_up_for_long();
        Ok(())
    }));
    trials.push(Trial::test("faulty::a_schedule_is_replaced_while_it_is_removed", || {
        faulty::a_schedule_is_replaced_while_it_is_removed();
        Ok(())
    }));
    trials.push(Trial::test("faulty::a_queue_that_takes_no_jobs_holds_up_no_other", || {
        faulty::a_queue_that_takes_no_jobs_holds_up_no_other();
        Ok(())
    }));
    trials.push(Trial::test("faulty::a_schedule_with_an_unreadable_job_is_removed", || {
        faulty::a_schedule_with_an_unreadable_job_is_removed();
        Ok(())
    }));
    #[cfg(feature = "http")]
    trials.extend([
        trial("http::the_key_of_a_job_is_sent_with_each_attempt", http::the_key_of_a_job_is_sent_with_each_attempt),
        trial("http::both_attempts_send_the_same_bytes", http::both_attempts_send_the_same_bytes),
        trial("http::a_response_that_is_too_large_is_not_repeated", http::a_response_that_is_too_large_is_not_repeated),
    ]);
    #[cfg(feature = "metrics")]
    trials.push(Trial::test("metrics::jobs_are_counted", || {
        metrics::jobs_are_counted();
        Ok(())
    }));
    #[cfg(feature = "jetstream")]
    trials.extend([
        trial("jetstream::cancelled_without_a_notice", jetstream::cancelled_without_a_notice),
        trial(
            "jetstream::what_is_left_of_dead_letters_does_not_run",
            jetstream::what_is_left_of_dead_letters_does_not_run,
        ),
        trial("jetstream::a_step_that_is_not_there", jetstream::a_step_that_is_not_there),
        trial("jetstream::tries_are_kept_as_long_as_their_job", jetstream::tries_are_kept_as_long_as_their_job),
        trial("jetstream::a_stream_that_is_no_queue", jetstream::a_stream_that_is_no_queue),
        trial("jetstream::a_schedule_that_cannot_be_read", jetstream::a_schedule_that_cannot_be_read),
        trial("jetstream::a_schedule_that_cannot_be_replaced", jetstream::a_schedule_that_cannot_be_replaced),
    ]);
    // The longest first.
    #[cfg(feature = "jetstream")]
    conformance!(trials, "jetstream_of_three_conforms", crate::jetstream::JetStreamHarness<3>);
    #[cfg(feature = "jetstream")]
    conformance!(trials, "jetstream_conforms", crate::jetstream::JetStreamHarness<1>);
    conformance!(trials, "in_process_conforms", crate::in_memory::InMemoryHarness);
    libtest_mimic::run(&arguments, trials).exit();
}

/// The server of the tests.
#[cfg(feature = "jetstream")]
const NATS_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
