//! `ops jobs`: lists and changes the jobs of durable calls on a NATS server, by their ids.

mod facts;

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use futures_util::{StreamExt, TryStreamExt, stream};
use ops_runtime::adapter::BoxFuture;
use ops_runtime::durable::engine::Listed;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::record::Stored;
use ops_runtime::durable::{AnyJob, JobId, JobStatus, Jobs};
use ops_runtime::{CallError, glob, nearest};
use serde_json::{Value, json};

use self::facts::{Facts, age};
use crate::arguments::{JobsArguments, JobsChoice, JobsCommand, JobsState};
use crate::credentials::variable;
use crate::failure::Failure;
use crate::report::{line, print};

const LOCAL: &str = "nats://127.0.0.1:4222";

/// The end of the engine's error if there are no jobs on the server.
const NO_JOBS: &str = "no other has any";

/// After how many jobs of a list it is said how they are read.
const MANY: usize = 1_000;

/// How many jobs workers are asked about concurrently.
const ASKED: usize = 64;

pub(crate) fn run(arguments: &JobsArguments) -> Result<(), Failure> {
    let server = Server::of(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("no runtime can be started: {error}")))?;
    runtime.block_on(async {
        let limit = Duration::from_secs(arguments.timeout);
        let connected = tokio::time::timeout(limit, server.connect(limit)).await;
        let jobs = connected
            .map_err(|_| {
                Failure::Failed(format!("no server answers at {} after {} s", server.shown(), limit.as_secs()))
            })?
            .map_err(|error| Failure::Failed(format!("{}: {error}", server.shown())));
        let jobs = match jobs {
            // A server without any jobs has an empty list; its prefix is not misspelt.
            Err(Failure::Failed(told)) if arguments.command.only_lists() && told.ends_with(NO_JOBS) => {
                // Standard error may be closed.
                let _ = writeln!(std::io::stderr(), "note: {}", line(&told));
                return if arguments.json { print("[]\n") } else { Ok(()) };
            }
            jobs => jobs?,
        };
        let text = match &arguments.command {
            JobsCommand::Queues => queues(&jobs, arguments.json).await?,
            JobsCommand::List { choice, state } => {
                let states: &[JobsState] = match (&**state, &choice.key) {
                    ([], None) => &[JobsState::Open, JobsState::Delayed, JobsState::Dead],
                    ([], Some(_)) => JobsState::value_variants(),
                    (states, _) => states,
                };
                list(&jobs, choice, states, arguments.json).await?
            }
            JobsCommand::Dead { choice } => list(&jobs, choice, &[JobsState::Dead], arguments.json).await?,
            JobsCommand::Show { job } => show(&jobs, job, arguments.json).await?,
            JobsCommand::Retry { jobs: ids } => return change(&jobs, ids, Change::Retry, arguments.json).await,
            JobsCommand::Cancel { jobs: ids } => return change(&jobs, ids, Change::Cancel, arguments.json).await,
            JobsCommand::Discard { jobs: ids } => return change(&jobs, ids, Change::Discard, arguments.json).await,
        };
        print(&text)
    })
}

/// How to reach the servers.
struct Server {
    urls: String,
    config: JetStreamConfig,
}

impl Server {
    fn of(arguments: &JobsArguments) -> Result<Self, Failure> {
        if arguments.server.as_deref().is_some_and(has_password) {
            let message = "other users of this machine can read a password on a command line: put the URL into NATS_URL, or \
                           the password into NATS_PASSWORD";
            return Err(Failure::Usage(message.to_owned()));
        }
        let set = |name: &str| {
            let value = variable(name).map_err(Failure::Usage)?;
            Ok::<_, Failure>(value.filter(|value| !value.is_empty()))
        };
        let token = match &arguments.token_env {
            Some(name) => {
                let token = set(name)?.ok_or_else(|| Failure::Usage(format!("the environment has no `{name}`")))?;
                Some(token)
            }
            None if arguments.creds.is_some() => None,
            None => set("NATS_TOKEN")?,
        };
        // Nothing is submitted here, so the limits of sizes don't matter.
        let config = JetStreamConfig::new().with_prefix(&arguments.prefix).with_streams_as_found();
        let config = config.with_max_input(1).with_max_result(1);
        // A variable is read where it counts: one that is not UTF-8 is an error.
        let config = if let Some(file) = &arguments.creds {
            config.with_credentials(read(file)?)
        } else if let Some(token) = token {
            config.with_token(token)
        } else if let Some(user) = set("NATS_USER")? {
            config.with_user(user, set("NATS_PASSWORD")?.unwrap_or_default())
        } else if let Some(file) = set("NATS_CREDS")? {
            config.with_credentials(read(Path::new(&file))?)
        } else if set("NATS_PASSWORD")?.is_some() {
            return Err(Failure::Usage("NATS_PASSWORD is set, and NATS_USER is not".to_owned()));
        } else {
            config
        };
        let urls = match &arguments.server {
            Some(urls) => Some(urls.clone()),
            None => set("NATS_URL")?,
        };
        Ok(Self { urls: urls.unwrap_or_else(|| LOCAL.to_owned()), config })
    }

