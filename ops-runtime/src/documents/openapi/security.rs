//! Security: how callers of an operation must authenticate.

use std::borrow::Cow;

use super::document::Node;
use super::reader::Reader;
use super::short::short;
use super::version::Version;
use crate::model::text::has_scheme;
use crate::{OperationSpec, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme};

/// How many ways to authenticate an operation may have, and how many schemes each way; all operations repeat them.
const MAX_SCHEMES: usize = 50;

impl<'a> Reader<'a> {
    /// Reads the security schemes of the document.
    pub(super) fn define_schemes(&mut self) {
        let root = self.documents.root();
        let (place, key) = match self.version {
            Version::V20 => (Some(root), "securityDefinitions"),
            _ => (root.get("components"), "securitySchemes"),
        };
        let Some(place) = place else { return };
        for (name, node) in self.map(&place, key) {
            let scheme = self.resolve(&node, "the security scheme").and_then(|node| self.scheme(name, &node));
            self.schemes.insert(name.to_owned(), scheme);
        }
    }

    /// Notes if the document has security schemes but never asks for one.
    pub(super) fn note_unused_schemes(&mut self, specs: &[OperationSpec]) {
        let root = self.documents.root();
        let asks = |spec: &OperationSpec| spec.http().is_some_and(|http| !http.security.is_empty());
        if self.schemes.is_empty() || root.get("security").is_some() || specs.is_empty() || specs.iter().any(asks) {
            return;
        }
        if let Some(schemes) = self.schemes_of(&root) {
            let help = "give the client itself its credentials, if operations need them";
            self.note(&schemes, "no operation asks for a security scheme", help);
        }
    }

    fn scheme(&mut self, name: &str, node: &Node<'a>) -> Option<SecurityKind> {
        let kind = node.text("type").unwrap_or_default();
        Some(match kind.to_ascii_lowercase().as_str() {
            "basic" => SecurityKind::Basic,
            "bearer" => SecurityKind::Bearer,
            "http" => match node.text("scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
                "basic" => SecurityKind::Basic,
                "bearer" => SecurityKind::Bearer,
                "" => {
                    self.warn(
                        node,
                        format!("the security scheme `{}` has no `scheme`", short(name)),
                        "it was left out",
                    );
                    return None;
                }
                other => SecurityKind::Other(other.to_owned().into()),
            },
            "apikey" => {
                let location = match node.text("in") {
                    Some("query") => ParameterLocation::Query,
                    Some("cookie") => ParameterLocation::Cookie,
                    Some("header") => ParameterLocation::Header,
                    _ => {
                        self.warn(
                            node,
                            format!("`{}` does not say where its key goes", short(name)),
                            "it goes into a header",
                        );
                        ParameterLocation::Header
                    }
                };
                let Some(key) = node.text("name").filter(|key| !key.is_empty()) else {
                    self.warn(
                        node,
                        format!("the key of `{}` has no `name`", short(name)),
                        "the security scheme was left out",
                    );
                    return None;
                };
                SecurityKind::ApiKey { location, name: key.to_owned().into() }
            }
            "oauth2" => SecurityKind::OAuth2 { token_url: self.token_url(node).map(Cow::Owned) },
            "openidconnect" => {
                let url = node.text("openIdConnectUrl").map(str::trim).unwrap_or_default();
                if url.is_empty() {
                    let message = format!("the security scheme `{}` has no `openIdConnectUrl`", short(name));
                    self.warn(node, message, "its provider is not known");
                    return Some(SecurityKind::OpenIdConnect { url: "".into() });
                }
                SecurityKind::OpenIdConnect { url: with_scheme(url).into() }
            }
            "" => {
                self.warn(node, format!("the security scheme `{}` has no `type`", short(name)), "it was left out");
                return None;
            }
            _ => SecurityKind::Other(kind.to_owned().into()),
        })
    }

    /// Where client credentials are exchanged for a token.
    fn token_url(&mut self, node: &Node<'a>) -> Option<String> {
        let flow = match self.version {
            // In 2.0 a scheme has one flow.
            Version::V20 => Some(node.clone()).filter(|flow| flow.text("flow") == Some("application")),
            _ => node.get("flows").and_then(|flows| flows.get("clientCredentials")),
        }?;
        let Some(url) = flow.text("tokenUrl").map(str::trim).filter(|url| !url.is_empty()) else {
            self.warn(&flow, "a flow of client credentials without `tokenUrl`", "a client has to be given the URL");
            return None;
        };
        let url = with_scheme(url);
        if !has_scheme(&url) {
            let help = "it is taken to be below the server's URL";
            self.note(&flow, format!("the `tokenUrl` `{}` is relative", short(&url)), help);
        }
        Some(url)
    }

