//! The security of operations in the document (OpenAPI 3.1, sections 4.8.27 and 4.8.30).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::text::has_scheme;
use crate::{OperationSpec, ParameterLocation, SecurityKind, SecurityScheme};

/// The security schemes of the document, and those of the authenticator.
pub(in crate::serve) struct Security {
    schemes: BTreeMap<String, Value>,
    /// The schemes for operations that only name scopes.
    known: Vec<SecurityScheme>,
    /// True if these are the only schemes that the authenticator accepts.
    is_exact: bool,
}

impl Security {
    pub(in crate::serve) fn new(known: Vec<SecurityScheme>, is_exact: bool) -> Self {
        Self { schemes: BTreeMap::new(), known, is_exact }
    }

    /// The alternatives to authenticate at an operation; `None` if it needs none. `is_foreign` is true if the operation may be
    /// forwarded to another server: its schemes are then those of that server.
    pub(super) fn of(&mut self, spec: &OperationSpec, is_foreign: bool) -> Option<Value> {
        let mut ways: Vec<Vec<(String, Vec<String>)>> = Vec::new();
        for way in spec.http().map_or(&[][..], |http| &http.security) {
            let is_known = |scheme: &SecurityScheme| self.known.iter().any(|known| is_like(&known.kind, &scheme.kind));
            let is_read = way.schemes.iter().all(|scheme| scheme.kind != SecurityKind::UNKNOWN);
            if self.is_exact && is_read && !way.schemes.iter().all(is_known) {
                // An alternative of the server to which the operation is forwarded. One that no caller meets stays.
                let scopes: Vec<String> =
                    way.schemes.iter().flat_map(|scheme| scheme.scopes.iter()).map(str::to_owned).collect();
                let known = self.known.clone();
                ways.extend(known.iter().map(|scheme| vec![(self.name(scheme, false), scopes.clone())]));
                continue;
            }
            let schemes = way
                .schemes
                .iter()
                .map(|scheme| (self.name(scheme, is_foreign), scheme.scopes.iter().map(str::to_owned).collect()));
            ways.push(schemes.collect());
        }
        let mut each_once = Vec::new();
        for way in ways {
            if !each_once.contains(&way) {
                each_once.push(way);
            }
        }
        let mut ways = each_once;
        if !spec.access.is_open() {
            ways = self.restricted(spec, ways);
        }
        if ways.is_empty() {
            return None;
        }
        let ways =
            ways.into_iter().map(|way| Value::Object(way.into_iter().map(|(name, own)| (name, own.into())).collect()));
        Some(ways.collect())
    }

    /// The alternatives, each with the scopes that the operation's access rules require.
    fn restricted(
        &mut self,
        spec: &OperationSpec,
        ways: Vec<Vec<(String, Vec<String>)>>,
    ) -> Vec<Vec<(String, Vec<String>)>> {
        let all: Vec<String> = spec.access.required_scopes.iter().map(str::to_owned).collect();
        let any: Vec<String> = spec.access.required_scopes_any.iter().map(str::to_owned).collect();
        let choices: Vec<Vec<String>> = match any.is_empty() {
            true => vec![all],
            false => any.iter().map(|one| all.iter().chain([one]).cloned().collect()).collect(),
        };
        // An anonymous caller has no scopes.
        let mut ways: Vec<_> = ways.into_iter().filter(|way| !way.is_empty()).collect();
        if ways.is_empty() {
            let known = self.known.clone();
            ways = known.iter().map(|scheme| vec![(self.name(scheme, false), Vec::new())]).collect();
        }
        let with = |way: &Vec<(String, Vec<String>)>, scopes: &[String]| {
            let mut way = way.clone();
            for scope in scopes {
                let has = way.iter().any(|(_, own)| own.contains(scope));
                if let (false, Some((_, own))) = (has, way.first_mut()) {
                    own.push(scope.clone());
                }
            }
            way
        };
        ways.iter().flat_map(|way| choices.iter().map(|scopes| with(way, scopes)).collect::<Vec<_>>()).collect()
    }

    /// The name of a scheme in the document: its own, unless another scheme has it. `is_foreign` is true for a scheme of another
    /// server, unless ours has it, too.
    fn name(&mut self, scheme: &SecurityScheme, is_foreign: bool) -> String {
        let is_foreign = is_foreign && !self.known.iter().any(|known| known.kind == scheme.kind);
        let described = if is_foreign { of_another(&scheme.kind) } else { described(&scheme.kind) };
        let plain: String =
            scheme.name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
        let mut name = plain.clone();
        for number in 2_u32.. {
            match self.schemes.get(&name) {
                None => break,
                Some(known) if *known == described => return name,
                Some(_) => name = format!("{plain}_{number}"),
            }
        }
        self.schemes.insert(name.clone(), described);
        name
    }

    pub(super) fn into_schemes(self) -> Map<String, Value> {
        self.schemes.into_iter().collect()
    }
}

/// True if credentials of one kind are also credentials of the other.
fn is_like(known: &SecurityKind, kind: &SecurityKind) -> bool {
    let is_token = |kind: &SecurityKind| {
        matches!(kind, SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. })
    };
    known == kind || is_token(known) && is_token(kind)
}

/// A scheme as a security scheme object.
fn described(kind: &SecurityKind) -> Value {
    match kind {
        SecurityKind::Basic => json!({ "type": "http", "scheme": "basic" }),
        SecurityKind::Bearer => json!({ "type": "http", "scheme": "bearer" }),
        SecurityKind::ApiKey { location, name } => {
            let place = match location {
                ParameterLocation::Query => "query",
                ParameterLocation::Cookie => "cookie",
                _ => "header",
            };
            json!({ "type": "apiKey", "in": place, "name": name })
        }
        SecurityKind::OAuth2 { token_url: Some(url) } => {
            json!({ "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": url, "scopes": {} } } })
        }
        SecurityKind::OAuth2 { token_url: None } => json!({ "type": "oauth2", "flows": {} }),
        SecurityKind::OpenIdConnect { url } => json!({ "type": "openIdConnect", "openIdConnectUrl": url }),
        SecurityKind::Other(kind) if kind.eq_ignore_ascii_case("mutualTLS") => json!({ "type": "mutualTLS" }),
        SecurityKind::Other(scheme) => json!({ "type": "http", "scheme": scheme }),
    }
}

/// A scheme of another server as a security scheme object, without a URL that is relative to that server. In our document, it
/// would be one of our own, and callers would send us their secrets.
fn of_another(kind: &SecurityKind) -> Value {
    let is_relative = |url: &str| !url.is_empty() && !has_scheme(url);
    match kind {
        SecurityKind::OAuth2 { token_url: Some(url) } if is_relative(url) => {
            described(&SecurityKind::OAuth2 { token_url: None })
        }
        SecurityKind::OpenIdConnect { url } if is_relative(url) => described(&SecurityKind::Bearer),
        kind => described(kind),
    }
}
