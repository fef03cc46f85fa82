//! The streams of queues and of schedules: made on first use, and refused if they have other settings.

use std::error::Error;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::{
    CreateStreamErrorKind, GetStreamError, GetStreamErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use futures_util::TryStreamExt;

use super::config::JetStreamConfig;
use super::failure::Patience;
use super::subject::Subjects;
use crate::nats::unusable;
use crate::{BoxFuture, CallError};

/// The stream of a queue.
///
/// - A work queue: what is acknowledged is removed. Messages that no consumer requests stay until their TTL; a message
///   below a consumer's acknowledgements keeps its TTL too, over restarts and new leaders (tried with nats-server
///   2.15).
/// - `DiscardPolicy::New` is refused together with message schedules ("message scheduling cannot use discard new"). The
///   default discards old messages, but only at a limit, and there is none: a full account or disk refuses new ones.
/// - No direct gets: any replica responds to those, even one that lags. What is read here is decisive.
pub(super) fn queue(subjects: &Subjects, config: &JetStreamConfig, queue: &str) -> Config {
    Config {
        retention: RetentionPolicy::WorkQueue,
        allow_message_ttl: true,
        allow_message_schedules: true,
        ..base(subjects.stream(queue), subjects.queue(queue), config)
    }
}

/// The stream of schedules: the last message of each.
pub(super) fn schedules(subjects: &Subjects, config: &JetStreamConfig) -> Config {
    Config { max_messages_per_subject: 1, ..base(subjects.schedules_stream(), subjects.schedules(), config) }
}

fn base(name: String, subject: String, config: &JetStreamConfig) -> Config {
    Config {
        name,
        subjects: vec![subject],
        storage: if config.in_memory { StorageType::Memory } else { StorageType::File },
        num_replicas: config.replicas,
        // Replaces a message by the next one of its subject.
        allow_rollup: true,
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: -1,
        max_message_size: -1,
        max_consumers: -1,
        ..Config::default()
    }
}

/// The stream; it is made if there is none. Waits for the election of a leader, and for servers that are away.
pub(super) fn ensure<'a>(
    context: &'a Context,
    config: &'a JetStreamConfig,
    wanted: Config,
) -> BoxFuture<'a, Result<Stream, CallError>> {
    Box::pin(found_or_made(context, config, wanted))
}

async fn found_or_made(context: &Context, config: &JetStreamConfig, wanted: Config) -> Result<Stream, CallError> {
    let mut patience = Patience::new(config.request_timeout);
    loop {
        let error = match context.get_stream(&wanted.name).await {
            Ok(stream) if config.as_found => return Ok(stream),
            Ok(stream) => return same(&wanted, &stream.cached_info().config).map(|()| stream),
            Err(error) if is_without(context, &error) => {
                return Err(CallError::execution("this server has no JetStream: start it with `--jetstream`"));
            }
            Err(error) => error,
        };
        let is_missing = match error.kind() {
            GetStreamErrorKind::JetStream(inner) if inner.error_code() == ErrorCode::STREAM_NOT_FOUND => true,
            GetStreamErrorKind::JetStream(inner) => inner.error_code() != ErrorCode::CLUSTER_NOT_AVAILABLE,
            _ => false,
        };
        if is_missing && config.as_found {
            return Err(nothing_kept(context, &wanted.name).await);
        }
        let error: Box<dyn Error + Send + Sync> = if is_missing {
            match context.create_stream(wanted.clone()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => match error.kind() {
                    // Another engine has made it meanwhile, perhaps with other settings: it is compared.
                    CreateStreamErrorKind::JetStream(inner) if inner.error_code() == ErrorCode::STREAM_NAME_EXIST => {
                        error.into()
                    }
                    CreateStreamErrorKind::TimedOut => error.into(),
                    // A cluster that has just started, or has a new leader, may not know yet where all its servers are.
                    CreateStreamErrorKind::JetStream(inner)
                        if [ErrorCode::CLUSTER_NOT_AVAILABLE, ErrorCode::CLUSTER_NO_PEERS]
                            .contains(&inner.error_code()) =>
                    {
                        error.into()
                    }
                    _ => return Err(unusable(&cannot_make(&wanted), &error)),
                },
            }
        } else {
            error.into()
        };
        if !patience.wait().await {
            let what =
                if is_missing { cannot_make(&wanted) } else { format!("the stream {} can't be had", wanted.name) };
            return Err(unusable(&what, &*error));
        }
    }
}

/// True if the server of the connection has no `JetStream`, and is alone. In a cluster, servers that have it may be away.
fn is_without(context: &Context, error: &GetStreamError) -> bool {
    let request = error.source().and_then(|source| source.downcast_ref::<RequestError>());
    let is_unheard = request.is_some_and(|request| request.kind() == RequestErrorKind::NoResponders);
    let server = context.client().server_info();
    is_unheard && !server.jetstream && server.cluster.is_none()
}

