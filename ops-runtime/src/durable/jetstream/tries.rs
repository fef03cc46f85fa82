//! The jobs that this process has: their leases, and the tries with which they are given back.

use std::time::{Duration, Instant};

use async_nats::Subject;
use async_nats::header::NATS_ROLLUP;
use async_nats::jetstream::AckKind;
use serde::Deserialize;

use super::core::{Core, DELIVERED, Put, to_json};
use super::endings::{is_ending, is_run, place_of};
use super::leases::Lease;
use super::write::Write;
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::Delivery;
use crate::durable::record::Tries;
use crate::durable::retry::LONGEST;
use crate::nats::unusable;

/// After how long a message is read again that refused a write and cannot be read yet.
const SETTLE: Duration = Duration::from_millis(20);
/// How often a job is read again that a cluster does not show: half a second in total.
const READS: usize = 25;

impl Core {
    /// The lease of a delivery, if it is not over.
    pub(super) fn lease(&self, delivery: &Delivery) -> Option<Lease> {
        let lease = self.held.get(&delivery.job.id, &delivery.receipt)?;
        (lease.since.elapsed() < self.config.limits.lease).then_some(lease)
    }

    /// Stores the tries, and has the job delivered again.
    ///
    /// Does nothing when the lease is over: the server delivers the job again by itself. Another worker may have it
    /// then, and would lose it, since a receipt of an earlier delivery is valid for a later one. Writes are repeated
    /// while the server is away, which may take longer than the lease, so the lease is checked before and after each.
    pub(super) async fn give_back(&self, delivery: &Delivery, tries: &Tries, wait: Duration) -> Result<(), CallError> {
        let id = &delivery.job.id;
        let mut other = None;
        // A server that has just become the leader may show nothing of the job yet. A single server shows all.
        let mut reads = if self.config.replicas > 1 { READS } else { 0 };
        while let Some(lease) = self.lease(delivery) {
            let (delivered, place) = ((lease.delivered, delivery.deliveries), other.unwrap_or(lease.last));
            if self.write_tries(id, tries, delivered, place).await? {
                let is_held = self.lease(delivery).is_some();
                self.held.remove(id, &delivery.receipt);
                if is_held {
                    self.acknowledge(lease.receipt, AckKind::Nak(Some(wait.min(LONGEST)))).await;
                }
                return Ok(());
            }
            match self.last(id.queue(), &self.subjects.of(id, ">")).await? {
                // An earlier repetition of this write, or the late write of a worker that lost the job: it is replaced.
                Some(last) if last.subject.ends_with(".try") => other = Some(last.sequence),
                Some(last) if last.sequence <= place => {}
                None if reads > 0 => reads -= 1,
                // The job has ended, is gone, or is another one by now.
                _ => break,
            }
            tokio::time::sleep(SETTLE).await;
        }
        self.held.remove(id, &delivery.receipt);
        Ok(())
    }

    /// Writes tries, if the last message about the job is still the same, and returns whether it was. If not, another
    /// worker has the job, or it has ended, and late tries would stand behind its end.
    ///
    /// They are kept as long as the job: without them, the server's deliveries would count as attempts.
    pub(super) async fn write_tries(
        &self,
        id: &JobId,
        tries: &Tries,
        delivered: (u64, u64),
        last: u64,
    ) -> Result<bool, CallError> {
        let write = Write::new(self.subjects.of(id, "try"), to_json(tries)?)
            .after(self.subjects.of(id, ">"), last)
            .with(NATS_ROLLUP, "sub".to_owned())
            .with(DELIVERED, format!("{} {}", delivered.0, delivered.1));
        Ok(matches!(self.put(&write).await?, Put::Stored(_)))
    }

    /// Acknowledges a delivery. If it is lost, the job counts as one whose worker died.
    pub(super) async fn acknowledge(&self, receipt: Subject, kind: AckKind) {
        if let Err(error) = self.client.publish(receipt, kind.into()).await {
            tracing::debug!(%error, "an acknowledgement is lost");
        }
    }

    /// Renews a lease.
    pub(super) async fn extend(&self, delivery: &Delivery) -> Result<bool, CallError> {
        let id = &delivery.job.id;
        let Some(lease) = self.held.get(id, &delivery.receipt) else { return Ok(false) };
        let since = Instant::now();
        // The server responds even for jobs that it no longer counts as delivered.
        let asked = self.client.request(lease.receipt.clone(), AckKind::Progress.into()).await;
        let is_over = lease.since.elapsed() >= self.config.limits.lease;
        if !is_over {
            asked.map_err(|error| unusable("a lease can't be extended", &error))?;
            if self.is_open(delivery, &lease).await? {
                self.held.extended(id, since);
                return Ok(true);
            }
        }
        self.held.remove(id, &delivery.receipt);
        Ok(false)
    }

    /// True if the job of a lease has not ended, and its id is not that of a later run.
    async fn is_open(&self, delivery: &Delivery, lease: &Lease) -> Result<bool, CallError> {
        let job = &delivery.job;
        let Some((last, open)) = self.known(&job.id).await? else { return Ok(false) };
        // Nothing was written since the job was delivered.
        if last.sequence <= lease.last {
            return Ok(lease.is_alone(job) || !self.has_ended(job, lease.sequence).await?);
        }
        Ok(!is_ending(&last) && is_run(&open.unwrap_or(last), place_of(delivery), job.run()))
    }
}

/// The tries of a job. Tries that cannot be read are left out: the job must not stay in its queue for ever.
///
/// Earlier versions stored errors of any depth, and readers of JSON stop at 128 levels.
pub(super) fn read_tries(json: &[u8], subject: &str) -> Tries {
    #[derive(Deserialize)]
    struct Counted {
        #[serde(default)]
        attempts: u32,
        #[serde(default)]
        passes: u32,
        #[serde(default)]
        unbegun: u32,
        #[serde(default)]
        gone: u32,
        #[serde(default)]
        next: Option<u64>,
    }

    let error = match serde_json::from_slice(json) {
        Ok(tries) => return tries,
        Err(error) => error,
    };
    tracing::warn!(%error, subject, "what the tries of a job came to can't be read, and is left out");
    let Ok(counted) = serde_json::from_slice(json) else { return Tries::default() };
    let Counted { attempts, passes, unbegun, gone, next } = counted;
    Tries { attempts, passes, unbegun, gone, next, ..Tries::default() }
}