    async fn connect(&self, limit: Duration) -> Result<Jobs, CallError> {
        let config = self.config.clone().with_request_timeout(limit);
        Ok(Jobs::new(JetStream::connect(&self.urls, config).await?))
    }

    /// The URLs without the credentials in them.
    fn shown(&self) -> String {
        without_credentials(&self.urls)
    }
}

/// URLs without credentials: `..` stands for all that is before the last `@`, except the first scheme. A password that
/// is written wrong may have commas and `://`, so no part before that `@` is known to be a host.
fn without_credentials(urls: &str) -> String {
    let Some((before, hosts)) = urls.rsplit_once('@') else { return urls.to_owned() };
    let schemes = ["nats://", "tls://", "ws://", "wss://"];
    let scheme = schemes.into_iter().find(|scheme| before.starts_with(scheme)).unwrap_or_default();
    format!("{scheme}..@{hosts}")
}

/// The text of a file of credentials.
fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("the credentials cannot be read from `{}`: {error}", file.display())))
}

/// True if one of the URLs has a password or a token.
fn has_password(urls: &str) -> bool {
    urls.split(',').any(|url| url.split_once("//").map_or(url, |(_, rest)| rest).contains('@'))
}

fn failed(error: CallError) -> Failure {
    Failure::Failed(error.to_string())
}

async fn queues(jobs: &Jobs, as_json: bool) -> Result<String, Failure> {
    let mut rows = vec![["QUEUE", "OPEN", "RUNNING", "DEAD", "OLDEST"].map(str::to_owned).to_vec()];
    let mut found = Vec::new();
    for queue in jobs.kept_queues().await.map_err(failed)? {
        let stats = jobs.stats(&queue).await.map_err(failed)?;
        let oldest = stats.oldest.map(|oldest| oldest.as_secs_f64());
        found.push(json!({
            "queue": queue, "open": stats.open, "running": stats.running, "dead": stats.dead, "oldestSeconds": oldest,
        }));
        let counts = [stats.open, stats.running, stats.dead].map(|count| count.to_string());
        let oldest = stats.oldest.map_or_else(String::new, age);
        rows.push([vec![queue], counts.to_vec(), vec![oldest]].concat());
    }
    Ok(if as_json { pretty(&Value::Array(found)) } else { table(&rows) })
}

/// The chosen queues that the server keeps.
async fn chosen(jobs: &Jobs, wanted: &[String]) -> Result<Vec<String>, Failure> {
    let kept = jobs.kept_queues().await.map_err(failed)?;
    for queue in wanted {
        if kept.contains(queue) {
            continue;
        }
        let near = nearest::nearest(queue, kept.iter().map(String::as_str), 3);
        let near = quoted(&near);
        let hint = match (near.is_empty(), kept.is_empty()) {
            (false, _) => format!("did you mean {}?", near.join(" or ")),
            (true, true) => "there are no queues yet".to_owned(),
            (true, false) => format!("the queues are: {}", quoted(&kept).join(", ")),
        };
        return Err(Failure::Usage(format!("there is no queue `{}`: {hint}", line(queue))));
    }
    Ok(if wanted.is_empty() { kept } else { distinct(wanted) })
}

fn quoted(names: &[impl AsRef<str>]) -> Vec<String> {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect()
}

