//! The log of `ops serve`, on standard error: details of failed calls that callers do not see, and documents whose
//! namespace is not that of their file name.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The targets of details of failed calls that callers do not see. Everything else is reported by the command itself.
const SHOWN: [&str; 5] = [
    "ops_runtime::run::shown",
    "ops_runtime::run::listen",
    "ops_runtime::serve",
    "ops_runtime::gateway::audit",
    "ops_runtime::gateway::upstream",
];

/// Begins to log, for as long as the process lasts.
pub(super) fn start() {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let targets = Targets::new().with_targets(SHOWN.map(|target| (target, LevelFilter::WARN)));
    // A second logger, such as one of tests, is not needed.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}
