//! `ops serve`: documents and MCP servers behind a few tools, over MCP and HTTP.

use std::io::Write;
use std::time::Duration;

use ops_runtime::access::CallPolicy;
use ops_runtime::gateway::{AuditLog, AuditOptions, CallerLimits, Gateway, GatewayBuilder, Rate, ResultLimits, Tools};
use ops_runtime::mcp::McpServerOptions;
use ops_runtime::{CallError, ErrorCode, Registry};

use super::callers;
use super::config::Config;
use super::listening::{Listening, asked_to_end};
use super::upstreams::Upstreams;
use super::warnings;
use crate::arguments::{ServeArguments, ToolsChoice};
use crate::failure::{self, Failure};
use crate::modules::{is_url, runtime, shown};
use crate::patterns::{Idle, Patterns, joined};
use crate::report::{clean, label};

pub(super) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let config = config(arguments)?;
    let (registry, patterns) = (Registry::new(), patterns(arguments, &config));
    let upstreams = Upstreams::of(arguments, &config, !arguments.mock)?;
    let (is_all, connected) = (upstreams.is_all(), upstreams.connected());
    let builder = builder(arguments, &config, registry.clone(), upstreams)?;
    let listening = Listening::of(arguments, &config)?;
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let built = builder.build().await;
        let idle = idle(&patterns, &registry);
        let gateway = built.map_err(|error| unbuilt(&error, &idle))?;
        // What could not be read may be what a rule is for.
        let is_read = gateway.failures().is_empty();
        let is_refused = |idle: &Idle| idle.is_always_wrong || is_read && (idle.is_wrong || is_all && idle.protects);
        if idle.iter().any(is_refused) {
            return Err(Failure::Usage(joined(&idle)));
        }
        // With examples as results, nothing is sent.
        let lost = if arguments.mock {
            Vec::new()
        } else {
            warnings::without_server(gateway.registry(), arguments, &config, &connected)
        };
        tell(&gateway, arguments, &idle, &lost)?;
        let served = listening.serve(&gateway).await;
        // The calls are logged completely, unless there is no time for it.
        tokio::select! {
            () = gateway.flush() => {}
            () = asked_to_end() => {}
        }
        let unread = gateway.failures().len();
        served.and_then(|()| Failure::of_unreadable(unread, None))
    });
    // A thread may still wait for a line on standard input.
    runtime.shutdown_background();
    ended
}

/// Reads the files that the command would read, without secrets: their errors should be known before a host starts it.
///
/// # Errors
/// If a file or a rule is wrong.
pub(super) fn check(arguments: &ServeArguments) -> Result<(), Failure> {
    let config = config(arguments)?;
    let (registry, patterns) = (Registry::new(), patterns(arguments, &config));
    let upstreams = Upstreams::of(arguments, &config, false)?;
    let (is_all, connected) = (upstreams.is_all(), upstreams.connected());
    let Upstreams { documents, .. } = upstreams;
    let mut builder = Gateway::builder().with_registry(registry.clone());
    for document in documents.into_iter().filter(|document| !is_url(&document.location)) {
        builder = document.add_to(builder, true);
    }
    let gateway = runtime()?.block_on(builder.build());
    let gateway = gateway.map_err(|error| Failure::Failed(error.message().to_owned()))?;
    let idle = idle(&patterns, &registry);
    let is_read = gateway.failures().is_empty();
    if is_read && is_all && !idle.is_empty() || idle.iter().any(|idle| idle.is_always_wrong) {
        return Err(Failure::Usage(joined(&idle)));
    }
    if !is_read {
        return Err(unread(&gateway));
    }
    for idle in idle {
        let others = "(an MCP server or a document at a URL may have one: they are not asked here)";
        warn(&format!("{} {others}", idle.told));
    }
    if !arguments.mock {
        warnings::without_server(&registry, arguments, &config, &connected).iter().for_each(|told| warn(told));
    }
    Ok(())
}

/// Warns on standard error.
pub(super) fn warn(told: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(anstream::stderr().lock(), "{}: {}", label("warning"), clean(told));
}

/// The failure to build a gateway. The gateway refuses mistaken patterns of its policy, but only `idle` knows which option each
/// was given in.
fn unbuilt(error: &CallError, idle: &[Idle]) -> Failure {
    match error.code() {
        ErrorCode::ValidationError => Failure::Usage(joined(idle)),
        _ => Failure::Failed(error.message().to_owned()),
    }
}

/// The message about patterns that match none of all operations, including those that are left out.
fn idle(patterns: &Patterns, registry: &Registry) -> Vec<Idle> {
    patterns.without_effect(registry.list().iter().map(|spec| &**spec))
}

fn config(arguments: &ServeArguments) -> Result<Config, Failure> {
    let config = arguments.config.as_ref().map_or_else(|| Ok(Config::default()), |path| Config::read(path))?;
    callers::check(&config)?;
    Ok(config)
}

/// The patterns of the command and of the configuration.
fn patterns(arguments: &ServeArguments, config: &Config) -> Patterns {
    let chosen = [("--include", &arguments.include[..]), ("--exclude", &arguments.exclude)];
    let configured = [
        ("include", &config.include[..]),
        ("exclude", &config.exclude),
        ("[policy] allow", &config.policy.allow),
        ("[policy] ask", &config.policy.ask),
        ("[policy] deny", &config.policy.deny),
    ];
    Patterns::new(chosen.into_iter().chain(arguments.rules.each()).chain(configured))
}

