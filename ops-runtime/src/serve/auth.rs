//! Ready-made authenticators, their combination, and challenges.

mod api_keys;
mod bearer;
#[cfg(feature = "jwt")]
mod jwt;
mod known;

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::{Authenticator, takes_tokens};
use crate::{BoxFuture, Identity, ParameterLocation, SecurityKind, SecurityScheme};

pub use self::api_keys::ApiKeys;
pub use self::bearer::BearerTokens;
#[cfg(feature = "jwt")]
pub use self::jwt::{JwtAlgorithm, JwtAuthenticator};

/// The challenge for a token without the scopes.
const INSUFFICIENT: &str = "Bearer error=\"insufficient_scope\"";

/// Several authenticators, which are tried in turn: the first that knows the sender counts.
///
/// Credentials that one refuses stay refused, unless a later one reads credentials in the same place and accepts them.
/// So tokens of two kinds can be used together, and a wrong token beside a valid API key is noticed.
pub(super) struct Several(Vec<(Arc<dyn Authenticator>, Vec<Place>)>);

/// The place of credentials in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// In the header `Authorization`, or in a place that only the authenticator knows.
    Authorization,
    /// In a header (in lower case), a parameter of the query or a cookie.
    Key(ParameterLocation, String),
}

impl Several {
    /// The authenticators as one; `None` without any.
    pub(super) fn of(mut all: Vec<Arc<dyn Authenticator>>) -> Option<Arc<dyn Authenticator>> {
        if all.len() > 1 {
            let placed = |one: Arc<dyn Authenticator>| {
                let places = one.schemes().iter().map(place).collect();
                (one, places)
            };
            return Some(Arc::new(Self(all.into_iter().map(placed).collect())));
        }
        all.pop()
    }
}

fn place(scheme: &SecurityScheme) -> Place {
    match &scheme.kind {
        SecurityKind::ApiKey { location: ParameterLocation::Header, name } => {
            Place::Key(ParameterLocation::Header, name.to_ascii_lowercase())
        }
        SecurityKind::ApiKey { location, name } => Place::Key(*location, name.clone().into_owned()),
        _ => Place::Authorization,
    }
}

impl Authenticator for Several {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        let all: Vec<_> = self.0.iter().map(|(one, places)| (one.authenticate(request), places.clone())).collect();
        Box::pin(async move {
            let mut refused: Option<(Unauthorized, Vec<Place>)> = None;
            for (found, places) in all {
                let reads_the_same = |(_, of): &(_, Vec<Place>)| places.iter().any(|place| of.contains(place));
                if !refused.as_ref().is_none_or(reads_the_same) {
                    continue;
                }
                match found.await {
                    Ok(None) => {}
                    Ok(identity) => return Ok(identity),
                    Err(error) => {
                        refused.get_or_insert((error, places));
                    }
                }
            }
            refused.map_or(Ok(None), |(error, _)| Err(error))
        })
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        let mut schemes: Vec<SecurityScheme> = Vec::new();
        for scheme in self.0.iter().flat_map(|(one, _)| one.schemes()) {
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
        schemes
    }

    fn is_exact(&self) -> bool {
        self.0.iter().all(|(one, _)| one.is_exact())
    }
}

/// The challenge for a token that does not have these scopes (RFC 6750, section 3.1). `None` if the request has no token,
/// or no scheme takes tokens.
pub(super) fn insufficient(schemes: &[SecurityScheme], headers: &HeaderMap, scopes: &[&str]) -> Option<HeaderValue> {
    let is_token = |value: &HeaderValue| {
        value
            .as_bytes()
            .split(u8::is_ascii_whitespace)
            .next()
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    };
    let takes =
        headers.get(AUTHORIZATION).is_some_and(is_token) && schemes.iter().any(|scheme| takes_tokens(&scheme.kind));
    // The characters of a scope (RFC 6749, section 3.3).
    let is_scope = |scope: &&str| {
        !scope.is_empty() && scope.chars().all(|c| matches!(c, '\x21' | '\x23'..='\x5b' | '\x5d'..='\x7e'))
    };
    let text = match !scopes.is_empty() && scopes.iter().all(is_scope) {
        true => format!("{INSUFFICIENT}, scope=\"{}\"", scopes.join(" ")),
        false => INSUFFICIENT.to_owned(),
    };
    takes.then(|| HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(INSUFFICIENT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(location: ParameterLocation, name: &'static str) -> SecurityScheme {
        SecurityScheme::new("k", SecurityKind::ApiKey { location, name: name.into() })
    }

    #[test]
    fn only_tokens_can_have_more_scopes() {
        let oidc = SecurityScheme::new("o", SecurityKind::OpenIdConnect { url: "https://a.example".into() });
        let bearer = SecurityScheme::new("b", SecurityKind::Bearer);
        let basic = SecurityScheme::new("c", SecurityKind::Basic);
        let key = scheme(ParameterLocation::Header, "X-Key");
        let table = [
            (vec![bearer.clone()], Some("Bearer t"), true),
            (vec![oidc], Some("bEARER  t"), true),
            (vec![key.clone(), bearer.clone()], Some("Bearer t"), true),
            // The caller has shown something else.
            (vec![key.clone(), bearer.clone()], None, false),
            (vec![basic.clone(), bearer], Some("Basic dDp0"), false),
            (vec![basic], Some("Bearer t"), false),
            (vec![key], Some("Bearer t"), false),
            (vec![], Some("Bearer t"), false),
        ];
        for (schemes, credentials, expected) in table {
            let value = credentials.map(|credentials| (AUTHORIZATION, HeaderValue::from_static(credentials)));
            let found = insufficient(&schemes, &HeaderMap::from_iter(value), &[]).is_some();
            assert_eq!(found, expected, "{schemes:?} {credentials:?}");
        }
    }

    #[test]
    fn the_scopes_of_a_challenge() {
        let bearer = [SecurityScheme::new("b", SecurityKind::Bearer)];
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer t"))]);
        for (scopes, expected) in [
            (&[][..], INSUFFICIENT),
            (&["a:read"], "Bearer error=\"insufficient_scope\", scope=\"a:read\""),
            (&["a", "b/c"], "Bearer error=\"insufficient_scope\", scope=\"a b/c\""),
            // A header cannot say them.
            (&["a\"b"], INSUFFICIENT),
            (&["a b"], INSUFFICIENT),
            (&["ä"], INSUFFICIENT),
        ] {
            assert_eq!(insufficient(&bearer, &headers, scopes).unwrap(), expected, "{scopes:?}");
        }
    }

    #[test]
    fn places_of_headers_have_no_case() {
        let places = ["X-Key", "x-key"].map(|name| place(&scheme(ParameterLocation::Header, name)));
        assert_eq!(places[0], places[1]);
        assert_ne!(place(&scheme(ParameterLocation::Query, "x-key")), places[0]);
    }
}
