//! The senders of requests over HTTP.

use std::future::Future;

use http::request::Parts;

use crate::model::unauthorized::Unauthorized;
use crate::{BoxFuture, Identity, SecurityKind, SecurityScheme};

/// Determines the sender of a request, for an HTTP server and for an MCP server over HTTP.
///
/// A closure from the request's head to a future is an authenticator. The future returns an [`Identity`], or an
/// `Option` of one: `None` for a request without credentials.
///
#[cfg_attr(
    feature = "http-server",
    doc = r#"
```
# use ops_runtime::Registry;
# use ops_runtime::access::Identity;
# use ops_runtime::serve::{HttpServer, Unauthorized};
let server = HttpServer::new(Registry::new()).with_authenticator(|request: &http::request::Parts| {
    let token = request.headers.get("authorization").cloned();
    async move {
        match token.as_ref().map(|token| token.to_str().unwrap_or_default()) {
            None => Ok(None),
            Some("Bearer 7") => Ok(Some(Identity::new("ann").with_scope("pets:read"))),
            Some(_) => Err(Unauthorized::bearer()),
        }
    }
});
# let _ = server;
```
"#
)]
pub trait Authenticator: Send + Sync + 'static {
    /// The sender of a request with this head; `None` if it has no credentials. Such a request may call only operations
    /// without requirements, and none of an MCP server that has an authenticator.
    ///
    /// # Errors
    /// The refusal of invalid credentials: the request gets the status 401, whatever it asks for.
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>>;

    /// The alternatives by which requests may authenticate; a bearer token by default.
    ///
    /// They tell callers of an `HttpServer` what to send: in its document, and in the header `WWW-Authenticate` of the
    /// response to a request without credentials. An MCP server always asks for a bearer token there, as its
    /// specification has it.
    fn schemes(&self) -> Vec<SecurityScheme> {
        vec![SecurityScheme::new("bearer", SecurityKind::Bearer)]
    }

    /// True if requests can authenticate only by these [`schemes`](Self::schemes). Then the document lists them for
    /// operations that require credentials of another kind, such as those of another server. False by default, since a
    /// closure may read anything.
    fn is_exact(&self) -> bool {
        false
    }
}

impl<F, Fut, I> Authenticator for F
where
    F: Fn(&Parts) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<I, Unauthorized>> + Send + 'static,
    I: Into<Option<Identity>>,
{
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        let found = self(request);
        Box::pin(async move { found.await.map(Into::into) })
    }
}
