//! What generated servers name: the methods of their implementation as handlers.

use std::sync::Arc;

use crate::run::handler::NOT_IMPLEMENTED;
use crate::{
    Call, CallError, Context, HttpMeta, HttpResponse, ItemStream, Operation, Registration, Reply, ResponseEnvelope,
    StatusRange, Subscribe,
};

/// A query or a mutation that a method of a server runs.
pub fn handled<Op, S, F, Fut>(server: &Arc<S>, run: F) -> Registration
where
    Op: Call,
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Context, Op::Input) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Op::Output, CallError>> + Send + 'static,
{
    handled_as::<Op, S, F, Fut>(server, |_| None, run)
}

/// As [`handled`], for an operation with several successes: `variant` gives the position of the one that an output is.
pub fn handled_as<Op, S, F, Fut>(server: &Arc<S>, variant: fn(&Op::Output) -> Option<u16>, run: F) -> Registration
where
    Op: Call,
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Context, Op::Input) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Op::Output, CallError>> + Send + 'static,
{
    let server = server.clone();
    Registration::call::<Op, _, _>(move |input, context| {
        let future = run(server.clone(), context, input);
        async move {
            let output = future.await?;
            Ok(match success::<Op>(variant(&output)) {
                Some(meta) => ResponseEnvelope::http(output, meta).into(),
                None => Reply::Value(output),
            })
        }
    })
}

/// The response that is described for a success. Shapes alone do not tell those of several statuses apart.
fn success<Op: Operation>(variant: Option<u16>) -> Option<HttpMeta> {
    let (variant, http) = (variant?, Op::SPEC.http()?);
    let mut responses = http.responses.iter().filter(|response| response.variant == Some(variant));
    let is_exact = |response: &&HttpResponse| matches!(response.status, StatusRange::Exact(_));
    let response = responses.clone().find(is_exact).or_else(|| responses.next())?;
    Some(HttpMeta::received(http.first_status(response), response.content_type.clone().unwrap_or_default()))
}

/// A subscription that a method of a server runs.
pub fn handled_stream<Op, S, F, Fut>(server: &Arc<S>, run: F) -> Registration
where
    Op: Subscribe,
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Context, Op::Input) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ItemStream<Op::Output>, CallError>> + Send + 'static,
{
    use futures_util::StreamExt;

    let server = server.clone();
    Registration::subscription::<Op, _, _, _>(move |input, context| {
        let future = run(server.clone(), context, input);
        async move { Ok(future.await?.map(|item| item.map(Reply::Value))) }
    })
}

/// The answer of a method that the implementation leaves out.
pub async fn not_implemented<Op: Operation, T>() -> Result<T, CallError> {
    Err(CallError::new(NOT_IMPLEMENTED, format!("`{}` is not implemented", Op::SPEC.id)))
}
