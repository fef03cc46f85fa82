//! The list of a caller's tasks, page by page.

use rmcp::model::ErrorData;
use serde_json::{Value, json};

use super::state::{Asker, unreachable};
use crate::durable::engine::Listed;

/// How many tasks a page has at most.
const PAGE: usize = 100;
/// Number of jobs that are read for a page. A queue has jobs of others, too.
const LOOKED_AT: usize = 500;
/// Limit of the rest of a cursor, in bytes.
const MAX_CURSOR: usize = 200;

/// The parts of a queue, listed one after the other.
const PARTS: [(Listed, &str); 3] = [(Listed::Due, "open"), (Listed::Ended, "ended"), (Listed::Dead, "dead")];

/// A page of the caller's tasks. It may have few or none, and still have a next page.
///
/// # Errors
/// If the cursor is not one of this server, or if the engine cannot be reached.
pub(super) async fn listed(asker: &Asker<'_>, cursor: Option<&Value>) -> Result<Value, ErrorData> {
    let queues = asker.tasks.jobs.queues();
    let places: Vec<_> = queues.iter().flat_map(|queue| PARTS.map(|(part, name)| (queue, part, name))).collect();
    let (mut at, mut after) = match cursor {
        None | Some(Value::Null) => (0, None),
        Some(cursor) => {
            position(cursor, |part, queue| places.iter().position(|(own, _, name)| *own == queue && *name == part))?
        }
    };
    let (mut tasks, mut left) = (Vec::new(), LOOKED_AT);
    while let Some((queue, part, _)) = places.get(at) {
        let most = left.min(PAGE.saturating_sub(tasks.len()));
        if most == 0 {
            break;
        }
        let page = asker.engine().list(queue, *part, after.as_deref(), most).await;
        let page = page.map_err(|error| unreachable(&error))?;
        // An engine that found fewer, and has more, has looked at many others.
        left = left.saturating_sub(if page.next.is_some() { most } else { page.jobs.len().max(1) });
        for seen in page.jobs.into_iter().filter_map(|(id, stored)| asker.seen(id, stored)) {
            let seen = asker.with_questions(seen).await.map_err(|error| unreachable(&error))?;
            tasks.push(Value::Object(asker.told(&seen)));
        }
        after = page.next;
        if after.is_none() {
            at = at.saturating_add(1);
        }
    }
    let mut page = json!({ "tasks": tasks });
    if let (Some((queue, _, name)), Value::Object(page)) = (places.get(at), &mut page) {
        page.insert("nextCursor".to_owned(), json!(format!("{name}.{queue}.{}", after.unwrap_or_default())));
    }
    Ok(page)
}

/// The position of a cursor.
fn position(cursor: &Value, place: impl Fn(&str, &str) -> Option<usize>) -> Result<(usize, Option<String>), ErrorData> {
    let mut parts = cursor.as_str().filter(|cursor| cursor.len() <= MAX_CURSOR).unwrap_or_default().splitn(3, '.');
    let (name, queue, after) = (parts.next(), parts.next(), parts.next());
    let found = name.zip(queue).zip(after).and_then(|((name, queue), after)| Some((place(name, queue)?, after)));
    match found {
        Some((at, after)) => Ok((at, Some(after).filter(|after| !after.is_empty()).map(str::to_owned))),
        None => Err(ErrorData::invalid_params("Unknown cursor", None)),
    }
}
