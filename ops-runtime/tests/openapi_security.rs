//! Security and servers.
#![cfg(feature = "openapi")]

use std::collections::BTreeMap;

use ops_runtime::binding::{HttpBinding, ParameterLocation, SecurityKind, SecurityRequirement};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic};
use serde_json::{Value, json};

fn load(location: &str, document: &Value) -> (Api, Vec<Diagnostic>) {
    let source = BTreeMap::from([(location.to_owned(), document.to_string())]);
    openapi::load(location, &source, &ReadOptions::new()).unwrap()
}

fn bindings(api: &Api) -> Vec<&HttpBinding> {
    api.operations.iter().map(|operation| operation.http().unwrap()).collect()
}

fn names(ways: &[SecurityRequirement]) -> Vec<Vec<&str>> {
    ways.iter().map(|way| way.schemes.iter().map(|scheme| scheme.name.as_ref()).collect()).collect()
}

#[test]
fn schemes() {
    let flow = |url: &str| json!({ "clientCredentials": { "tokenUrl": url, "scopes": {} } });
    for (scheme, kind) in [
        (json!({ "type": "http", "scheme": "Basic" }), SecurityKind::Basic),
        (json!({ "type": "http", "scheme": "bearer", "bearerFormat": "JWT" }), SecurityKind::Bearer),
        (json!({ "type": "http", "scheme": "digest" }), SecurityKind::Other("digest".into())),
        (json!({ "type": "mutualTLS" }), SecurityKind::Other("mutualTLS".into())),
        (
            json!({ "type": "apiKey", "in": "cookie", "name": "sid" }),
            SecurityKind::ApiKey { location: ParameterLocation::Cookie, name: "sid".into() },
        ),
        (json!({ "$ref": "#/components/securitySchemes/Other" }), SecurityKind::Bearer),
        (
            json!({ "type": "oauth2", "flows": flow("https://id.example.com/token") }),
            SecurityKind::OAuth2 { token_url: Some("https://id.example.com/token".into()) },
        ),
        (
            json!({ "type": "oauth2", "flows": flow("/token") }),
            SecurityKind::OAuth2 { token_url: Some("/token".into()) },
        ),
        (
            json!({ "type": "oauth2", "flows": flow("/token?audience=https://api.example.com") }),
            SecurityKind::OAuth2 { token_url: Some("/token?audience=https://api.example.com".into()) },
        ),
        // A path keeps its last slash, and its empty parts.
        (
            json!({ "type": "oauth2", "flows": flow("/o/token/") }),
            SecurityKind::OAuth2 { token_url: Some("/o/token/".into()) },
        ),
        (
            json!({ "type": "oauth2", "flows": flow("//id.example.com/token") }),
            SecurityKind::OAuth2 { token_url: Some("https://id.example.com/token".into()) },
        ),
        (
            json!({ "type": "openIdConnect", "openIdConnectUrl": "/a//b/.well-known/openid-configuration?x=a//b" }),
            SecurityKind::OpenIdConnect { url: "/a//b/.well-known/openid-configuration?x=a//b".into() },
        ),
        (
            json!({ "type": "oauth2", "flows": { "implicit": { "authorizationUrl": "x" } } }),
            SecurityKind::OAuth2 { token_url: None },
        ),
        (
            json!({ "type": "openIdConnect", "openIdConnectUrl": "https://id.example.com" }),
            SecurityKind::OpenIdConnect { url: "https://id.example.com".into() },
        ),
    ] {
        let document = json!({
            "openapi": "3.1.0",
            "info": { "version": "1" },
            "paths": { "/": { "get": { "operationId": "x", "responses": { "200": {} }, "security": [{ "X": ["read"] }] } } },
            "components": { "securitySchemes": { "X": scheme, "Other": { "type": "http", "scheme": "bearer" } } },
        });
        // A relative URL is one of the server, also if the document comes from another host.
        let (api, diagnostics) = load("https://example.com/v1/api.json", &document);
        let way = &bindings(&api)[0].security[0];
        assert_eq!(way.schemes[0].kind, kind);
        assert_eq!(way.schemes[0].scopes, ["read"]);
        let relative = match &kind {
            SecurityKind::OAuth2 { token_url: Some(url) } if url.starts_with('/') => Some(url),
            _ => None,
        };
        let notes: Vec<_> = relative.iter().map(|url| format!("the `tokenUrl` `{url}` is relative")).collect();
        let told: Vec<_> = diagnostics.iter().map(|told| told.message.as_str()).collect();
        assert_eq!(told, notes);
    }
}