    /// The ways to authenticate at an operation.
    pub(super) fn security(&mut self, operation: &Node<'a>) -> Vec<SecurityRequirement> {
        if let Some(own) = operation.get("security").filter(|own| !own.value.is_null()) {
            let is_open = is_empty_list(&own) && !self.schemes.is_empty();
            // An empty list takes back what the document asks for (3.1, section 4.8.10). In a document without schemes there is
            // nothing to take back: it says nothing of credentials.
            return if is_open { vec![SecurityRequirement::new(&[])] } else { self.ways(operation) };
        }
        if let Some(ways) = &self.security {
            return ways.clone();
        }
        let ways = self.ways(&self.documents.root());
        self.security = Some(ways.clone());
        ways
    }

    /// The ways that a place lists.
    ///
    /// If none of them can be read, they remain, and no caller of a server meets them: a mistake in a document must not
    /// make an operation public.
    fn ways(&mut self, place: &Node<'a>) -> Vec<SecurityRequirement> {
        let Some(found) = place.get("security").filter(|found| !found.value.is_null()) else { return Vec::new() };
        let (mut ways, mut unread) = (Vec::new(), Vec::new());
        let listed = self.list(place, "security");
        let is_long = |requirement: &Node<'a>| requirement.value.as_object().is_some_and(|r| r.len() > MAX_SCHEMES);
        if listed.len() > MAX_SCHEMES || listed.iter().any(is_long) {
            let message = format!("more than {MAX_SCHEMES} ways to authenticate");
            self.warn(place, message, "those beyond were left out");
        }
        for requirement in listed.into_iter().filter(|requirement| !is_long(requirement)).take(MAX_SCHEMES) {
            if !requirement.value.is_object() {
                self.warn(&requirement, "a security requirement is not an object", "it was left out");
                continue;
            }
            let schemes: Vec<SecurityScheme> =
                requirement.members().map(|(name, scopes)| self.required_scheme(name, &scopes)).collect();
            let is_read = schemes.iter().all(|scheme| scheme.kind != SecurityKind::UNKNOWN);
            let mut way = SecurityRequirement::new(&[]);
            way.schemes = schemes.into();
            if is_read {
                ways.push(way);
            } else {
                // Its names stay, by which a client may have credentials.
                unread.push(way);
            }
        }
        if ways.is_empty() && !is_empty_list(&found) {
            let help = "a server of ours refuses all callers, and a client sends the credentials that it has";
            self.warn(&found, "no way to authenticate can be read", help);
            if unread.is_empty() {
                const UNKNOWN: SecurityScheme = SecurityScheme::new("unknown", SecurityKind::UNKNOWN);
                unread.push(SecurityRequirement::new(const { &[UNKNOWN] }));
            }
            return unread;
        }
        ways
    }

    /// A scheme of a requirement, with the scopes that are needed.
    fn required_scheme(&mut self, name: &str, scopes: &Node<'a>) -> SecurityScheme {
        let named = self.schemes.get(name).cloned();
        let kind = match named {
            Some(kind) => kind,
            None => self.referred_scheme(name, scopes),
        };
        let mut scheme = SecurityScheme::owned(name.to_owned(), kind.unwrap_or(SecurityKind::UNKNOWN));
        let scopes = scopes.items().filter_map(|scope| scope.value.as_str());
        scheme.scopes = scopes.collect();
        scheme
    }

    /// A scheme that is not one of the root's: of the document of the requirement itself, or by a reference, which may stand
    /// instead of a name (3.2, section 4.30).
    fn referred_scheme(&mut self, name: &str, at: &Node<'a>) -> Option<SecurityKind> {
        let own = self.documents.at(at.document, "").and_then(|document| self.schemes_of(&document)?.get(name));
        let found = match own {
            Some(own) => self.documents.resolve(own).ok(),
            None if name.contains(['#', '/', '.']) => {
                self.documents.find(at.document, name).and_then(|node| self.documents.resolve(node)).ok()
            }
            None => None,
        };
        if let Some(node) = found.filter(|node| node.value.is_object()) {
            return self.scheme(name, &node);
        }
        self.warn(
            at,
            format!("there is no security scheme `{}`", short(name)),
            "this way to authenticate counts only if no other can be read",
        );
        None
    }

    /// The security schemes of a document.
    fn schemes_of(&self, document: &Node<'a>) -> Option<Node<'a>> {
        match self.version {
            Version::V20 => document.get("securityDefinitions"),
            _ => document.get("components")?.get("securitySchemes"),
        }
    }
}

/// A URL with its scheme. A relative URL stays relative: it is resolved against the server's URL, not against that of the
/// document (3.1, section 4.6), and the client may have been given another server.
fn with_scheme(url: &str) -> String {
    if url.starts_with("//") { format!("https:{url}") } else { url.to_owned() }
}

fn is_empty_list(node: &Node<'_>) -> bool {
    node.value.as_array().is_some_and(Vec::is_empty)
}
