//! Which credentials a request carries, and where: those that the operation requires, if the user has set them.

mod applied;
mod lacking;
mod misspelt;
mod relative;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};
use url::Url;

use super::exchange::Exchanged;
use super::oauth::Tokens;
use super::source::Rejected;
use super::{Auth, Environment, Secret, TokenRequest};
use crate::access::CallerToken;
use crate::http::address::same_origin;
use crate::http::settings::Settings;
use crate::http::{invalid, pointer};
use crate::model::binding::is_reserved_header;
use crate::model::lock::lock;
use crate::model::nearest::either;
use crate::model::secrets::Secrets;
use crate::{CallError, ErrorCode, HttpBinding, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme};

pub(in crate::http) use applied::Applied;

/// All credentials of a client.
#[derive(Default)]
pub(in crate::http) struct Credentials {
    default: Option<Arc<Source>>,
    named: BTreeMap<String, Named>,
    environment: Environment,
    /// The credentials of the environment that were used already, by variable.
    found: Mutex<BTreeMap<String, Arc<Source>>>,
    /// True if it was logged that the default credentials are not sent to an operation.
    is_told: AtomicBool,
}

/// How many of the schemes of a requirement have credentials that are not from the environment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    All,
    Some,
    None,
}

/// Credentials for a security scheme.
struct Named {
    source: Arc<Source>,
    /// True if a known operation of the client names the scheme.
    is_known: AtomicBool,
    /// True if it was logged that they may be meant for a scheme for which others are sent.
    is_told: AtomicBool,
}

/// Credentials with the tokens that they were exchanged for.
struct Source {
    auth: Auth,
    tokens: Tokens,
    exchanged: Exchanged,
    rejected: Rejected,
}

/// How many names a message suggests.
const PROPOSED: usize = 3;

impl Source {
    fn new(auth: Auth) -> Result<Arc<Self>, CallError> {
        auth.to_header()?;
        match &auth {
            Auth::ClientCredentials(credentials) => credentials.check()?,
            Auth::Exchange(exchange) => exchange.check()?,
            _ => {}
        }
        let (tokens, exchanged, rejected) = (Tokens::default(), Exchanged::default(), Rejected::default());
        Ok(Arc::new(Self { auth, tokens, exchanged, rejected }))
    }

    /// True if these credentials, which were not set for a scheme by name, fit it.
    fn fits(&self, kind: &SecurityKind) -> bool {
        let in_authorization = match &self.auth {
            Auth::ApiKey { header, .. } => header.eq_ignore_ascii_case(AUTHORIZATION.as_str()),
            _ => true,
        };
        match (kind, &self.auth) {
            (SecurityKind::Other(_), _) => false,
            (_, Auth::Secret(_)) => true,
            (SecurityKind::Basic, auth) => matches!(auth, Auth::Basic { .. }) || is_key(auth) && in_authorization,
            (SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. }, auth) => {
                is_token(auth) || is_key(auth) && in_authorization
            }
            (SecurityKind::ApiKey { location, name }, auth) => {
                is_key(auth) || *location == ParameterLocation::Header && name.eq_ignore_ascii_case("authorization")
            }
        }
    }
}

fn is_key(auth: &Auth) -> bool {
    matches!(auth, Auth::ApiKey { .. })
}

fn is_token(auth: &Auth) -> bool {
    matches!(auth, Auth::Bearer(_) | Auth::ClientCredentials(_) | Auth::Token(_)) || auth.is_of_caller()
}

impl Credentials {
    pub(in crate::http) fn new(
        default: Option<Auth>,
        named: BTreeMap<String, Auth>,
        environment: Environment,
    ) -> Result<Self, CallError> {
        let named = named.into_iter().map(|(name, auth)| {
            let named =
                Named { source: Source::new(auth)?, is_known: AtomicBool::new(false), is_told: AtomicBool::new(false) };
            Ok((name, named))
        });
        let (default, named) = (default.map(Source::new).transpose()?, named.collect::<Result<_, CallError>>()?);
        Ok(Self { default, named, environment, found: Mutex::default(), is_told: AtomicBool::new(false) })
    }

