//! The sender of a request, and the operations that it may call.

use std::future::Future;

use http::request::Parts;

use crate::model::unauthorized::Unauthorized;
use crate::{AccessControl, BoxFuture, Identity, OperationSpec, SecurityKind, SecurityScheme};

/// Determines the sender of a request.
///
/// A closure from the request's head to a future is an authenticator. The future returns an [`Identity`], or an
/// `Option` of one: `None` for a request without credentials, which may call only operations without requirements.
///
/// ```
/// # use ops_runtime::Registry;
/// # use ops_runtime::access::Identity;
/// # use ops_runtime::serve::{HttpServer, Unauthorized};
/// let server = HttpServer::new(Registry::new()).with_authenticator(|request: &http::request::Parts| {
///     let token = request.headers.get("authorization").cloned();
///     async move {
///         match token.as_ref().map(|token| token.to_str().unwrap_or_default()) {
///             None => Ok(None),
///             Some("Bearer 7") => Ok(Some(Identity::new("ann").with_scope("pets:read"))),
///             Some(_) => Err(Unauthorized::bearer()),
///         }
///     }
/// });
/// # let _ = server;
/// ```
///
#[cfg_attr(
    feature = "mcp-server",
    doc = r#"
Those that are ready to use serve an MCP server over HTTP as well:

```
# use ops_runtime::Registry;
# use ops_runtime::access::Identity;
use ops_runtime::mcp::McpServer;
use ops_runtime::serve::{Authenticator, BearerTokens, Unauthorized};

let tokens = BearerTokens::new().with_token("s3cret", Identity::new("ann"));
let service = McpServer::new(Registry::new()).into_service().with_authenticator(move |request| {
    let found = tokens.authenticate(request);
    async move { found.await?.ok_or(Unauthorized::bearer()) }
});
# let _ = service;
```
"#
)]
pub trait Authenticator: Send + Sync + 'static {
    /// The sender of a request with this head; `None` if it has no credentials.
    ///
    /// # Errors
    /// The refusal of invalid credentials: the request gets the status 401, whatever it asks for.
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>>;

    /// The alternatives by which requests may authenticate; a bearer token by default.
    ///
    /// They tell callers what to send: in the document of the server, and in the header `WWW-Authenticate` of the
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

/// What a caller lacks for an operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// An identity.
    Identity,
    /// Scopes, or rights to a resource.
    Rights,
}

/// Checks that a caller may run an operation, by its access rules and by the security of its binding.
///
/// A security scheme is satisfied by an identity that has its scopes; the authenticator checks by which credentials it
/// was obtained.
pub(super) fn check(spec: &OperationSpec, identity: Option<&Identity>) -> Result<(), Lack> {
    let ways = spec.http().map_or(&[][..], |binding| &binding.security);
    let is_anonymous = ways.is_empty() || ways.iter().any(|way| way.schemes.is_empty());
    let Some(identity) = identity else {
        return if is_anonymous && spec.access.is_open() { Ok(()) } else { Err(Lack::Identity) };
    };
    let holds = |scope: &str| identity.scopes.iter().any(|own| own == scope);
    let is_met = ways.iter().any(|way| way.schemes.iter().all(|scheme| scheme.scopes.iter().all(holds)));
    if (is_anonymous || is_met) && spec.access.allows(identity) { Ok(()) } else { Err(Lack::Rights) }
}

/// What an operation requires of its callers.
#[derive(Default)]
pub(super) struct Needs<'a> {
    /// The scopes of which it requires all.
    pub(super) all: Vec<&'a str>,
    /// The scopes of which it requires one.
    pub(super) any: Vec<&'a str>,
    /// The right to an action on a kind of resource.
    pub(super) right: Option<(&'a str, &'a str)>,
}

impl<'a> Needs<'a> {
    pub(super) fn of(spec: &'a OperationSpec) -> Self {
        let (all, any) = scopes(spec);
        let access = &spec.access;
        Self { all, any, right: access.resource_action.as_deref().zip(access.resource_type.as_deref()) }
    }

    /// The scopes that a caller has to ask for; empty if no list of scopes would help for certain.
    pub(super) fn missing_scopes(&self, identity: Option<&Identity>) -> &[&'a str] {
        let holds = |scope: &&str| identity.is_some_and(|identity| identity.scopes.iter().any(|own| own == *scope));
        if self.any.is_empty() && !self.all.iter().all(holds) { &self.all } else { &[] }
    }
}

/// The scopes of which an operation requires all, and those of which it requires one.
fn scopes(spec: &OperationSpec) -> (Vec<&str>, Vec<&str>) {
    let mut all: Vec<&str> = spec.access.required_scopes.iter().collect();
    // Of several ways to authenticate, each may require others.
    if let [way] = spec.http().map_or(&[][..], |binding| &binding.security) {
        for scope in way.schemes.iter().flat_map(|scheme| scheme.scopes.iter()) {
            if !all.contains(&scope) {
                all.push(scope);
            }
        }
    }
    (all, spec.access.required_scopes_any.iter().collect())
}

/// Checks only the access rules.
pub(super) fn allows(access: &AccessControl, identity: Option<&Identity>) -> Result<(), Lack> {
    match identity {
        None if access.is_open() => Ok(()),
        None => Err(Lack::Identity),
        Some(identity) if access.allows(identity) => Ok(()),
        Some(_) => Err(Lack::Rights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpBinding, SecurityRequirement};

    #[test]
    fn ways_and_rules() {
        const READ: SecurityScheme = SecurityScheme::new("a", SecurityKind::Bearer).with_scopes(&["read"]);
        const WRITE: SecurityScheme = SecurityScheme::new("b", SecurityKind::Bearer).with_scopes(&["write"]);
        const ANY: SecurityScheme = SecurityScheme::new("k", SecurityKind::Basic);
        let spec = |ways: &'static [SecurityRequirement], access: AccessControl| {
            let mut spec = OperationSpec::query("t.t").with_http(HttpBinding::new("GET", "/").with_security(ways));
            spec.access = access;
            spec
        };
        let own = AccessControl::NONE.with_scopes(&["own"]);
        let table = [
            (spec(&[], AccessControl::NONE), vec![], None, Ok(())),
            (spec(&[], own.clone()), vec![], None, Err(Lack::Identity)),
            (spec(&[], own.clone()), vec![], Some(()), Err(Lack::Rights)),
            (spec(&[], own.clone()), vec!["own"], Some(()), Ok(())),
            (
                spec(const { &[SecurityRequirement::new(const { &[ANY] })] }, AccessControl::NONE),
                vec![],
                None,
                Err(Lack::Identity),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[ANY] })] }, AccessControl::NONE),
                vec![],
                Some(()),
                Ok(()),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[READ, WRITE] })] }, AccessControl::NONE),
                vec!["read"],
                Some(()),
                Err(Lack::Rights),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[WRITE] })] },
                    AccessControl::NONE,
                ),
                vec!["write"],
                Some(()),
                Ok(()),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[] })] },
                    AccessControl::NONE,
                ),
                vec![],
                None,
                Ok(()),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[] })] },
                    AccessControl::NONE,
                ),
                vec![],
                Some(()),
                Ok(()),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[READ] })] }, own),
                vec!["read"],
                Some(()),
                Err(Lack::Rights),
            ),
        ];
        for (at, (spec, scopes, identity, expected)) in table.into_iter().enumerate() {
            let identity =
                identity.map(|()| scopes.iter().fold(Identity::new("ann"), |own, scope| own.with_scope(*scope)));
            assert_eq!(check(&spec, identity.as_ref()), expected, "row {at}");
        }
    }
}
