//! Warnings of `ops serve` at the start: calls that are known to fail.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::binding::{SecurityKind, SecurityRequirement};
use ops_runtime::spec::OperationSpec;

use super::config::{Api, Config};
use crate::arguments::ServeArguments;
use crate::server::namespace;

/// The warning for each API whose operations name no server with a host, if no base URL is set for it; and for each snapshot
/// of an MCP server, since those that are connected, with their namespaces, need none.
pub(super) fn without_server(
    registry: &Registry,
    arguments: &ServeArguments,
    config: &Config,
    connected: &BTreeSet<String>,
) -> Vec<String> {
    let configured: BTreeMap<String, &Api> =
        config.apis.iter().map(|(name, api)| (namespace(name).to_lowercase(), api)).collect();
    let has_base = |namespace: &str| match configured.get(&namespace.to_lowercase()) {
        Some(api) => api.base_url.is_some(),
        None => arguments.base_url.is_some(),
    };
    let (mut lost, mut snapshots) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for spec in registry.list() {
        if spec.mcp().is_some() && !connected.contains(&namespace(spec.namespace()).to_lowercase()) {
            *snapshots.entry(spec.namespace().to_owned()).or_default() += 1;
        }
        let Some(server) = spec.http().map(|http| http.server.as_deref().unwrap_or_default()) else { continue };
        // One that begins with a variable gets its host from that.
        if !server.contains("://") && !server.starts_with('{') && !has_base(spec.namespace()) {
            lost.entry(spec.namespace().to_owned()).or_insert_with(|| (0, server.to_owned())).0 += 1;
        }
    }
    let told = |(namespace, (count, server)): (String, (usize, String))| {
        let what = if server.is_empty() {
            "no server".to_owned()
        } else {
            format!("the server `{server}`, which has no host")
        };
        let (operations, them) = counted(count);
        format!(
            "`{namespace}`: the document names {what}, for {operations}, and calls of {them} fail: set the server by `--base-url`, or by \
             `base-url` in a file for `--config`"
        )
    };
    let of_snapshot = |(namespace, count): (String, usize)| {
        let (operations, them) = counted(count);
        format!(
            "`{namespace}`: a snapshot has no server, for {operations}, and calls of {them} fail: serve a configuration that names the \
             server in its place"
        )
    };
    lost.into_iter().map(told).chain(snapshots.into_iter().map(of_snapshot)).collect()
}

/// A number of operations, and the word for them.
fn counted(count: usize) -> (String, &'static str) {
    if count == 1 { ("1 operation".to_owned(), "it") } else { (format!("{count} operations"), "them") }
}

/// The warnings for operations that refuse all callers. The scopes of callers that the configuration does not name are unknown.
pub(super) fn of_callers(registry: &Registry, named: &[Identity]) -> Vec<String> {
    let scopes = if named.is_empty() { None } else { without_scopes(registry, named) };
    without_scheme(registry).into_iter().chain(scopes).collect()
}

/// The warning for operations where every security alternative requires credentials that the document does not describe.
/// `None` if there are no such operations.
fn without_scheme(registry: &Registry) -> Option<String> {
    let specs = registry.list();
    let schemes: Vec<&str> = specs.iter().filter_map(|spec| undescribed(spec)).collect();
    let (one, count) = (schemes.first()?, schemes.len());
    let what = if count == 1 { "1 operation asks".to_owned() } else { format!("{count} operations ask") };
    Some(format!(
        "{what} for credentials that the document does not describe, such as `{one}`: over HTTP, calls are answered by 403, whoever \
         the caller is. Describe the scheme under `securitySchemes` of the document"
    ))
}

/// The name of a scheme that the document does not describe, if every security alternative of an operation has such a scheme.
fn undescribed(spec: &OperationSpec) -> Option<&str> {
    let ways = spec.http().map_or(&[][..], |http| &http.security);
    if ways.iter().any(|way| is_described(&way)) {
        return None;
    }
    let mut schemes = ways.iter().flat_map(|way| way.schemes.iter());
    schemes.find(|scheme| scheme.kind == SecurityKind::UNKNOWN).map(|scheme| &*scheme.name)
}

/// True if the document describes all schemes of a security alternative. No identity satisfies any other alternative.
fn is_described(way: &&SecurityRequirement) -> bool {
    way.schemes.iter().all(|scheme| scheme.kind != SecurityKind::UNKNOWN)
}

