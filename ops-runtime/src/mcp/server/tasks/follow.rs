//! Follows a task while it is open: it is counted, and the connection that began it gets its progress and its end.

use std::future::pending;

use futures_util::StreamExt;
use rmcp::model::{
    CustomNotification, NotificationMetaObject, ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::open_count::Counted;
use super::wire::RELATED;
use crate::Progress;
use crate::durable::AnyJob;

/// Counts a task until it has ended.
pub(super) fn count(job: AnyJob, counted: Counted) {
    tokio::spawn(async move {
        job.until_ended().await;
        drop(counted);
    });
}

/// The connection that began a task.
pub(super) struct Listener {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: Option<ProgressToken>,
    /// Cancelled when the connection ends.
    pub(super) closed: CancellationToken,
}

impl Listener {
    /// Sends the progress of a task to the connection, until it has ended. False if the connection has ended before.
    pub(super) async fn follow(&self, job: &AnyJob) -> bool {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => false,
            () = self.report(job) => true,
            () = job.until_ended() => true,
        }
    }

    /// Sends progress; the stream ends with the job. A repeated attempt reports from its start again, and progress must grow
    /// under its token (MCP specification, "Progress"): what it repeats is left out.
    async fn report(&self, job: &AnyJob) {
        let Some(token) = &self.token else { return pending().await };
        let mut reports = match job.progress().await {
            Ok(reports) => reports,
            Err(error) => {
                tracing::debug!(%error, "the progress of a task is not heard");
                return pending().await;
            }
        };
        let mut meta = NotificationMetaObject::new();
        meta.insert(RELATED.to_owned(), json!({ "taskId": job.id().as_str() }));
        let mut last = f64::NEG_INFINITY;
        while let Some(Progress { progress, total, message }) = reports.next().await {
            if progress <= last {
                continue;
            }
            last = last.max(progress);
            let mut told = ProgressNotificationParam::new(token.clone(), progress);
            (told.total, told.message, told.meta) = (total, message, Some(meta.clone()));
            if self.peer.notify_progress(told).await.is_err() {
                return pending().await;
            }
        }
    }

    /// Sends the state of a task to the connection.
    pub(super) async fn tell(&self, task: Value) {
        let told = CustomNotification::new("notifications/tasks/status", Some(task));
        if let Err(error) = self.peer.send_notification(ServerNotification::CustomNotification(told)).await {
            tracing::debug!(%error, "the end of a task could not be told");
        }
    }
}
