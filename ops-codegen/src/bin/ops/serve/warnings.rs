//! Warnings of `ops serve` at the start: calls that are known to fail.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::Registry;
use ops_runtime::access::Identity;
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

/// The warning for operations that require scopes that none of the callers has; `None` if there are none.
pub(super) fn without_scopes(registry: &Registry, callers: &[Identity]) -> Option<String> {
    let (mut count, mut missing) = (0, BTreeSet::new());
    for spec in registry.list() {
        if callers.iter().any(|caller| may(&spec, caller)) {
            continue;
        }
        let of_ways = spec.http().into_iter().flat_map(|http| http.security.iter()).flat_map(|way| way.schemes.iter());
        let of_ways = of_ways.flat_map(|scheme| scheme.scopes.iter());
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
    let is_met = ways.is_empty() || ways.iter().any(|way| way.schemes.iter().all(|it| it.scopes.iter().all(&holds)));
    is_met && spec.access.allows(caller)
}

#[cfg(test)]
mod tests {
    use ops_runtime::HttpConfig;
    use ops_runtime::openapi::from_openapi;

    use super::*;

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
        let caller =
            |scopes: &[&str]| scopes.iter().fold(Identity::new("ann"), |caller, scope| caller.with_scope(*scope));
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