#[test]
fn requirements() {
    let operation = |security: Value| json!({ "responses": { "200": {} }, "security": security });
    let document = json!({
        "openapi": "3.0.0",
        "info": { "version": "1" },
        "security": [{ "A": [] }],
        "paths": { "/": {
            "get": { "operationId": "inherits", "responses": { "200": {} } },
            "put": operation(json!([])),
            "post": operation(json!([{}, { "A": [], "B": [] }])),
            "patch": operation(json!([{ "Gone": [] }, { "B": [] }, { "Odd": [] }, 1])),
        } },
        "components": { "securitySchemes": {
            "A": { "type": "http", "scheme": "basic" },
            "B": { "type": "apiKey", "in": "header", "name": "X-Key" },
            "Odd": { "type": "apiKey", "in": "header" },
            "Nowhere": { "type": "openIdConnect" },
        } },
    });
    let (api, diagnostics) = load("api.json", &document);
    let found: Vec<_> = bindings(&api).iter().map(|http| names(&http.security)).collect();
    let none: Vec<&str> = Vec::new();
    assert_eq!(found, [vec![vec!["A"]], vec![none.clone()], vec![none, vec!["A", "B"]], vec![vec!["B"]]]);
    let told: Vec<_> = diagnostics.iter().filter(|d| !d.message.contains("operationId")).collect();
    let told: Vec<_> = told.iter().map(|d| (d.message.as_str(), d.pointer.as_str(), d.position.is_some())).collect();
    assert_eq!(
        told,
        [
            ("the key of `Odd` has no `name`", "/components/securitySchemes/Odd", true),
            ("the security scheme `Nowhere` has no `openIdConnectUrl`", "/components/securitySchemes/Nowhere", true,),
            ("there is no security scheme `Gone`", "/paths/~1/patch/security/0/Gone", true),
            ("a security requirement is not an object", "/paths/~1/patch/security/3", true),
        ]
    );
}

#[test]
fn servers() {
    for (location, servers, url, message) in [
        ("api.json", json!([{ "url": "https://a.example.com/v1" }]), Some("https://a.example.com/v1"), None),
        ("api.json", json!([{ "url": "/v1" }]), Some("/v1"), None),
        ("api.json", json!(null), None, None),
        ("https://h.example.com/docs/api.json", json!(null), Some("https://h.example.com/"), None),
        ("https://h.example.com/docs/api.json", json!([{ "url": "../v1" }]), Some("https://h.example.com/v1"), None),
        (
            "http://h.example.com/api.json?x=/y",
            json!([{ "url": "//b.example.com" }]),
            Some("http://b.example.com"),
            None,
        ),
        (
            "api.json",
            json!([{ "url": "api.example.com/v1" }]),
            Some("https://api.example.com/v1"),
            Some("the server `api.example.com/v1` is a relative URL that looks like a host"),
        ),
        ("api.json", json!([{}]), None, Some("a server without `url`")),
        (
            "api.json",
            json!([{}, { "url": "https://b.example.com" }]),
            Some("https://b.example.com"),
            Some("a server without `url`"),
        ),
        (
            "api.json",
            json!([{ "url": "https://{region}.example.com", "variables": { "region": { "enum": ["eu", "us"] } } }]),
            Some("https://{region}.example.com"),
            Some("the server's variable `region` has no default"),
        ),
    ] {
        let document = json!({
            "openapi": "3.0.0",
            "info": { "version": "1" },
            "servers": servers,
            "paths": { "/": { "get": { "operationId": "x", "responses": { "200": {} } } } },
        });
        let (api, diagnostics) = load(location, &document);
        let http = bindings(&api)[0];
        assert_eq!((http.server.as_deref(), diagnostics.first().map(|d| d.message.as_str())), (url, message));
        if message.is_some_and(|message| message.contains("region")) {
            let variable = &http.server_variables[0];
            assert_eq!((variable.default.as_ref(), variable.values.len()), ("eu", 2));
        }
    }
}