/// The error of a prefix under which nothing is stored, with the prefixes that are in use.
async fn nothing_kept(context: &Context, wanted: &str) -> CallError {
    const SCHEDULES: &str = "-schedules";
    let streams: Vec<String> = context.stream_names().try_collect().await.unwrap_or_default();
    let mut known: Vec<String> = streams
        .iter()
        .filter_map(|stream| stream.strip_suffix(SCHEDULES))
        .map(|prefix| format!("`{prefix}`"))
        .collect();
    known.sort_unstable();
    let known =
        if known.is_empty() { "no other has any".to_owned() } else { format!("there are {}", known.join(", ")) };
    let prefix = wanted.strip_suffix(SCHEDULES).unwrap_or(wanted);
    CallError::execution(format!("the server keeps no jobs under the prefix `{prefix}`; {known}"))
}

fn cannot_make(wanted: &Config) -> String {
    let few = "; if there are fewer servers than replicas, start more, or say `with_replicas(1)` and rely on one disk";
    let few = if wanted.num_replicas > 1 { few } else { "" };
    format!("the stream {} can't be made{few}", wanted.name)
}

/// Fails with the differences. Only settings on which the promises rest are compared; limits, tags and descriptions are
/// up to the operator.
fn same(wanted: &Config, found: &Config) -> Result<(), CallError> {
    let mut differences = Vec::new();
    let mut compare = |name: &str, wanted: String, found: String| {
        if wanted != found {
            differences.push(format!("{name} is {found}, not {wanted}"));
        }
    };
    compare("subjects", format!("{:?}", wanted.subjects), format!("{:?}", found.subjects));
    compare("retention", format!("{:?}", wanted.retention), format!("{:?}", found.retention));
    compare("storage", format!("{:?}", wanted.storage), format!("{:?}", found.storage));
    compare("num_replicas", wanted.num_replicas.to_string(), found.num_replicas.to_string());
    let per_subject = |config: &Config| config.max_messages_per_subject.to_string();
    compare("max_msgs_per_subject", per_subject(wanted), per_subject(found));
    compare("max_age", format!("{:?}", wanted.max_age), format!("{:?}", found.max_age));
    compare("allow_rollup_hdrs", wanted.allow_rollup.to_string(), found.allow_rollup.to_string());
    compare("allow_msg_ttl", wanted.allow_message_ttl.to_string(), found.allow_message_ttl.to_string());
    let schedules = |config: &Config| config.allow_message_schedules.to_string();
    compare("allow_msg_schedules", schedules(wanted), schedules(found));
    let denied = |config: &Config| (config.deny_delete || config.deny_purge || config.sealed).to_string();
    compare("deny_delete, deny_purge or sealed", denied(wanted), denied(found));
    compare("no_ack", wanted.no_ack.to_string(), found.no_ack.to_string());
    compare("persist_mode", format!("{:?}", None::<()>), format!("{:?}", found.persist_mode.as_ref().map(|_| "set")));
    if differences.is_empty() {
        return Ok(());
    }
    let what = differences.join(", ");
    let mend = "change the stream or the settings, or choose another prefix";
    Err(CallError::execution(format!("the stream {} is configured otherwise: {what}; {mend}", wanted.name)))
}

/// The name of a lane's consumer.
pub(super) fn lane(lane: u16) -> String {
    format!("lane-{lane}")
}

/// The consumer of a lane; it is made if there is none.
pub(super) fn consumer<'a>(
    stream: &'a Stream,
    subjects: &'a Subjects,
    config: &'a JetStreamConfig,
    queue: &'a str,
    lane: u16,
) -> BoxFuture<'a, Result<Consumer<pull::Config>, CallError>> {
    Box::pin(async move {
        let name = self::lane(lane);
        let wanted = pull::Config {
            durable_name: Some(name.clone()),
            filter_subject: subjects.jobs(queue, lane),
            ack_policy: AckPolicy::Explicit,
            ack_wait: config.limits.lease,
            // The three limits must not apply: attempts are counted by the engine, a delayed job must not delay others, and
            // each worker may have a waiting request.
            max_deliver: -1,
            max_ack_pending: -1,
            max_waiting: 100_000,
            ..pull::Config::default()
        };
        let mut patience = Patience::new(config.request_timeout);
        let consumer = loop {
            let error = match stream.create_consumer_strict(wanted.clone()).await {
                Ok(consumer) => return Ok(consumer),
                Err(error) => error,
            };
            match stream.get_consumer::<pull::Config>(&name).await {
                Ok(consumer) => break consumer,
                Err(_) if patience.wait().await => {}
                Err(_) => return Err(unusable(&format!("the consumer {name} can't be made"), &error)),
            }
        };
        let found = &consumer.cached_info().config;
        let differences: Vec<_> = [
            ("ack_wait", format!("{:?}", wanted.ack_wait), format!("{:?}", found.ack_wait)),
            ("filter_subject", wanted.filter_subject, found.filter_subject.clone()),
            ("max_deliver", wanted.max_deliver.to_string(), found.max_deliver.to_string()),
            ("max_ack_pending", wanted.max_ack_pending.to_string(), found.max_ack_pending.to_string()),
        ]
        .into_iter()
        .filter(|(_, wanted, found)| wanted != found)
        .map(|(name, wanted, found)| format!("{name} is {found}, not {wanted}"))
        .collect();
        if differences.is_empty() {
            return Ok(consumer);
        }
        let (of, what) = (subjects.stream(queue), differences.join(", "));
        let mend = "all engines of a prefix need the same settings";
        Err(CallError::execution(format!("the consumer {name} of {of} is configured otherwise: {what}; {mend}")))
    })
}