/// The given values, each once: they may be repeated.
fn distinct<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let mut values: Vec<T> = Vec::new();
    for value in given {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

async fn list(jobs: &Jobs, choice: &JobsChoice, states: &[JobsState], as_json: bool) -> Result<String, Failure> {
    let (queues, states) = (chosen(jobs, &choice.queue).await?, distinct(states));
    let read = Cell::new(0_usize);
    let is_wanted = |stored: &Stored| {
        read.set(read.get().saturating_add(1));
        if read.get() == MANY {
            // Standard error may be closed.
            let _ = writeln!(
                std::io::stderr(),
                "note: {MANY} jobs are read so far, one by one: --queue and --state leave some out"
            );
        }
        choice.operation.as_ref().is_none_or(|pattern| glob::glob(pattern, stored.operation()))
            && choice.key.as_deref().is_none_or(|wanted| stored.key() == Some(wanted))
    };
    let (mut found, now) = (Vec::new(), SystemTime::now());
    // One more than is shown, to know whether there is one.
    let most = choice.limit.saturating_add(1);
    for queue in &queues {
        for state in &states {
            let what = match state {
                JobsState::Open => Listed::Due,
                JobsState::Delayed => Listed::Delayed,
                JobsState::Ended => Listed::Ended,
                JobsState::Dead => Listed::Dead,
            };
            let stored = jobs.list(queue, what).try_filter(|(_, stored)| std::future::ready(is_wanted(stored)));
            let stored: Vec<(JobId, Stored)> =
                stored.take(most.saturating_sub(found.len())).try_collect().await.map_err(failed)?;
            let asked = stream::iter(stored).map(|(id, stored)| asked(jobs, id, stored, now)).buffered(ASKED);
            found.append(&mut asked.try_collect().await.map_err(failed)?);
        }
    }
    let is_more = found.len() > choice.limit;
    found.truncate(choice.limit);
    if is_more {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "there are more than {}: see --limit", choice.limit);
    }
    if as_json {
        return Ok(pretty(&found.iter().map(Facts::short).collect()));
    }
    // Most lists have no steps.
    let has_steps = found.iter().any(|facts| facts.parent().is_some());
    let parent: &[&str] = if has_steps { &["PARENT"] } else { &[] };
    let head: [&[&str]; 3] = [&["JOB", "OPERATION", "STATE", "ATTEMPTS", "AGE"], parent, &["LAST ERROR"]];
    let head: Vec<String> = head.concat().into_iter().map(str::to_owned).collect();
    let rows = found.iter().map(|facts| facts.row(now, has_steps));
    Ok(table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
}

/// The facts about a job, including whether a worker has it: workers are asked if the job may be running.
async fn asked(jobs: &Jobs, id: JobId, stored: Stored, now: SystemTime) -> Result<Facts, CallError> {
    let status = jobs.job_by_id(id.clone()).status_of(&stored).await?;
    let mut facts = Facts::of(id, stored, now);
    if let JobStatus::Running { .. } = status {
        facts.set_running();
    }
    Ok(facts)
}

async fn show(jobs: &Jobs, id: &str, as_json: bool) -> Result<String, Failure> {
    let job = jobs.job_by_id(id_of(id)?);
    let stored = job.stored().await.map_err(failed)?;
    let facts = asked(jobs, job.id().clone(), stored, SystemTime::now()).await.map_err(failed)?;
    Ok(if as_json { pretty(&facts.long()) } else { facts.text() })
}

#[derive(Clone, Copy)]
enum Change {
    Retry,
    Cancel,
    Discard,
}

impl Change {
    async fn apply(self, job: &AnyJob) -> Result<bool, CallError> {
        match self {
            Self::Retry => job.retry().await,
            Self::Cancel => job.cancel().await,
            Self::Discard => job.discard().await,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Retry => "retried",
            Self::Cancel => "cancelled",
            Self::Discard => "discarded",
        }
    }
}

/// Changes jobs, all that can be; fails if one was not.
fn change<'a>(jobs: &'a Jobs, ids: &'a [String], change: Change, as_json: bool) -> BoxFuture<'a, Result<(), Failure>> {
    Box::pin(async move {
        let ids = distinct(&ids.iter().map(|id| id_of(id)).collect::<Result<Vec<_>, _>>()?);
        let (mut told, mut failures, mut printed) = (Vec::new(), Vec::new(), Ok(()));
        for id in ids {
            let job = jobs.job_by_id(id.clone());
            let error = match change.apply(&job).await {
                Ok(true) => {
                    if !as_json {
                        // If this line cannot be printed, the other jobs are still changed.
                        printed = printed.and_then(|()| print(&format!("{} {id}\n", change.done())));
                    }
                    told.push(json!({ "id": id.as_str(), "changed": true }));
                    continue;
                }
                Ok(false) => {
                    let state = match job.stored().await {
                        Ok(stored) => Facts::of(id.clone(), stored, SystemTime::now()).state(),
                        Err(_) => "gone",
                    };
                    let why = match change {
                        Change::Retry => "it has not failed, but is",
                        Change::Cancel => "it has ended already:",
                        Change::Discard => "it has neither failed nor been cancelled, but is",
                    };
                    format!("`{id}` was not {}: {why} {state}", change.done())
                }
                Err(error) => format!("`{id}` was not {}: {error}", change.done()),
            };
            told.push(json!({ "id": id.as_str(), "changed": false, "error": error }));
            failures.push(error);
        }
        if as_json {
            printed = print(&pretty(&Value::Array(told)));
        }
        if failures.is_empty() { printed } else { Err(Failure::Failed(failures.join("\n"))) }
    })
}

fn id_of(text: &str) -> Result<JobId, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("`{}`: {error}", line(text))))
}

fn pretty(value: &Value) -> String {
    crate::report::json(&format!("{value:#}\n")).into_owned()
}

/// Columns of cells, the first row above them.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown() {
        for (urls, shown) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("nats://a:4222,b:4222", "nats://a:4222,b:4222"),
            ("nats://ann:pass@a:4222,tls://b:4222", "nats://..@a:4222,tls://b:4222"),
            ("nats://a,nats://ann:pass@b", "nats://..@b"),
            ("tls://ann:pa,ss@host:4222", "tls://..@host:4222"),
            ("nats://ann:p//a,s@s@host", "nats://..@host"),
            ("nats://ann:pa://ss@host", "nats://..@host"),
            ("ann:pa,ss@host", "..@host"),
            ("ann:pa://ss@host", "..@host"),
        ] {
            assert_eq!(without_credentials(urls), shown);
        }
    }

    #[test]
    fn json_cannot_control_a_terminal() {
        assert_eq!(pretty(&json!(["\u{9b}2J"])), "[\n  \"\\u009b2J\"\n]\n");
    }
}
