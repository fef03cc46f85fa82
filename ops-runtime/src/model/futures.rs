//! Futures and streams in boxes.

use std::pin::Pin;

use futures_core::Stream;

/// A future in a box, as handlers return it.
///
/// What connects or serves returns one too: the body of an `async fn` is compiled by the crate that awaits it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream in a box, as subscriptions return it.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
