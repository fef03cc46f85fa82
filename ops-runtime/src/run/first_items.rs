//! The first items of a subscription, for callers that take one result: models and their programs.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::run::pipeline::EnvelopeStream;
use crate::{CallError, Warning};

/// How many items are collected.
pub(crate) const ITEMS: usize = 100;

/// How long items are collected, and how long the first one is waited for.
pub(crate) const COLLECT: Duration = Duration::from_secs(20);

/// The first items of a subscription.
pub(crate) struct FirstItems {
    /// The items; a failed one is `{ "error": .. }`.
    pub(crate) items: Vec<Value>,
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "gateways alone tell models of them"))]
    pub(crate) warnings: Vec<Warning>,
    /// True if these are all.
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "gateways alone tell models of it"))]
    pub(crate) is_whole: bool,
    /// How many of the items failed.
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "gateways alone tell models of it"))]
    pub(crate) failed: usize,
}

/// Collects the first items; `public` limits what the caller sees of an item's error.
///
/// # Errors
/// The error of the first item.
pub(crate) async fn first_items(
    mut stream: EnvelopeStream<Value>,
    public: impl Fn(CallError) -> CallError,
) -> Result<FirstItems, CallError> {
    let until = Instant::now() + COLLECT;
    let mut first = FirstItems { items: Vec::new(), warnings: Vec::new(), is_whole: false, failed: 0 };
    while first.items.len() < ITEMS {
        match timeout_at(until, stream.next()).await {
            Ok(Some(Ok(item))) => {
                first.warnings.extend(item.warnings);
                first.items.push(item.data);
            }
            Ok(Some(Err(error))) if first.items.is_empty() => return Err(error),
            Ok(Some(Err(error))) => {
                first.items.push(json!({ "error": public(error) }));
                first.failed += 1;
            }
            Ok(None) => {
                first.is_whole = true;
                break;
            }
            Err(_) => break,
        }
    }
    Ok(first)
}
