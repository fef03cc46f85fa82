//! Something for each way of authentication that a document knows.

use std::collections::BTreeSet;

use ops_runtime::HttpConfig;
use ops_runtime::http::{Auth, Secret};
use serde_json::{Map, Value};

/// A configuration with made-up credentials for every security scheme that is asked for, by its name: where they go is for the
/// runtime to find out. It refuses credentials for names that nothing asks for, if those are similar to the others.
pub(super) fn config(document: &Value) -> HttpConfig {
    let mut config = HttpConfig::new();
    let mut asked = BTreeSet::new();
    ask(document, &mut asked);
    for (name, scheme) in schemes(document).flatten().filter(|(name, _)| asked.contains(name.as_str())) {
        config = config.with_credentials(name, auth(follow(document, scheme)));
    }
    // Documents may not describe this header as a parameter; where they do, it stands for credentials.
    if demands_authorization(document) { config.with_auth(Auth::bearer("token")) } else { config }
}

/// Adds the names of the schemes that the document, or an operation anywhere in it, asks for.
fn ask<'a>(value: &'a Value, asked: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let ways = value.as_array().filter(|_| key == "security").into_iter().flatten();
                asked.extend(ways.filter_map(Value::as_object).flatten().map(|(name, _)| name.as_str()));
                ask(value, asked);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| ask(item, asked)),
        _ => {}
    }
}

fn schemes(document: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let places = [&document["components"]["securitySchemes"], &document["securityDefinitions"]];
    places.into_iter().filter_map(Value::as_object)
}

fn auth(scheme: &Value) -> Auth {
    match (scheme["type"].as_str(), scheme["scheme"].as_str().map(str::to_lowercase).as_deref()) {
        (Some("basic"), _) | (Some("http"), Some("basic")) => Auth::basic("ann", "secret"),
        (Some("bearer"), _) | (Some("http"), Some("bearer") | None) => Auth::bearer("token"),
        // A scheme that the runtime does not know: what the user says is sent.
        (Some("http"), Some(other)) => {
            Auth::api_key("key").with_header("Authorization").with_prefix(format!("{other} "))
        }
        (Some("oauth2" | "openIdConnect"), _) => Auth::token_source(|_| async { Ok(Secret::from("token")) }),
        _ => Auth::api_key("key"),
    }
}

fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn demands_authorization(document: &Value) -> bool {
    let shared = &document["components"]["parameters"];
    let operations = document["paths"].as_object().into_iter().flatten().filter_map(|(_, item)| item.as_object());
    let lists = operations.flatten().filter_map(|(key, part)| match key.as_str() {
        "parameters" => part.as_array(),
        _ => part["parameters"].as_array(),
    });
    let shared = shared.as_object().into_iter().flatten().map(|(_, parameter)| parameter);
    lists.flatten().chain(shared).any(|parameter| {
        parameter["in"] == "header"
            && parameter["name"].as_str().is_some_and(|n| n.eq_ignore_ascii_case("authorization"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_asked_for_has_credentials() {
        let document = json!({
            "security": [{ "all": [] }],
            "paths": { "/a": { "get": { "security": [{}, { "one": [], "other": ["read"] }] }, "post": { "security": [] } } },
            "components": {
                "pathItems": { "b": { "get": { "security": [{ "inside": [] }] } } },
                "securitySchemes": { "all": { "type": "http" }, "unused": { "type": "http" } },
            },
        });
        let mut asked = BTreeSet::new();
        ask(&document, &mut asked);
        assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["all", "inside", "one", "other"]);
        let config = format!("{:?}", config(&document));
        assert!(config.contains("\"all\"") && !config.contains("unused"), "{config}");
    }
}
