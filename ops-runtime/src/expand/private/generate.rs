//! A stream made from a future that passes items out while it runs.
//!
//! A subscription's fn may return a stream that borrows its arguments. They can't leave the future that owns them, so
//! that future stays alive behind the stream: polling the stream polls the future, which leaves an item in a slot that
//! both share; dropping the stream drops the future and all that it holds. No task, no channel.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::CallError;

type Item<T> = Result<T, CallError>;

/// What the future left in the slot when it was last polled.
enum Signal<T> {
    /// It has its stream and will give items.
    Started,
    Item(Item<T>),
}

struct Slot<T>(Mutex<Option<Signal<T>>>);

impl<T> Slot<T> {
    fn put(&self, signal: Signal<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(signal);
    }

    fn take(&self) -> Option<Signal<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The end of the slot that the future fills.
pub struct Sink<T>(Arc<Slot<T>>);

impl<T> Sink<T> {
    /// Passes on all items of the stream.
    pub async fn send_all<S: Stream>(self, stream: S, convert: impl Fn(S::Item) -> Item<T>) -> Result<(), CallError> {
        let mut stream = pin!(stream);
        let mut started = false;
        poll_fn(|context| {
            if !started {
                started = true;
                self.0.put(Signal::Started);
                return Poll::Pending;
            }
            match stream.as_mut().poll_next(context) {
                // Pending, although nothing will wake the task: the poller finds the item and polls again.
                Poll::Ready(Some(item)) => {
                    self.0.put(Signal::Item(convert(item)));
                    Poll::Pending
                }
                Poll::Ready(None) => Poll::Ready(Ok(())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// Runs the future until it has its stream, and gives the items as a stream.
///
/// # Errors
/// That of the future, if it ends before it has its stream.
pub async fn generate<T, F, Fut>(run: F) -> Result<Generated<T, Fut>, CallError>
where
    F: FnOnce(Sink<T>) -> Fut,
    Fut: Future<Output = Result<(), CallError>>,
{
    let slot = Arc::new(Slot(Mutex::new(None)));
    let mut future = Box::pin(run(Sink(slot.clone())));
    let ended = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(result.map(|()| true)),
        Poll::Pending if slot.take().is_some() => Poll::Ready(Ok(false)),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok(Generated { slot, future: (!ended).then_some(future) })
}

/// The stream that [`generate`] gives.
pub struct Generated<T, Fut> {
    slot: Arc<Slot<T>>,
    // None once it has ended.
    future: Option<Pin<Box<Fut>>>,
}

impl<T, Fut: Future<Output = Result<(), CallError>>> Stream for Generated<T, Fut> {
    type Item = Item<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<T>>> {
        let Some(future) = &mut self.future else { return Poll::Ready(None) };
        match future.as_mut().poll(context) {
            Poll::Ready(result) => {
                self.future = None;
                Poll::Ready(result.err().map(Err))
            }
            Poll::Pending => match self.slot.take() {
                Some(Signal::Item(item)) => Poll::Ready(Some(item)),
                Some(Signal::Started) | None => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::{StreamExt, stream};

    use super::*;

    fn counting(numbers: &[u32]) -> impl Stream<Item = u32> {
        stream::iter(numbers).then(|n| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            *n
        })
    }

    #[tokio::test]
    async fn a_stream_may_borrow() {
        let numbers = vec![1, 2, 3];
        let stream = generate(move |sink| async move { sink.send_all(counting(&numbers), Ok).await }).await.unwrap();
        assert_eq!(stream.collect::<Vec<_>>().await, [Ok(1), Ok(2), Ok(3)]);
    }

    #[tokio::test]
    async fn it_ends_once_and_stays_ended() {
        let mut stream = generate(|sink| async move { sink.send_all(stream::iter([1]), Ok).await }).await.unwrap();
        assert_eq!(stream.next().await, Some(Ok(1)));
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn an_error_before_the_stream_is_that_of_the_future() {
        let opened: Result<stream::Empty<u32>, CallError> = Err(CallError::execution("closed"));
        let result = generate(|sink| async move {
            tokio::task::yield_now().await;
            sink.send_all(opened?, Ok).await
        });
        assert_eq!(result.await.err(), Some(CallError::execution("closed")));
    }

    #[tokio::test]
    async fn an_error_among_items_does_not_end_it() {
        let convert = |n| if n == 2 { Err(CallError::execution("two")) } else { Ok(n) };
        let stream = generate(|sink| async move { sink.send_all(stream::iter([1, 2, 3]), convert).await });
        let items: Vec<_> = stream.await.unwrap().collect().await;
        assert_eq!(items, [Ok(1), Err(CallError::execution("two")), Ok(3)]);
    }

    #[tokio::test]
    async fn nothing_is_polled_ahead() {
        let polled = Cell::new(0);
        let items = stream::repeat_with(|| polled.set(polled.get() + 1));
        let mut stream = generate(|sink| async { sink.send_all(items, Ok).await }).await.unwrap();
        assert_eq!(polled.get(), 0);
        stream.next().await;
        assert_eq!(polled.get(), 1);
    }

    #[tokio::test]
    async fn dropping_the_stream_drops_what_it_holds() {
        let held = Arc::new(());
        let inner = held.clone();
        let stream = generate(move |sink| async move {
            let _inner = inner;
            sink.send_all(stream::pending::<u32>(), Ok).await
        });
        let stream = stream.await.unwrap();
        assert_eq!(Arc::strong_count(&held), 2);
        drop(stream);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
