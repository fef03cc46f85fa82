//! Futures and streams in boxes.

use std::pin::Pin;

use futures_core::Stream;

/// A future in a box, as handlers return it.
///
/// Functions that connect or serve return one, too: the body of an `async fn` is compiled by the crate that awaits it, and
/// there once for each codegen unit that awaits it. For the same reason, so do long functions that are awaited at several
/// places, if a box costs little compared with their work, such as a request.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream in a box, as subscriptions return it.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
