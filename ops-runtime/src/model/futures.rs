//! Futures and streams in boxes.

use std::pin::Pin;

use futures_core::Stream;

/// A future in a box, as handlers return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream in a box, as subscriptions return it.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