    /// The credentials of a request of this operation.
    ///
    /// Uses the first requirement whose schemes all have credentials: those set for the scheme by name, else the
    /// default ones if they fit, else those of the environment. A requirement that needs fewer of the latter comes
    /// first. Without such a requirement, nothing is sent if the operation can also be called anonymously. Otherwise the
    /// default credentials, if any, are sent unchanged, since documents are often wrong about what a server accepts.
    ///
    /// # Errors
    /// If nothing would be sent, but there are credentials for an unknown scheme whose name is similar to that of a
    /// scheme of this operation: it is probably misspelt.
    pub(in crate::http) fn plan(&self, operation: &str, binding: &HttpBinding) -> Result<Plan, CallError> {
        let own = || Plan::of(self.default.iter().map(Step::own).collect());
        if binding.security.is_empty() {
            return Ok(own());
        }
        let names: Vec<&str> = self.schemes(binding).collect();
        // The order of the requirements has no meaning: anonymous access, which is always possible, comes last.
        let (open, asking): (Vec<_>, Vec<_>) = binding.security.iter().partition(|way| way.schemes.is_empty());
        let ways = asking.into_iter().filter_map(|way| Some((way, self.share(way), self.satisfy(way)?)));
        let satisfied = ways.min_by_key(|(_, share, _)| *share).map(|(way, share, steps)| {
            self.tell_misspelt(operation, way.schemes.iter().map(|scheme| scheme.name.as_ref()));
            if share == Share::None && self.default.is_some() && !self.is_told.swap(true, Ordering::Relaxed) {
                let asked: Vec<&str> = way.schemes.iter().map(|scheme| scheme.name.as_ref()).collect();
                let asked = either(&asked);
                tracing::warn!(
                    operation,
                    "the credentials for all operations are not sent to this one: it asks for {asked}, which the environment has"
                );
            }
            steps
        });
        if !open.is_empty() {
            // Unusable credentials do not prevent an anonymous call.
            let steps = satisfied.and_then(|steps| steps.into_iter().collect::<Result<_, _>>().ok());
            return Ok(Plan { is_optional: true, ..Plan::of(steps.unwrap_or_default()) });
        }
        if let Some(steps) = satisfied {
            return Ok(Plan::of(steps.into_iter().collect::<Result<_, _>>()?));
        }
        self.tell_misspelt(operation, names.iter().copied());
        if self.default.is_none() {
            if let Some((unknown, meant)) = self.misspelt(names.iter().copied()) {
                let message = format!(
                    "there are credentials for `{}`, which no operation names, and none for what `{operation}` asks \
                     for: did you mean {meant}?",
                    unknown.escape_debug(),
                );
                return Err(invalid(&format!("/credentials{}", pointer(unknown)), message));
            }
            let (asked, unknown) = (either(&names), self.unknown().next());
            let variable = names.first().and_then(|name| self.environment.variable_of(name));
            if let Some(unknown) = unknown {
                tracing::warn!(
                    operation,
                    "no credentials for what it asks for, {asked}: no operation names `{unknown}`, which has some"
                );
            } else {
                tracing::debug!(operation, variable, "no credentials for what it asks for: {asked}");
            }
            return Ok(Plan { lacks: Some(asked), ..Plan::default() });
        }
        Ok(own())
    }

    /// The credentials of the request for a document itself, whose security schemes are not known yet.
    #[cfg(any(feature = "jwt", feature = "openapi"))]
    pub(in crate::http) fn of_documents(&self) -> Plan {
        let usable = |source: &&Arc<Source>| match &source.auth {
            Auth::ClientCredentials(credentials) => credentials.knows_url(),
            // A document is not requested on behalf of a caller.
            auth => !auth.is_of_caller(),
        };
        Plan::of(self.default.iter().filter(usable).map(Step::own).collect())
    }

