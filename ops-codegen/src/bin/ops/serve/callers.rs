//! The callers of `ops serve` over HTTP.

use std::sync::Arc;

use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use ops_runtime::access::Identity;
use ops_runtime::binding::SecurityScheme;
use ops_runtime::http::Secret;
use ops_runtime::serve::{Authenticator, BearerTokens, JwtAuthenticator, Unauthorized};

use super::config::{Caller, Config, Jwt};
use crate::failure::Failure;

/// The callers in the configuration. All others are refused, even for operations that need no credentials, because the
/// gateway calls them with its own.
#[derive(Clone)]
pub(super) struct Callers(Arc<dyn Authenticator>);

/// The callers in the configuration, as they are identified by their tokens.
pub(super) fn named(config: &Config) -> Vec<Identity> {
    let identity =
        |(name, caller): (&String, &Caller)| caller.scopes.iter().fold(Identity::new(name), Identity::with_scope);
    config.callers.iter().map(identity).collect()
}

/// Checks the configuration of callers without reading their secrets.
///
/// Servers over stdio check it as well, though they do not use it: `--print-config` has to report its faults.
///
/// # Errors
/// If there are two ways to authenticate, or if the issuer is not one.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    let Some(jwt) = &config.jwt else { return Ok(()) };
    if !config.callers.is_empty() {
        let message = "`[jwt]` and `[callers]` both say who may call: choose one";
        return Err(Failure::Usage(message.to_owned()));
    }
    issuer(jwt).map(drop)
}

fn issuer(jwt: &Jwt) -> Result<JwtAuthenticator, Failure> {
    let issuer = JwtAuthenticator::from_issuer(&jwt.issuer);
    let issuer = issuer.map_err(|error| Failure::Usage(format!("`[jwt]`: {}", error.message())))?;
    Ok(issuer.with_audience(&jwt.audience))
}

impl Callers {
    /// The allowed callers over HTTP; `None` if everyone may call.
    pub(super) fn of(config: &Config) -> Result<Option<Self>, Failure> {
        if let Some(jwt) = &config.jwt {
            return Ok(Some(Self(Arc::new(issuer(jwt)?))));
        }
        let (mut tokens, mut known) = (None, Vec::<(&str, Secret)>::new());
        for ((name, caller), identity) in config.callers.iter().zip(named(config)) {
            let token = config.secret(&format!("callers.{name}.token"), &caller.token)?;
            if let Some((other, _)) = known.iter().find(|(_, other)| other.expose() == token.expose()) {
                let message =
                    format!("`[callers.{other}]` and `[callers.{name}]` have one token, which names one caller");
                return Err(Failure::Usage(format!("{message}: give each its own")));
            }
            tokens = Some(tokens.unwrap_or_else(BearerTokens::new).with_token(token.expose(), identity));
            known.push((name.as_str(), token));
        }
        Ok(tokens.map(|tokens| Self(Arc::new(tokens))))
    }
}

impl Authenticator for Callers {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        let found = self.0.authenticate(request);
        Box::pin(async move { found.await?.map(Some).ok_or(Unauthorized::bearer()) })
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        self.0.schemes()
    }

    fn is_exact(&self) -> bool {
        self.0.is_exact()
    }
}
