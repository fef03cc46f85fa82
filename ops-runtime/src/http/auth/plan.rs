//! Which credentials a request carries, and where: those that the operation asks for, from those that the user set.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderName, HeaderValue, Request};
use percent_encoding::utf8_percent_encode;
use url::Url;

use super::oauth::Tokens;
use super::{Auth, Secret, TokenRequest, sensitive};
use crate::http::settings::Settings;
use crate::http::style::COMPONENT;
use crate::model::binding::is_reserved_header;
use crate::{CallError, HttpBinding, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme};

/// All credentials of a client.
#[derive(Default)]
pub(in crate::http) struct Credentials {
    default: Option<Arc<Source>>,
    named: BTreeMap<String, Arc<Source>>,
}

/// Credentials with the tokens that they were exchanged for.
struct Source {
    auth: Auth,
    tokens: Tokens,
}

impl Source {
    fn new(auth: Auth) -> Result<Arc<Self>, CallError> {
        auth.to_header()?;
        if let Auth::ClientCredentials(credentials) = &auth {
            credentials.check()?;
        }
        Ok(Arc::new(Self { auth, tokens: Tokens::default() }))
    }

    /// True if these credentials, which were not set for a scheme by name, fit it.
    fn fits(&self, kind: &SecurityKind) -> bool {
        let in_authorization = match &self.auth {
            Auth::ApiKey { header, .. } => header.eq_ignore_ascii_case(AUTHORIZATION.as_str()),
            _ => true,
        };
        match (kind, &self.auth) {
            (SecurityKind::Basic, auth) => matches!(auth, Auth::Basic { .. }) || is_key(auth) && in_authorization,
            (SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. }, auth) => {
                is_token(auth) || is_key(auth) && in_authorization
            }
            (SecurityKind::ApiKey { location, name }, auth) => {
                is_key(auth) || *location == ParameterLocation::Header && name.eq_ignore_ascii_case("authorization")
            }
            _ => false,
        }
    }
}

fn is_key(auth: &Auth) -> bool {
    matches!(auth, Auth::ApiKey { .. })
}

fn is_token(auth: &Auth) -> bool {
    matches!(auth, Auth::Bearer(_) | Auth::ClientCredentials(_) | Auth::Token(_))
}

impl Credentials {
    pub(in crate::http) fn new(default: Option<Auth>, named: BTreeMap<String, Auth>) -> Result<Self, CallError> {
        let named = named.into_iter().map(|(name, auth)| Ok((name, Source::new(auth)?)));
        Ok(Self { default: default.map(Source::new).transpose()?, named: named.collect::<Result<_, CallError>>()? })
    }

    /// What a request of this operation carries.
    ///
    /// Uses the first requirement whose schemes all have credentials: those set for the scheme by name, else the
    /// default ones if they fit. Without such a requirement, the default credentials, if any, are sent as they are:
    /// documents are often wrong about what a server takes. If anonymous access is listed first, nothing is sent.
    pub(in crate::http) fn plan(&self, operation: &str, binding: &HttpBinding) -> Result<Plan, CallError> {
        let own = || Plan { steps: self.default.iter().map(Step::own).collect() };
        if binding.security.is_empty() {
            return Ok(own());
        }
        let satisfied = binding.security.iter().find_map(|requirement| self.satisfy(requirement));
        if let Some(steps) = satisfied {
            return Ok(Plan { steps: steps.into_iter().collect::<Result<_, _>>()? });
        }
        if self.default.is_none() {
            tracing::debug!(operation, "no credentials for what the operation asks for: sent without any");
        }
        Ok(own())
    }

    /// The credentials of the request for a document itself, whose security schemes are not known yet.
    #[cfg(feature = "openapi")]
    pub(in crate::http) fn of_documents(&self) -> Plan {
        let usable = |source: &&Arc<Source>| match &source.auth {
            Auth::ClientCredentials(credentials) => credentials.knows_url(),
            _ => true,
        };
        Plan { steps: self.default.iter().filter(usable).map(Step::own).collect() }
    }