    /// The credentials for all schemes of a requirement: those that are set, else those of the environment.
    fn satisfy(&self, requirement: &SecurityRequirement) -> Option<Vec<Result<Step, CallError>>> {
        let may_read = self.may_read(requirement);
        let steps: Option<Vec<_>> = requirement
            .schemes
            .iter()
            .filter(|scheme| !is_by_engine(scheme))
            .map(|scheme| match self.set_for(scheme) {
                Some(source) => Some(Step::of(source, scheme)),
                None if !may_read => None,
                None => Some(self.of_environment(scheme)?.and_then(|source| Step::of(&source, scheme))),
            })
            .collect();
        steps.filter(|steps| !steps.is_empty() || requirement.schemes.is_empty())
    }

    /// The credentials that were set for a scheme: those set by its name, else the default ones if they fit.
    fn set_for(&self, scheme: &SecurityScheme) -> Option<&Arc<Source>> {
        let named = self.named.get(scheme.name.as_ref()).map(|named| &named.source);
        named.or_else(|| self.default.as_ref().filter(|source| source.fits(&scheme.kind)))
    }

    /// How many of the schemes of a requirement have credentials that were set.
    fn share(&self, requirement: &SecurityRequirement) -> Share {
        let mut schemes = requirement.schemes.iter().filter(|scheme| !is_by_engine(scheme));
        let is_set = |scheme: &SecurityScheme| self.set_for(scheme).is_some();
        match (schemes.clone().all(is_set), schemes.any(is_set)) {
            (true, _) => Share::All,
            (false, true) => Share::Some,
            (false, false) => Share::None,
        }
    }

    /// True if credentials of the environment may be sent for a requirement: not in place of the token of the caller, since
    /// the call would be one of this program, with other rights. Beside that token, they may be those of the application.
    fn may_read(&self, requirement: &SecurityRequirement) -> bool {
        let is_of_caller = |source: &Arc<Source>| source.auth.is_of_caller();
        self.default.as_ref().is_none_or(|source| !is_of_caller(source))
            || requirement.schemes.iter().any(|scheme| self.set_for(scheme).is_some_and(is_of_caller))
    }

    /// The credentials in the environment for a scheme, with the tokens that they were exchanged for.
    fn of_environment(&self, scheme: &SecurityScheme) -> Option<Result<Arc<Source>, CallError>> {
        let (variable, auth) = self.environment.auth(scheme)?;
        let mut found = lock(&self.found);
        if let Some(source) = found.get(&variable).filter(|source| source.auth == auth) {
            return Some(Ok(source.clone()));
        }
        Some(match Source::new(auth) {
            Ok(source) => {
                found.insert(variable, source.clone());
                Ok(source)
            }
            Err(error) => {
                let message = format!("the environment variable `{variable}` cannot be used: {}", error.message());
                // The input is not the cause.
                Err(CallError::execution(message))
            }
        })
    }
}

/// True for mutual TLS: the engine has its certificate, so it is unknown here if there is one.
fn is_by_engine(scheme: &SecurityScheme) -> bool {
    matches!(&scheme.kind, SecurityKind::Other(kind) if kind == "mutualTLS")
}

/// The credentials of a request.
#[derive(Default)]
pub(in crate::http) struct Plan {
    steps: Vec<Step>,
    /// The token of the call's caller, if a step needs it.
    caller: Option<CallerToken>,
    /// True if the operation can be called without credentials, too.
    is_optional: bool,
    /// The schemes that the operation asks for, if the client has no credentials for them.
    lacks: Option<String>,
}

struct Step {
    source: Arc<Source>,
    place: Place,
    is_basic: bool,
    scheme: Option<String>,
    token_url: Option<String>,
    scopes: Vec<String>,
}

enum Place {
    /// The place that the credentials themselves name.
    Own,
    Header(HeaderName),
    Query(String),
    Cookie(String),
}

impl Step {
    fn own(source: &Arc<Source>) -> Self {
        let source = source.clone();
        Self { source, place: Place::Own, is_basic: false, scheme: None, token_url: None, scopes: Vec::new() }
    }