#[test]
fn schemes_that_nothing_asks_for() {
    let document = |security: Value| {
        let mut operation = json!({ "operationId": "x", "responses": { "200": {} } });
        if !security.is_null() {
            operation["security"] = security;
        }
        json!({
            "openapi": "3.0.0",
            "info": { "version": "1" },
            "paths": { "/": { "get": operation } },
            "components": { "securitySchemes": { "A": { "type": "http", "scheme": "basic" } } },
        })
    };
    for (security, count) in [(json!(null), 1), (json!([{ "A": [] }]), 0)] {
        assert_eq!(load("api.json", &document(security)).1.len(), count);
    }
}

#[test]
fn an_operation_takes_back_what_the_document_asks_for() {
    let ways = |root: Value, own: Value, schemes: Value| {
        let mut document = json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "paths": { "/": { "get": { "responses": { "200": { "description": "x" } } } } },
            "components": { "securitySchemes": schemes },
        });
        for (place, security) in [("", root), ("/paths/~1/get", own)] {
            if !security.is_null() {
                document.pointer_mut(place).unwrap()["security"] = security;
            }
        }
        let (api, _) = load("x.json", &document);
        names(&bindings(&api)[0].security).into_iter().map(|way| way.join("+")).collect::<Vec<_>>()
    };
    let key = || json!({ "key": { "type": "http", "scheme": "bearer" } });
    let none: [&str; 0] = [];
    assert_eq!(ways(json!([{ "key": [] }]), Value::Null, key()), ["key"]);
    // A way without schemes: anybody.
    assert_eq!(ways(json!([{ "key": [] }]), json!([]), key()), [""]);
    assert_eq!(ways(Value::Null, json!([]), key()), [""]);
    assert_eq!(ways(json!([{ "key": [] }]), json!([{}, { "key": [] }]), key()), ["", "key"]);
    // Nothing is said of credentials: the client's own are sent.
    assert_eq!(ways(json!([]), json!([]), json!({})), none);
    assert_eq!(ways(json!([]), Value::Null, key()), none);
}

/// The kinds of schemes of each way, and what was told, of a document with such a root and such an operation.
fn read_ways(root: &Value, own: &Value) -> (Vec<Vec<SecurityKind>>, Vec<String>) {
    let mut document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": { "/": { "get": { "operationId": "x", "responses": { "204": { "description": "x" } } } } },
        "components": { "securitySchemes": {
            "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
            "typeless": {},
            "nameless": { "type": "apiKey", "in": "header" },
            "lost": { "$ref": "gone.yaml#/key" },
        } },
    });
    for (place, security) in [("", root), ("/paths/~1/get", own)] {
        if !security.is_null() {
            document.pointer_mut(place).unwrap()["security"] = security.clone();
        }
    }
    let (api, diagnostics) = load("x.json", &document);
    let kinds = |way: &SecurityRequirement| way.schemes.iter().map(|scheme| scheme.kind.clone()).collect();
    let told = diagnostics.iter().filter(|d| d.message == "no way to authenticate can be read");
    (bindings(&api)[0].security.iter().map(kinds).collect(), told.map(|d| d.pointer.clone()).collect())
}

