//! The token by which a caller cancels its calls.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A token that cancels the calls that it was passed to.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    pub(crate) own: CancellationToken,
    /// The tokens of the calls within which this one is made. `None` if there are none.
    // Behind one pointer, since every call moves its token.
    outer: Option<Arc<Vec<CancellationToken>>>,
}

impl CancelToken {
    /// A token that is not cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The token of another library, such as that of a transport.
    #[cfg(any(feature = "http-server", feature = "mcp-server"))]
    pub(crate) fn of(own: CancellationToken) -> Self {
        Self { own, outer: None }
    }

    /// The same token, for a call that also ends when the token of its parent is cancelled.
    pub(super) fn within(self, parent: Option<Self>) -> Self {
        let Some(parent) = parent else { return self };
        // Each token once: a handler may pass on the token of its own call, which is within the same ones.
        let mut outer: Vec<_> = parent.all().filter(|token| **token != self.own).cloned().collect();
        for token in self.all().skip(1) {
            if !outer.contains(token) {
                outer.push(token.clone());
            }
        }
        Self { outer: Some(Arc::new(outer)), ..self }
    }

    /// The tokens of which each cancels.
    fn all(&self) -> impl Iterator<Item = &CancellationToken> {
        std::iter::once(&self.own).chain(self.outer.as_deref().into_iter().flatten())
    }

    /// Cancels the calls: their handlers are dropped.
    pub fn cancel(&self) {
        self.own.cancel();
    }

    /// True if it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.all().any(CancellationToken::is_cancelled)
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        let mut cancelled = self.listen();
        poll_fn(|task| cancelled.poll(task)).await;
    }

    /// What hears of the cancellation.
    pub(crate) fn listen(&self) -> Cancelled {
        Cancelled(self.all().map(|token| Box::pin(token.clone().cancelled_owned())).collect())
    }

    /// Cancels when the future ends, such as a signal to the process or another library's token.
    ///
    /// The future runs in a task, which ends with it or when the calls are cancelled. If it may outlive many calls, make one
    /// token, and give each call a clone: a token for each call would leave a task behind for each.
    ///
    /// ```
    /// use ops_runtime::registry::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let other = tokio_util::sync::CancellationToken::new();
    /// let cancel = CancelToken::new();
    /// cancel.cancel_when(other.clone().cancelled_owned());
    /// other.cancel();
    /// cancel.cancelled().await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn cancel_when(&self, end: impl Future<Output = ()> + Send + 'static) {
        let (own, mut cancelled) = (self.own.clone(), self.listen());
        tokio::spawn(async move {
            let mut end = pin!(end);
            let has_ended = poll_fn(|task| match cancelled.poll(task) {
                Poll::Ready(()) => Poll::Ready(false),
                Poll::Pending => end.as_mut().poll(task).map(|()| true),
            });
            if has_ended.await {
                own.cancel();
            }
        });
    }
}

/// Hears of the cancellation of a token.
pub(crate) struct Cancelled(Vec<Pin<Box<WaitForCancellationFutureOwned>>>);

impl Cancelled {
    /// Ready if one of the tokens was cancelled.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let is_cancelled = self.0.iter_mut().any(|token| token.as_mut().poll(task).is_ready());
        if is_cancelled { Poll::Ready(()) } else { Poll::Pending }
    }
}