    fn of(source: &Arc<Source>, scheme: &SecurityScheme) -> Result<Self, CallError> {
        let mut step = Self::own(source);
        step.scheme = Some(scheme.name.clone().into_owned());
        step.scopes = scheme.scopes.iter().map(str::to_owned).collect();
        match &scheme.kind {
            SecurityKind::Basic => step.is_basic = true,
            SecurityKind::OAuth2 { token_url } => step.token_url = token_url.clone().map(Into::into),
            SecurityKind::ApiKey { location, name } => {
                let name = name.clone().into_owned();
                step.place = match location {
                    ParameterLocation::Query => Place::Query(name),
                    ParameterLocation::Cookie => Place::Cookie(name),
                    _ => Place::Header(header_of(&name)?),
                };
            }
            _ => {}
        }
        Ok(step)
    }

    /// True if the place is that of a key alone. In `Authorization`, tokens of all kinds stand behind a word.
    fn is_of_key(&self) -> bool {
        !matches!(&self.place, Place::Own) && !matches!(&self.place, Place::Header(name) if *name == AUTHORIZATION)
    }

    /// The header that carries the credentials. `None` if they are in the query or in a cookie of their own.
    fn header(&self) -> Option<HeaderName> {
        match (&self.place, &self.source.auth) {
            (Place::Own, Auth::ApiKey { header, .. }) => HeaderName::from_bytes(header.as_bytes()).ok(),
            (Place::Own, _) => Some(AUTHORIZATION),
            (Place::Header(name), _) => Some(name.clone()),
            (Place::Query(_) | Place::Cookie(_), _) => None,
        }
    }

    /// The credentials in the form of the scheme.
    fn in_form<'a>(&self, auth: &'a Auth) -> Cow<'a, Auth> {
        match auth {
            Auth::Secret(text) if self.is_basic => Cow::Owned(Auth::basic_of(text)),
            other => Cow::Borrowed(other),
        }
    }

    async fn token(
        &self,
        settings: &Settings,
        caller: Option<&CallerToken>,
        rejected: Option<&Secret>,
    ) -> Result<Option<Secret>, CallError> {
        Ok(Some(match &self.source.auth {
            Auth::PassOn => Secret::from(caller.ok_or_else(no_token)?.expose()),
            Auth::Exchange(exchange) => {
                let (exchanged, subject) = (&self.source.exchanged, caller.ok_or_else(no_token)?);
                exchanged.get(exchange, subject, settings, &self.scopes, rejected).await?
            }
            Auth::Bearer(token) => token.clone(),
            Auth::ClientCredentials(credentials) => {
                let (tokens, url) = (&self.source.tokens, self.token_url.as_deref());
                tokens.get(credentials, settings, url, &self.scopes, rejected).await?
            }
            Auth::Token(source) => source.get(self.request(), rejected, &self.source.rejected).await?,
            _ => return Ok(None),
        }))
    }

    /// Gives up the token that the server rejected.
    fn forget(&self, settings: &Settings, caller: Option<&CallerToken>, rejected: &Secret) {
        match (&self.source.auth, caller) {
            (Auth::Exchange(exchange), Some(subject)) => {
                self.source.exchanged.forget(exchange, subject, &self.scopes, rejected);
            }
            (Auth::ClientCredentials(credentials), _) => {
                let (tokens, url) = (&self.source.tokens, self.token_url.as_deref());
                tokens.forget(credentials, settings, url, &self.scopes, rejected);
            }
            (Auth::Token(_), _) => self.source.rejected.note(&self.request(), rejected),
            _ => {}
        }
    }

    /// The request to the program's function.
    fn request(&self) -> TokenRequest {
        TokenRequest { scheme: self.scheme.clone(), scopes: self.scopes.clone(), ..TokenRequest::default() }
    }
}

/// The error of a call that needs its caller's token, and has none.
fn no_token() -> CallError {
    let message = "the service is called with the token of the caller, who has none: authenticate with a bearer token";
    CallError::new(ErrorCode::AccessDenied, message)
}

/// The header for a key in a document; headers that frame the message are refused.
fn header_of(name: &str) -> Result<HeaderName, CallError> {
    let header = HeaderName::from_bytes(name.as_bytes()).ok();
    let header = header.filter(|name| *name == AUTHORIZATION || !is_reserved_header(name.as_str()));
    header.ok_or_else(|| CallError::execution(format!("`{}` is no header for an API key", name.escape_debug())))
}

