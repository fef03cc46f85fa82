//! Something for each way of authentication that a document knows.

use ops_runtime::HttpConfig;
use serde_json::Value;

/// A configuration with made-up credentials.
pub(super) fn config(document: &Value) -> HttpConfig {
    let schemes = [&document["components"]["securitySchemes"], &document["securityDefinitions"]];
    let mut config = HttpConfig::new();
    let mut cookies = Vec::new();
    let mut is_authorized = false;
    for (_, scheme) in schemes.into_iter().filter_map(Value::as_object).flatten() {
        let name = scheme["name"].as_str().unwrap_or_default();
        let authorization = match (scheme["type"].as_str(), scheme["scheme"].as_str()) {
            (Some("basic"), _) => Some("Basic YW5uOnNlY3JldA=="),
            (Some("http"), Some(scheme)) if scheme.eq_ignore_ascii_case("basic") => Some("Basic YW5uOnNlY3JldA=="),
            (Some("http" | "oauth2" | "openIdConnect"), _) => Some("Bearer token"),
            _ => None,
        };
        if let Some(value) = authorization.filter(|_| !is_authorized) {
            is_authorized = true;
            config = config.with_header("authorization", value);
        }
        match (scheme["type"].as_str(), scheme["in"].as_str()) {
            (Some("apiKey"), Some("header")) if name.eq_ignore_ascii_case("authorization") && is_authorized => {}
            (Some("apiKey"), Some("header")) => config = config.with_header(name, "key"),
            (Some("apiKey"), Some("cookie")) => cookies.push(format!("{name}=key")),
            _ => {}
        }
    }
    // Documents may not describe this header as a parameter; where they do, it stands for credentials.
    if !is_authorized && demands_authorization(document) {
        config = config.with_header("authorization", "Bearer token");
    }
    if cookies.is_empty() { config } else { config.with_header("cookie", cookies.join("; ")) }
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
