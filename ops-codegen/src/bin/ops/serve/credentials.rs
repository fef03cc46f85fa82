//! Credentials with any value: a mock server refuses requests without those that a document requires, whatever their
//! value. If the document does not describe how a credential is sent, the mock does not ask for it.

use std::collections::BTreeMap;
use std::future::ready;

use http::request::Parts;
use ops_runtime::access::Identity;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::binding::{Binding, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme};
use ops_runtime::serve::{Authenticator, Unauthorized};
use ops_runtime::spec::OperationSpec;

/// The schemes of documents, by the scopes that stand for them.
pub(super) struct Credentials(BTreeMap<String, SecurityKind>);

impl Credentials {
    pub(super) fn of<'s>(operations: impl IntoIterator<Item = &'s OperationSpec>) -> Self {
        let requirements = operations.into_iter().filter_map(OperationSpec::http).flat_map(|http| http.security.iter());
        let schemes = requirements.flat_map(|requirement| requirement.schemes.iter()).filter(is_described);
        let mut all = Self(BTreeMap::new());
        for scheme in schemes {
            let scope = all.scope_of(scheme);
            all.0.entry(scope).or_insert_with(|| scheme.kind.clone());
        }
        all
    }

    /// The scope that stands for a scheme: its name, and a number if a scheme of another kind has that name in another
    /// document.
    fn scope_of(&self, scheme: &SecurityScheme) -> String {
        let (mut scope, mut number) = (scheme.name.to_string(), 2);
        while self.0.get(&scope).is_some_and(|kind| *kind != scheme.kind) {
            scope = format!("{}_{number}", scheme.name);
            number += 1;
        }
        scope
    }

    /// The operation, which requires the scopes of its schemes. A request has the scopes of the schemes whose credentials it has.
    pub(super) fn asked_for(&self, spec: &OperationSpec) -> OperationSpec {
        let mut spec = spec.clone();
        if let Binding::Http(http) = &mut spec.binding {
            let named = |scheme: &SecurityScheme| {
                let mut scheme = scheme.clone();
                scheme.scopes = [self.scope_of(&scheme)].into_iter().collect();
                scheme
            };
            let requirements = http.security.iter().map(|requirement| {
                let mut requirement: SecurityRequirement = requirement.clone();
                requirement.schemes = requirement.schemes.iter().filter(is_described).map(named).collect();
                requirement
            });
            http.security = requirements.collect();
        }
        spec
    }

    fn brought(&self, request: &Parts) -> Option<Identity> {
        let names = self.0.iter().filter(|(_, kind)| brings(request, kind)).map(|(name, _)| name);
        let mut names = names.peekable();
        names.peek()?;
        Some(names.fold(Identity::new("anybody"), |identity, name| identity.with_scope(name.as_str())))
    }
}

impl Authenticator for Credentials {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        Box::pin(ready(Ok(self.brought(request))))
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        let owned = |(name, kind): (&String, &SecurityKind)| {
            let mut scheme = SecurityScheme::new("", kind.clone());
            scheme.name = name.clone().into();
            scheme
        };
        self.0.iter().map(owned).collect()
    }
}

/// True for a scheme that the document describes.
fn is_described(scheme: &&SecurityScheme) -> bool {
    scheme.kind != SecurityKind::UNKNOWN
}

/// True if a request has credentials of a kind.
fn brings(request: &Parts, kind: &SecurityKind) -> bool {
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    let authorises = |scheme: &str| {
        let words = header("authorization").and_then(|value| value.split_once(' '));
        words.is_some_and(|(own, rest)| own.eq_ignore_ascii_case(scheme) && !rest.trim().is_empty())
    };
    let has = |pairs: &str, separator: char, name: &str| {
        let mut names = pairs.split(separator).filter_map(|pair| pair.trim().split_once('='));
        names.any(|(own, value)| own == name && !value.is_empty())
    };
    match kind {
        SecurityKind::Basic => authorises("basic"),
        SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. } => authorises("bearer"),
        SecurityKind::ApiKey { location: ParameterLocation::Query, name } => {
            has(request.uri.query().unwrap_or_default(), '&', name)
        }
        SecurityKind::ApiKey { location: ParameterLocation::Cookie, name } => {
            header("cookie").is_some_and(|cookies| has(cookies, ';', name))
        }
        SecurityKind::ApiKey { name, .. } => header(name).is_some_and(|key| !key.is_empty()),
        // Credentials outside of the headers, such as a certificate, cannot be checked.
        _ => true,
    }
}
