//! The log of `ops serve`, on standard error: what callers are not shown of calls that failed, and what is served otherwise
//! than its names say.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Where what callers are not shown is logged. All else that is logged, the command tells itself.
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
    // Of a second log, such as one of tests, there is no need.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}
