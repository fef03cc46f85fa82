//! The log of `ops serve`, on standard error: details of failed calls that callers do not see, requests that are refused,
//! credentials that are not sent, and documents whose namespace is not that of their file name.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The targets of what callers do not see: whole modules, so that none is missing when a part of them has another name.
const SHOWN: [&str; 4] =
    ["ops_runtime::run", "ops_runtime::serve", "ops_runtime::gateway", "ops_runtime::http::auth::plan"];

/// The targets among them of what is reported otherwise: to the caller, with the result, or by the command itself.
const REPORTED: [&str; 2] = ["ops_runtime::run::pipeline::output", "ops_runtime::gateway::builder"];

/// Begins to log, for as long as the process lasts.
pub(super) fn start() {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let shown = SHOWN.map(|target| (target, LevelFilter::WARN));
    let targets = Targets::new().with_targets(shown).with_targets(REPORTED.map(|target| (target, LevelFilter::OFF)));
    // A second logger, such as one of tests, is not needed.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}