/// The gateway that the command and the configuration describe.
fn builder(
    arguments: &ServeArguments,
    config: &Config,
    registry: Registry,
    upstreams: Upstreams,
) -> Result<GatewayBuilder, Failure> {
    let mut builder = Gateway::builder()
        .with_registry(registry)
        .with_options(McpServerOptions::new("ops", env!("CARGO_PKG_VERSION")))
        .with_credentials_from_env();
    for document in upstreams.documents {
        builder = document.add_to(builder, arguments.mock);
    }
    if upstreams.servers.names().next().is_some() {
        builder = if arguments.mock {
            builder.with_mock_mcp_servers(upstreams.servers)
        } else {
            builder.with_mcp_servers(upstreams.servers)
        };
    }
    let (include, exclude) =
        ([&config.include[..], &arguments.include].concat(), [&config.exclude[..], &arguments.exclude].concat());
    if !include.is_empty() || !exclude.is_empty() {
        builder = builder.with_filter(move |spec| {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| spec.matches(pattern));
            (include.is_empty() || any(&include)) && !any(&exclude)
        });
    }
    if config.read_only || arguments.read_only {
        builder = builder.read_only();
    }
    builder = match arguments.tools.or(config.tools.map(ToolsChoice::from)) {
        None => builder,
        Some(ToolsChoice::All) => builder.with_tools(Tools::All),
        Some(ToolsChoice::Search) => builder.with_tools(Tools::Search),
        Some(ToolsChoice::Code) => builder.with_tools(Tools::Code),
    };
    let audit = arguments.audit.clone().or_else(|| config.audit.file.as_ref().map(|file| config.path(file)));
    if let Some(file) = audit {
        let log = AuditLog::to_file(AuditOptions::new(), &file)
            .map_err(|error| Failure::Failed(error.message().to_owned()))?;
        builder = builder.with_audit(log);
    }
    if let Some(folder) = arguments.journal.clone().or_else(|| config.journal.as_ref().map(|it| config.path(it))) {
        builder = builder.with_program_store(crate::run::journals(&folder)?);
    }
    let (limits, results) = limits(config);
    Ok(builder.with_policy(policy(arguments, config)).with_limits(limits).with_results(results))
}

fn policy(arguments: &ServeArguments, config: &Config) -> CallPolicy {
    arguments.rules.add_to(config.policy.add_to(CallPolicy::new()))
}

fn limits(config: &Config) -> (CallerLimits, ResultLimits) {
    let (mut limits, mut results) = (CallerLimits::new(), ResultLimits::new());
    if let Some(calls) = config.limits.calls_per_second {
        limits = limits.with_rate(Rate::new(calls.get(), Duration::from_secs(1)));
    }
    if let (Some(calls), Some(rate)) = (config.limits.burst, limits.rate) {
        limits = limits.with_rate(rate.with_burst(calls.get()));
    }
    if let Some(calls) = config.limits.in_flight {
        limits = limits.with_max_in_flight(calls.get());
    }
    if let Some(bytes) = config.limits.result_bytes {
        results = results.with_max_shown(bytes);
    }
    (limits, results)
}

/// Documents and servers that could not be read or connected to, each with its location or name.
fn missing(gateway: &Gateway) -> impl Iterator<Item = (String, String)> {
    gateway.failures().iter().map(|(location, error)| {
        let message = error.message();
        // The message is a whole diagnostic where a document was read and is not valid.
        let message = message.strip_prefix("error: ").unwrap_or(message);
        (shown(location), clean(&crate::advice::of_command("serve", message)))
    })
}

/// The failure if nothing else is there: each document has its line.
fn unread(gateway: &Gateway) -> Failure {
    let told = gateway.failures().iter().map(|(location, error)| {
        let location = shown(location);
        failure::unread(error, &location, &location)
    });
    Failure::Unreadable(told.collect())
}

/// Reports on standard error what is served, what is missing, which patterns have no effect, and which calls will fail.
fn tell(gateway: &Gateway, arguments: &ServeArguments, idle: &[Idle], lost: &[String]) -> Result<(), Failure> {
    let operations = gateway.registry().list().len();
    if operations == 0 {
        let mut told = "there are no operations to serve".to_owned();
        if !idle.is_empty() {
            told = format!("{told}: {}", joined(idle));
        }
        return Err(if gateway.failures().is_empty() { Failure::Usage(told) } else { unread(gateway) });
    }
    let mut out = anstream::stderr().lock();
    // If standard error is closed, there is no way to report it.
    for (location, error) in missing(gateway) {
        let _ = writeln!(out, "{}: {location}: {error}", label("error"));
    }
    for told in idle.iter().map(|idle| &idle.told).chain(lost) {
        let _ = writeln!(out, "{}: {}", label("warning"), clean(told));
    }
    for (location, told) in gateway.without_credentials() {
        let _ = writeln!(out, "{}: {}: {}", label("warning"), shown(location), clean(told));
    }
    let with = if arguments.mock { ", answered with examples" } else { "" };
    let many = if operations == 1 { "" } else { "s" };
    let count = gateway.diagnostics().len();
    let hint = if count == 0 { "" } else { ": `ops inspect` shows them" };
    let _ = writeln!(out, "{operations} operation{many}{with}; {count} diagnostics{hint}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_without_the_others() {
        let of = |text: &str| limits(&toml::from_str(&format!("[limits]\n{text}")).unwrap());
        let rate = |text: &str| of(text).0.rate.map(|rate| (rate.calls, rate.burst));
        let default = CallerLimits::new().rate.unwrap();
        assert_eq!(rate(""), Some((default.calls, default.burst)));
        assert_eq!(rate("burst = 5"), Some((default.calls, 5)));
        assert_eq!(rate("calls-per-second = 3"), Some((3, 3)));
        assert_eq!(rate("calls-per-second = 3\nburst = 5"), Some((3, 5)));
        assert_eq!(of("in-flight = 2").0.max_in_flight, 2);
    }
}