#[test]
fn a_requirement_that_cannot_be_read_stays_one() {
    let unknown = || SecurityKind::Other("unknown".into());
    let key = || SecurityKind::ApiKey { location: ParameterLocation::Header, name: "X-Key".into() };
    let many: Value = (0..60).map(|at| (format!("s{at}"), json!([]))).collect();
    let at_root = [
        (json!([{ "misspelt": [] }]), vec![unknown()]),
        (json!([{ "typeless": [] }]), vec![unknown()]),
        (json!([{ "nameless": [] }]), vec![unknown()]),
        (json!([{ "lost": [] }]), vec![unknown()]),
        (json!([{ "key": [], "misspelt": [] }]), vec![key(), unknown()]),
        (json!(["key"]), vec![unknown()]),
        (json!({ "key": [] }), vec![unknown()]),
        (json!("key"), vec![unknown()]),
        (json!([many]), vec![unknown()]),
    ];
    for (security, expected) in at_root {
        assert_eq!(
            read_ways(&security, &Value::Null),
            (vec![expected.clone()], vec!["/security".to_owned()]),
            "{security}"
        );
        // The way of the document is not that of an operation that has its own.
        let place = vec!["/paths/~1/get/security".to_owned()];
        assert_eq!(read_ways(&json!([{ "key": [] }]), &security), (vec![expected], place), "{security}");
    }
    let two = json!([{ "misspelt": [] }, { "key": [], "lost": [] }]);
    let expected = vec![vec![unknown()], vec![key(), unknown()]];
    assert_eq!(read_ways(&two, &Value::Null), (expected, vec!["/security".to_owned()]));
    // What can be read suffices.
    for security in [json!([{ "misspelt": [] }, { "key": [] }]), json!([{ "key": [] }, "key"])] {
        assert_eq!(read_ways(&security, &Value::Null), (vec![vec![key()]], vec![]), "{security}");
    }
    assert_eq!(read_ways(&json!([{}, { "misspelt": [] }]), &Value::Null), (vec![vec![]], vec![]));
    assert_eq!(read_ways(&Value::Null, &Value::Null), (vec![], vec![]));
}

#[test]
fn the_names_and_scopes_of_unknown_schemes_are_kept() {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "security": [{ "login": ["write"] }],
        "paths": { "/": { "get": { "operationId": "x", "responses": { "204": { "description": "x" } } } } },
    });
    let (api, _) = load("x.json", &document);
    let found = bindings(&api);
    let [way] = found[0].security.as_ref() else { panic!("one way") };
    let [scheme] = way.schemes.as_ref() else { panic!("one scheme") };
    assert_eq!((scheme.name.as_ref(), scheme.scopes.iter().collect::<Vec<_>>()), ("login", vec!["write"]));
}

#[test]
fn schemes_of_the_document_of_an_operation() {
    let scheme = |kind: &str| json!({ "securitySchemes": { "login": { "type": "http", "scheme": kind } } });
    let get = json!({
        "operationId": "me", "security": [{ "login": [] }], "responses": { "204": { "description": "x" } },
    });
    let users = json!({ "paths": { "/me": { "get": get } }, "components": scheme("basic") });
    let kind = |components: Value| {
        let root = json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "paths": { "/me": { "$ref": "users.json#/paths/~1me" } }, "components": components,
        });
        let source = [("api.json", root), ("users.json", users.clone())];
        let source: BTreeMap<_, _> = source.map(|(name, value)| (name.to_owned(), value.to_string())).into();
        let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
        assert_eq!(diagnostics, []);
        bindings(&api)[0].security[0].schemes[0].kind.clone()
    };
    assert_eq!(kind(json!({})), SecurityKind::Basic);
    // The names of the root count first.
    assert_eq!(kind(scheme("bearer")), SecurityKind::Bearer);
}