    fn satisfy(&self, requirement: &SecurityRequirement) -> Option<Vec<Result<Step, CallError>>> {
        // The engine holds the certificate of mutual TLS, so it is not known here if there is one.
        let by_engine =
            |scheme: &&SecurityScheme| matches!(&scheme.kind, SecurityKind::Other(kind) if kind == "mutualTLS");
        let steps: Option<Vec<_>> = requirement
            .schemes
            .iter()
            .filter(|scheme| !by_engine(scheme))
            .map(|scheme| {
                let named = self.named.get(scheme.name.as_ref());
                let source = named.or_else(|| self.default.as_ref().filter(|source| source.fits(&scheme.kind)))?;
                Some(Step::of(source, scheme))
            })
            .collect();
        steps.filter(|steps| !steps.is_empty() || requirement.schemes.is_empty())
    }
}

/// What a request carries to prove who sends it.
#[derive(Default)]
pub(in crate::http) struct Plan {
    steps: Vec<Step>,
}

struct Step {
    source: Arc<Source>,
    place: Place,
    scheme: Option<String>,
    token_url: Option<String>,
    scopes: Vec<String>,
}

enum Place {
    /// The place that the credentials name themselves.
    Own,
    Header(HeaderName),
    Query(String),
    Cookie(String),
}

impl Step {
    fn own(source: &Arc<Source>) -> Self {
        Self { source: source.clone(), place: Place::Own, scheme: None, token_url: None, scopes: Vec::new() }
    }

    fn of(source: &Arc<Source>, scheme: &SecurityScheme) -> Result<Self, CallError> {
        let mut step = Self::own(source);
        step.scheme = Some(scheme.name.clone().into_owned());
        step.scopes = scheme.scopes.iter().map(str::to_owned).collect();
        match &scheme.kind {
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

    async fn token(&self, settings: &Settings, rejected: Option<&Secret>) -> Result<Option<Secret>, CallError> {
        Ok(Some(match &self.source.auth {
            Auth::Bearer(token) => token.clone(),
            Auth::ClientCredentials(credentials) => {
                let (tokens, url) = (&self.source.tokens, self.token_url.as_deref());
                tokens.get(credentials, settings, url, &self.scopes, rejected).await?
            }
            Auth::Token(source) => {
                let (scheme, scopes) = (self.scheme.clone(), self.scopes.clone());
                source.get(TokenRequest { scheme, scopes, rejected: rejected.is_some() }).await?
            }
            _ => return Ok(None),
        }))
    }
}

/// The header in which a document wants a key; headers that frame the message are refused.
fn header_of(name: &str) -> Result<HeaderName, CallError> {
    let header = HeaderName::from_bytes(name.as_bytes()).ok();
    let header = header.filter(|name| *name == AUTHORIZATION || !is_reserved_header(name.as_str()));
    header.ok_or_else(|| CallError::execution(format!("`{}` is no header for an API key", name.escape_debug())))
}

/// Credentials that are ready to go into a request.
#[derive(Default)]
pub(in crate::http) struct Applied {
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Vec<(String, Secret)>,
    cookies: Vec<(String, Secret)>,
    tokens: Vec<Option<Secret>>,
}

impl Plan {
    /// True if rejected credentials can be replaced by new ones.
    pub(in crate::http) fn is_renewable(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.source.auth, Auth::ClientCredentials(_) | Auth::Token(_)))
    }

