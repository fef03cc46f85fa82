//! Replies to the server's requests, which do not wait for one another.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use crate::model::lock::lock;

/// How many replies are sent at a time.
const MOST: usize = 16;

/// The replies that are being sent. They end with the connection.
///
/// rmcp sends replies and cancellations one after the other. The server may be slow to accept a reply, or the user may have to
/// log in for it. All others would wait as long, so a reply has a task of its own, and rmcp goes on.
#[derive(Clone, Default)]
pub(super) struct Replies(Arc<Mutex<JoinSet<()>>>);

impl Replies {
    /// Sends a reply in a task of its own. Returns it if too many are being sent.
    pub(super) fn send(&self, reply: BoxFuture<'static, ()>) -> Option<BoxFuture<'static, ()>> {
        let mut sending = lock(&self.0);
        while sending.try_join_next().is_some() {}
        if sending.len() >= MOST {
            return Some(reply);
        }
        sending.spawn(reply);
        None
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn so_many_are_sent_at_a_time_until_the_connection_ends() {
        let (replies, accepted) = (Replies::default(), Arc::new(Semaphore::new(0)));
        let reply = || -> BoxFuture<'static, ()> {
            let accepted = accepted.clone();
            Box::pin(async move { accepted.acquire().await.unwrap().forget() })
        };
        for _ in 0..MOST {
            assert!(replies.send(reply()).is_none());
        }
        assert!(replies.send(reply()).is_some());
        // One that is accepted makes room for another.
        accepted.add_permits(1);
        while replies.send(reply()).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(replies.send(reply()).is_some());
        drop(replies);
        while Arc::strong_count(&accepted) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
