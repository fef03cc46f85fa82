//! The HTTP requests of OAuth: their destinations, timeouts and contents.
//!
//! The server's authorization metadata is not trusted. Only `https`, and `http` on this machine, is requested, and
//! private addresses only if [`Destinations`] allow them. A refresh token is sent only to the token endpoint that
//! issued it, and a client's secret only to the first one that received it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use http::{Method, header};
use reqwest::Client;
use rmcp::transport::auth::{
    AuthorizationMetadata, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use serde::Deserialize;
use url::{Url, form_urlencoded};

use crate::CallError;
use crate::http::{Destinations, Home, Resolver, Secret, builder, is_safe};
use crate::mcp::invalid;
use crate::model::lock::lock;
use crate::model::secrets::{Secrets, names_a_secret};

/// Limit of the bytes of a response.
const MAX_ANSWER: usize = 1024 * 1024;

/// The token endpoint to which tokens and the client's secret belong.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Bound {
    endpoint: Mutex<Option<String>>,
    /// The secrets that authorization servers issued when the program was registered, by client id.
    registered: Mutex<BTreeMap<String, Secret>>,
}

impl Bound {
    /// The token endpoint that issued the tokens, or that knows the client's secret.
    pub(in crate::mcp) fn endpoint(&self) -> Option<String> {
        lock(&self.endpoint).clone()
    }

    pub(in crate::mcp) fn set(&self, endpoint: Option<String>) {
        *lock(&self.endpoint) = endpoint;
    }

    /// The secret of a registered client.
    pub(in crate::mcp) fn secret_of(&self, client: &str) -> Option<Secret> {
        lock(&self.registered).get(client).cloned()
    }

    pub(in crate::mcp) fn register(&self, client: String, secret: Secret) {
        lock(&self.registered).insert(client, secret);
    }
}

/// The part of a registration response that is needed again after a restart.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: String,
}

/// The client of one MCP server's OAuth.
pub(in crate::mcp) struct Steps {
    follow: Client,
    stop: Client,
    destinations: Destinations,
    home: Home,
    timeout: Duration,
    /// True if the program has its own secret, which no server issued.
    has_secret: bool,
    bound: Arc<Bound>,
}

impl Steps {
    pub(in crate::mcp) fn new(
        server: &Url,
        destinations: Destinations,
        timeout: Duration,
        has_secret: bool,
        bound: Arc<Bound>,
    ) -> Result<Self, CallError> {
        let home = Home::of(server);
        let resolver = Arc::new(Resolver::new(destinations.clone(), home.clone()));
        let client = |redirects: reqwest::redirect::Policy| {
            let built = builder().redirect(redirects).timeout(timeout).dns_resolver(resolver.clone()).build();
            built.map_err(|error| {
                CallError::execution(format!("the HTTP client cannot be set up: {}", error.without_url()))
            })
        };
        Ok(Self {
            follow: client(reqwest::redirect::Policy::custom(crate::mcp::follow::follow))?,
            stop: client(reqwest::redirect::Policy::none())?,
            destinations,
            home,
            timeout,
            has_secret,
            bound,
        })
    }

    /// The metadata that an authorization server publishes at the places that belong to its issuer (RFC 8414, section 3;
    /// `OpenID` Connect Discovery, section 4).
    ///
    /// Another server can name the issuer in metadata of its own, with its own token endpoint, but not at these places. The last
    /// is that of servers which ignore their path.
    ///
    /// # Errors
    /// If none of them has metadata of exactly this issuer.
    pub(in crate::mcp) async fn published(&self, issuer: &str) -> Result<AuthorizationMetadata, CallError> {
        let url = Url::parse(issuer).map_err(|error| invalid(format!("the issuer of `with_issuer`: {error}")))?;
        let path = url.path().trim_end_matches('/');
        let mut places = vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        places.dedup();
        if !path.is_empty() {
            places.push("/.well-known/oauth-authorization-server".to_owned());
        }
        let mut trouble = None;
        for place in places {
            let mut at = url.clone();
            at.set_path(&place);
            at.set_query(None);
            let request = http::Request::get(at.as_str()).header(header::ACCEPT, "application/json").body(Vec::new());
            let request = request.map_err(|error| invalid(format!("the issuer of `with_issuer`: {error}")))?;
            let answer = match self.run(request, OAuthHttpRedirectPolicy::Follow).await {
                Ok(answer) if answer.status().is_server_error() => {
                    let message = format!("authorization failed: `{at}` answered {}", answer.status());
                    trouble.get_or_insert(CallError::execution(message));
                    continue;
                }
                Ok(answer) => answer,
                Err(error) => {
                    trouble.get_or_insert(error);
                    continue;
                }
            };
            let metadata = serde_json::from_slice::<AuthorizationMetadata>(answer.body()).ok();
            let own = metadata.filter(|metadata| metadata.issuer.as_deref() == Some(issuer));
            if let Some(metadata) = own.filter(|_| answer.status().is_success()) {
                return Ok(metadata);
            }
        }
        Err(trouble.unwrap_or_else(|| {
            CallError::execution(format!(
                "authorization failed: `{issuer}`, which `with_issuer` names, publishes no metadata of that issuer"
            ))
        }))
    }

