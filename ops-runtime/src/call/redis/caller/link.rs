//! What a caller sends: requests to the streams of their operations, the rest to the streams of workers.

use std::sync::Arc;

use super::places::{Place, Places};
use crate::BoxFuture;
use crate::call::broker::{Liveness, Outbox, Queued};
use crate::call::pending::WeakPending;
use crate::call::redis::RedisConfig;
use crate::call::redis::connection::{Message, push};
use crate::call::{CallEvent, Frame, Link, Unsent};

/// The link to the workers.
pub(super) struct ToWorkers {
    pub(super) config: RedisConfig,
    pub(super) outbox: Arc<Outbox<Message>>,
    pub(super) liveness: Arc<Liveness>,
    pub(super) places: Arc<Places>,
    pub(super) pending: WeakPending,
}

impl Link for ToWorkers {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        let keys = &self.config.keys;
        if let Frame::Event(CallEvent::Requested(request)) = &frame {
            let text = frame.encode_within(self.config.max_message).map_err(Unsent::Refused)?;
            let Some(queued) = Queued::of(&self.pending, request) else { return Ok(()) };
            let place = Place::of(request.operation_id.clone());
            self.places.all().insert(queued.number, place);
            let key = keys.requests(&request.operation_id);
            push(&self.outbox, Message::Request { key, text, request: queued });
            return Ok(());
        }
        let Some(id) = frame.request_id() else { return Ok(()) };
        if let Some(worker) = self.liveness.worker_of(id) {
            let text = frame.encode().map_err(Unsent::Refused)?;
            let credit = matches!(frame, Frame::Credit { .. }).then(|| id.clone());
            push(
                &self.outbox,
                Message::Frame { key: keys.worker(&worker), text, to: worker, number: 0, credit, refused: 0 },
            );
        } else if let Frame::Event(CallEvent::Aborted { .. }) = frame {
            // No worker need start it. A worker that has started it gets the abort when it reports the request.
            let place = id.number().and_then(|number| self.places.all().remove(&number));
            if let Some(Place { operation, entry: Some(entry), .. }) = place {
                push(&self.outbox, Message::Withdraw { key: keys.requests(&operation), entry });
            }
        }
        Ok(())
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.outbox.ready()
    }
}