/// The warning for operations that require scopes that none of the callers has; `None` if there are none.
fn without_scopes(registry: &Registry, callers: &[Identity]) -> Option<String> {
    let (mut count, mut missing) = (0, BTreeSet::new());
    for spec in registry.list() {
        if undescribed(&spec).is_some() || callers.iter().any(|caller| may(&spec, caller)) {
            continue;
        }
        let ways = spec.http().into_iter().flat_map(|http| http.security.iter()).filter(is_described);
        let of_ways = ways.flat_map(|way| way.schemes.iter()).flat_map(|scheme| scheme.scopes.iter());
        let asked = of_ways.chain(spec.access.required_scopes.iter());
        let unknown: Vec<String> = asked
            .filter(|scope| !callers.iter().any(|caller| caller.scopes.iter().any(|own| own == *scope)))
            .map(ToString::to_string)
            .collect();
        count += usize::from(!unknown.is_empty());
        missing.extend(unknown);
    }
    let one = missing.first()?;
    let what = if count == 1 { "1 operation asks".to_owned() } else { format!("{count} operations ask") };
    Some(format!(
        "{what} for scopes that none of `[callers]` has, such as `{one}`: over HTTP, calls are answered by 403 unless a caller has them \
         under `scopes`"
    ))
}

/// True if a caller has the scopes that an operation asks for over HTTP.
fn may(spec: &OperationSpec, caller: &Identity) -> bool {
    let ways = spec.http().map_or(&[][..], |http| &http.security);
    let holds = |scope: &str| caller.scopes.iter().any(|own| own == scope);
    let is_met_by = |way: &SecurityRequirement| way.schemes.iter().all(|it| it.scopes.iter().all(holds));
    let is_met = ways.is_empty() || ways.iter().filter(is_described).any(is_met_by);
    is_met && spec.access.allows(caller)
}

#[cfg(test)]
mod tests {
    use ops_runtime::HttpConfig;
    use ops_runtime::openapi::from_openapi;

    use super::*;

    fn caller(scopes: &[&str]) -> Identity {
        scopes.iter().fold(Identity::new("ann"), |caller, scope| caller.with_scope(*scope))
    }

    #[test]
    fn schemes_that_the_document_does_not_describe() {
        let document = r#"{
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "components": { "securitySchemes": { "login": { "type": "openIdConnect", "openIdConnectUrl": "https://x.test" } } },
            "paths": { "/a": {
                "get": { "operationId": "read", "security": [{ "shopKye": [] }], "responses": {} },
                "put": { "operationId": "either", "security": [{ "shopKye": [] }, { "login": ["edit"] }], "responses": {} },
                "post": { "operationId": "both", "security": [{ "login": [], "shopKye": ["x"] }], "responses": {} },
                "delete": { "operationId": "open", "security": [{ "shopKye": [] }, {}], "responses": {} }
            } }
        }"#;
        let registry = Registry::new();
        registry.register_all(from_openapi(document, HttpConfig::new().with_namespace("x")).unwrap()).unwrap();
        let wanted = "2 operations ask for credentials that the document does not describe, such as `shopKye`: over HTTP, calls are \
                      answered by 403, whoever the caller is. Describe the scheme under `securitySchemes` of the document";
        assert_eq!(of_callers(&registry, &[caller(&["edit"])]), [wanted]);
        // The scopes of unnamed callers are unknown.
        assert_eq!(of_callers(&registry, &[]), [wanted]);
        let told = of_callers(&registry, &[caller(&[])]);
        let scopes = "1 operation asks for scopes that none of `[callers]` has, such as `edit`: ";
        assert!(told.len() == 2 && told[0] == wanted && told[1].starts_with(scopes), "{told:?}");
    }

    #[test]
    fn scopes_that_nobody_has() {
        let document = r#"{
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "security": [{ "login": ["read"] }],
            "components": { "securitySchemes": { "login": { "type": "openIdConnect", "openIdConnectUrl": "https://x.test" } } },
            "paths": { "/a": {
                "get": { "operationId": "read", "responses": {} },
                "put": { "operationId": "either", "security": [{ "login": ["read"] }, { "login": ["edit"] }], "responses": {} },
                "post": { "operationId": "both", "security": [{ "login": ["read", "write"] }], "responses": {} },
                "delete": { "operationId": "open", "security": [], "responses": {} }
            } }
        }"#;
        let registry = Registry::new();
        registry.register_all(from_openapi(document, HttpConfig::new().with_namespace("x")).unwrap()).unwrap();
        let told = |callers: &[Identity]| without_scopes(&registry, callers).unwrap_or_default();
        assert!(
            told(&[caller(&[])])
                .starts_with("3 operations ask for scopes that none of `[callers]` has, such as `edit`: ")
        );
        assert!(
            told(&[caller(&["read"])])
                .starts_with("1 operation asks for scopes that none of `[callers]` has, such as `write`: ")
        );
        assert_eq!(told(&[caller(&["read", "write"])]), "");
    }
}