    async fn run(
        &self,
        request: http::Request<Vec<u8>>,
        redirects: OAuthHttpRedirectPolicy,
    ) -> Result<http::Response<Vec<u8>>, CallError> {
        let url = Url::parse(&request.uri().to_string()).map_err(|_| refused("it is no URL"))?;
        if !is_safe(&url) {
            return Err(refused("it is neither `https`, nor `http` on this machine"));
        }
        self.destinations.check(&self.home, &url).await?;
        let (grant, secrets) = (grant(&request), secrets(&request));
        let is_post = request.method() == Method::POST;
        let is_grant = is_post && grant.is_some();
        if is_grant {
            self.check(grant.as_deref(), &request, &url)?;
        }
        let client = if redirects == OAuthHttpRedirectPolicy::Stop || is_grant { &self.stop } else { &self.follow };
        let request =
            reqwest::Request::try_from(request).map_err(|error| CallError::from_error(error.without_url()))?;
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                let message = format!("no answer came within {:?}: raise `with_step_timeout`", self.timeout);
                return CallError::new(crate::ErrorCode::Timeout, message);
            }
            CallError::from_error(error.without_url())
        };
        let response = client.execute(request).await.map_err(failed)?;
        let mut answer = http::Response::new(Vec::new());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        let mut body = response.bytes_stream();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(failed)?;
            if chunk.len() > MAX_ANSWER - answer.body().len() {
                return Err(refused(&format!("its answer has more than {MAX_ANSWER} bytes")));
            }
            answer.body_mut().extend_from_slice(&chunk);
        }
        if is_grant && answer.status().is_success() {
            self.bound.set(Some(url.into()));
        }
        // rmcp does not keep the secret of a client that it has registered.
        if is_post
            && !is_grant
            && answer.status().is_success()
            && let Ok(Registered { client_id, client_secret }) = serde_json::from_slice(answer.body())
            && !client_secret.is_empty()
        {
            self.bound.register(client_id, Secret::new(client_secret));
        }
        if !answer.status().is_success() {
            // It becomes the text of an error.
            let body = String::from_utf8_lossy(answer.body()).into_owned();
            *answer.body_mut() = secrets.text(&body).into_owned().into_bytes();
        }
        Ok(answer)
    }

    /// Checks that a request for tokens goes to the endpoint that its contents belong to.
    fn check(&self, grant: Option<&str>, request: &http::Request<Vec<u8>>, url: &Url) -> Result<(), CallError> {
        let bound = self.bound.endpoint();
        let carries_secret = request.headers().contains_key(header::AUTHORIZATION)
            || form_urlencoded::parse(request.body()).any(|(name, _)| name == "client_secret");
        if grant == Some("refresh_token") && bound.as_deref() != Some(url.as_str()) {
            return Err(refused("the refresh token is of another authorization server"));
        }
        match bound {
            Some(bound) if self.has_secret && carries_secret && bound != url.as_str() => Err(refused(
                "the client's secret was given to another authorization server, and the MCP server names this one now: \
                 clear the `TokenStore` if that is right",
            )),
            None if self.has_secret && carries_secret => {
                self.bound.set(Some(url.as_str().to_owned()));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl OAuthHttpClient for Steps {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let OAuthHttpRequest { request, redirect_policy, .. } = request;
        Box::pin(async move {
            let answer = self.run(request, redirect_policy).await;
            answer.map_err(|error| Box::new(error) as OAuthHttpClientError)
        })
    }
}

fn refused(why: &str) -> CallError {
    CallError::execution(format!("the authorization server is not asked: {why}"))
}

/// The type of grant in a request for tokens.
fn grant(request: &http::Request<Vec<u8>>) -> Option<Cow<'_, str>> {
    form_urlencoded::parse(request.body()).find(|(name, _)| name == "grant_type").map(|(_, grant)| grant)
}

/// The secrets in a request for tokens, which no error may repeat.
fn secrets(request: &http::Request<Vec<u8>>) -> Secrets {
    let mut secrets = Secrets::default();
    for (name, value) in form_urlencoded::parse(request.body()) {
        if names_a_secret(&name) || ["code", "code_verifier"].contains(&&*name) || name.contains("assertion") {
            secrets.add(&value);
        }
    }
    if let Some(value) = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        secrets.add_header("authorization", value);
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(url: &str, form: &str) -> (http::Request<Vec<u8>>, Url) {
        let request = http::Request::post(url).body(form.as_bytes().to_vec()).unwrap();
        (request, Url::parse(url).unwrap())
    }

    #[test]
    fn what_one_server_gave_goes_to_no_other() {
        let bound = Arc::new(Bound::default());
        let server = Url::parse("https://mcp.example/mcp").unwrap();
        let steps = Steps::new(&server, Destinations::default(), Duration::from_secs(1), true, bound.clone()).unwrap();
        let check = |url: &str, form: &str| {
            let (request, url) = tokens(url, form);
            steps.check(grant(&request).as_deref(), &request, &url).is_ok()
        };
        let (first, second) = ("https://a.example/token", "https://b.example/token");
        // Its origin is unknown.
        assert!(!check(first, "grant_type=refresh_token&refresh_token=r"));
        assert!(check(first, "grant_type=authorization_code&client_secret=s"));
        assert!(!check(second, "grant_type=authorization_code&client_secret=s"));
        assert!(check(second, "grant_type=authorization_code"));
        assert!(check(first, "grant_type=refresh_token&refresh_token=r&client_secret=s"));
        assert!(!check(second, "grant_type=refresh_token&refresh_token=r"));
    }
}
