//! The senders of requests over HTTP.

use std::future::Future;

use http::request::Parts;

use crate::model::unauthorized::Unauthorized;
use crate::{BoxFuture, Identity, ParameterLocation, SecurityKind, SecurityScheme};

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
    /// They tell callers what to send: in the document of an HTTP server, and in the header `WWW-Authenticate` of the
    /// response to a request without credentials.
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

/// A challenge for one of the schemes (RFC 9110, section 11.6.1).
pub(crate) fn challenge(schemes: &[SecurityScheme]) -> Unauthorized {
    let mut challenges: Vec<String> = Vec::new();
    for scheme in schemes {
        let challenge = match &scheme.kind {
            kind if takes_tokens(kind) => "Bearer".to_owned(),
            SecurityKind::Basic => "Basic realm=\"operations\"".to_owned(),
            SecurityKind::ApiKey { location, name } => key_challenge(*location, name),
            _ => continue,
        };
        if !challenges.contains(&challenge) {
            challenges.push(challenge);
        }
    }
    if challenges.is_empty() { Unauthorized::bearer() } else { Unauthorized::challenge(&challenges.join(", ")) }
}

/// True for a scheme whose credentials are a token in `Authorization`.
pub(crate) fn takes_tokens(kind: &SecurityKind) -> bool {
    matches!(kind, SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. })
}

/// A challenge for a key. No scheme is registered for keys; this one is in use.
pub(crate) fn key_challenge(location: ParameterLocation, name: &str) -> String {
    let place = match location {
        ParameterLocation::Header => "header",
        ParameterLocation::Cookie => "cookie",
        _ => "query",
    };
    let mut quoted = String::new();
    for c in name.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    format!("ApiKey in=\"{place}\", name=\"{quoted}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let bearer = SecurityScheme::new("b", SecurityKind::Bearer);
        let oidc = SecurityScheme::new("o", SecurityKind::OpenIdConnect { url: "https://a.example".into() });
        let basic = SecurityScheme::new("c", SecurityKind::Basic);
        let mutual = SecurityScheme::new("m", SecurityKind::Other("mutualTLS".into()));
        let table = [
            (vec![], "Bearer"),
            (vec![mutual], "Bearer"),
            (vec![bearer.clone(), oidc], "Bearer"),
            (vec![basic, bearer], "Basic realm=\"operations\", Bearer"),
            (vec![key(ParameterLocation::Header, "X-Key")], "ApiKey in=\"header\", name=\"X-Key\""),
            (vec![key(ParameterLocation::Cookie, "a\"\\\r\nb")], "ApiKey in=\"cookie\", name=\"a\\\"\\\\b\""),
        ];
        for (schemes, expected) in table {
            assert_eq!(challenge(&schemes).challenge, expected, "{schemes:?}");
        }
    }

    fn key(location: ParameterLocation, name: &'static str) -> SecurityScheme {
        SecurityScheme::new("k", SecurityKind::ApiKey { location, name: name.into() })
    }
}