    /// Fetches the tokens that are needed; `rejected` are the credentials that the server has just rejected.
    pub(in crate::http) async fn apply(
        &self,
        settings: &Settings,
        rejected: Option<&Applied>,
    ) -> Result<Applied, CallError> {
        let mut applied = Applied::default();
        for (index, step) in self.steps.iter().enumerate() {
            let refused = rejected.and_then(|applied| applied.tokens.get(index)?.as_ref());
            let token = step.token(settings, refused).await?;
            let (name, value) = match (&step.source.auth, &token) {
                (Auth::ApiKey { prefix, key, .. }, _) if !matches!(step.place, Place::Own) => {
                    (AUTHORIZATION, format!("{prefix}{}", key.expose()))
                }
                (_, Some(token)) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
                (auth, None) => match auth.to_header()? {
                    Some((name, value)) => (name, String::from_utf8_lossy(value.as_bytes()).into_owned()),
                    None => continue,
                },
            };
            match &step.place {
                Place::Own => applied.headers.push((name, sensitive(&value)?)),
                Place::Header(name) => applied.headers.push((name.clone(), sensitive(&value)?)),
                Place::Query(name) => applied.query.push((name.clone(), value.into())),
                Place::Cookie(name) => applied.cookies.push((name.clone(), value.into())),
            }
            applied.tokens.push(token);
        }
        Ok(applied)
    }
}

impl Applied {
    /// True if the tokens are those that were refused before.
    pub(in crate::http) fn same_tokens(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }

    /// Puts the credentials into a request; they replace what the operation's own parameters put there.
    pub(in crate::http) fn put<B>(&self, request: &mut Request<B>) -> Result<(), CallError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        if !self.query.is_empty() {
            let mut url = Url::parse(&request.uri().to_string()).map_err(|_| CallError::execution("no URL"))?;
            self.put_query(&mut url);
            let uri = url.as_str().parse();
            *request.uri_mut() = uri.map_err(|_| CallError::execution("the URL cannot be requested"))?;
        }
        if !self.cookies.is_empty() {
            let kept = request.headers().get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
            let kept = kept.flat_map(|value| value.split("; ")).filter(|pair| {
                let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
                !self.cookies.iter().any(|(own, _)| escape_cookie(own, true) == name)
            });
            let mut pairs: Vec<_> = kept.map(str::to_owned).collect();
            pairs.extend(self.cookies.iter().map(|(name, value)| {
                format!("{}={}", escape_cookie(name, true), escape_cookie(value.expose(), false))
            }));
            request.headers_mut().insert(COOKIE, sensitive(&pairs.join("; "))?);
        }
        Ok(())
    }

    /// Puts the keys of the query into a URL, replacing parameters of the same names.
    pub(in crate::http) fn put_query(&self, url: &mut Url) {
        self.take_query(url);
        let escape = |text: &str| utf8_percent_encode(text, COMPONENT).to_string();
        let own = self.query.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value.expose())));
        let kept = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let all: Vec<_> = kept.into_iter().chain(own).collect();
        if !all.is_empty() {
            url.set_query(Some(&all.join("&")));
        }
    }

    /// Removes the keys from a URL's query, before it goes to another origin.
    pub(in crate::http) fn take_query(&self, url: &mut Url) {
        let Some(query) = url.query().filter(|_| !self.query.is_empty()) else { return };
        let is_own = |pair: &str| {
            let name = url::form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.into_owned());
            name.is_some_and(|name| self.query.iter().any(|(own, _)| *own == name))
        };
        let kept: Vec<_> = query.split('&').filter(|pair| !is_own(pair)).collect();
        let kept = (!kept.is_empty()).then(|| kept.join("&"));
        url.set_query(kept.as_deref());
    }
}

/// A cookie's name or value: as it is if a cookie can hold it (RFC 6265, section 4.1.1), else escaped.
fn escape_cookie(text: &str, name: bool) -> String {
    let fits = |b: u8| b.is_ascii_graphic() && !b"\",;\\".contains(&b) && !(name && b"=()<>@:/[]?{}".contains(&b));
    if text.bytes().all(fits) { text.to_owned() } else { utf8_percent_encode(text, COMPONENT).to_string() }
}