impl Plan {
    fn of(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// The plan of a call to that URL by a caller with this token.
    ///
    /// # Errors
    /// If a token of the caller is needed: an `ACCESS_DENIED` if there is none, an `EXECUTION_ERROR` if the URL is not on
    /// the origin of the base URL. A document must not decide where the tokens of callers go.
    pub(in crate::http) fn for_caller(
        mut self,
        token: Option<&CallerToken>,
        url: &Uri,
        settings: &Settings,
    ) -> Result<Self, CallError> {
        if !self.steps.iter().any(|step| step.source.auth.is_of_caller()) {
            return Ok(self);
        }
        let url = Url::parse(&url.to_string()).ok();
        let is_home = url.zip(settings.base_url.as_ref()).is_some_and(|(url, base)| same_origin(&url, base));
        if self.is_optional && (token.is_none() || !is_home) {
            return Ok(Self::default());
        }
        if !is_home {
            let message = "the token of a caller is sent to the client's base URL only: set it with \
                           `HttpConfig::with_base_url`";
            return Err(CallError::execution(message));
        }
        self.caller = Some(token.ok_or_else(no_token)?.clone());
        Ok(self)
    }

    /// The plan of a call with an `Authorization` header of its own: no token is fetched unnecessarily.
    pub(in crate::http) fn without_authorization(mut self) -> Self {
        self.steps.retain(|step| step.header().is_none_or(|name| name != AUTHORIZATION));
        self
    }

    /// True if rejected credentials can be replaced by new ones.
    pub(in crate::http) fn is_renewable(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step.source.auth, Auth::ClientCredentials(_) | Auth::Token(_) | Auth::Exchange(_)))
    }

    /// Adds the credentials, including those for fetching tokens.
    pub(in crate::http) fn collect(&self, secrets: &mut Secrets) {
        self.caller.iter().for_each(|token| secrets.add(token.expose()));
        self.steps.iter().for_each(|step| step.source.auth.collect(secrets));
    }

    /// Gives up the tokens that the server has rejected.
    pub(in crate::http) fn forget(&self, settings: &Settings, rejected: &Applied) {
        for (step, token) in self.steps.iter().zip(&rejected.tokens) {
            if let Some(token) = token {
                step.forget(settings, self.caller.as_ref(), token);
            }
        }
    }

    /// Fetches the required tokens; `rejected` are the credentials that the server has just rejected.
    pub(in crate::http) async fn apply(
        &self,
        settings: &Settings,
        rejected: Option<&Applied>,
    ) -> Result<Applied, CallError> {
        let mut applied = Applied::default();
        for (index, step) in self.steps.iter().enumerate() {
            let refused = rejected.and_then(|applied| applied.tokens.get(index)?.as_ref());
            let token = step.token(settings, self.caller.as_ref(), refused).await?;
            let (name, value) = match (&step.source.auth, &token) {
                (Auth::ApiKey { prefix, key, .. }, _) if !matches!(step.place, Place::Own) => {
                    (AUTHORIZATION, format!("{prefix}{}", key.expose()))
                }
                (Auth::Secret(key), _) if !matches!(step.place, Place::Own) => (AUTHORIZATION, key.expose().to_owned()),
                // A scheme for keys says where the token stands, and no word before it.
                (_, Some(token)) if step.is_of_key() => (AUTHORIZATION, token.expose().to_owned()),
                (_, Some(token)) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
                (auth, None) => match step.in_form(auth).to_header()? {
                    Some((name, value)) => (name, String::from_utf8_lossy(value.as_bytes()).into_owned()),
                    None => continue,
                },
            };
            match &step.place {
                Place::Own => applied.add_header(name, &value)?,
                Place::Header(name) => applied.add_header(name.clone(), &value)?,
                Place::Query(name) => applied.query.push((name.clone(), value.into())),
                Place::Cookie(name) => applied.add_cookie(name, &value),
            }
            applied.tokens.push(token);
        }
        Ok(applied)
    }
}
