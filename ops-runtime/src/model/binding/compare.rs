//! What differs between two bindings, so that calls of one would not be calls of the other.

use super::{Binding, HttpBinding};

impl Binding {
    /// The binding in words, to follow others: ``, `GET /pets` ``; empty for a handler of this process.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Http(http) => format!(", `{} {}`", http.method, http.path),
            Self::Mcp(mcp) => format!(", the tool `{}`", mcp.tool),
            Self::Local => String::new(),
        }
    }

    /// True if the kind of an operation is only what its server hints at, and may differ between two readings.
    pub(crate) fn only_hints_at_kind(&self) -> bool {
        matches!(self, Self::Mcp(_))
    }

    /// What differs between two bindings, such as `the path`; empty if one can stand for the other.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        match (self, other) {
            (Self::Http(one), Self::Http(other)) => of_http(one, other),
            (Self::Mcp(one), Self::Mcp(other)) if one.tool != other.tool => vec!["the tool"],
            (one, other) if one != other => vec!["the binding"],
            _ => Vec::new(),
        }
    }

    /// What differs between the endpoints that two bindings lead to, whatever these take and give.
    pub(crate) fn leads_elsewhere(&self, other: &Self) -> Option<&'static str> {
        match (self, other) {
            (Self::Http(one), Self::Http(other)) if one.method != other.method => Some("the method"),
            (Self::Http(one), Self::Http(other)) if one.path != other.path => Some("the path"),
            (Self::Mcp(one), Self::Mcp(other)) if one.tool != other.tool => Some("the tool"),
            _ => None,
        }
    }
}

fn of_http(one: &HttpBinding, other: &HttpBinding) -> Vec<&'static str> {
    // A URL that is relative depends on where the document was read.
    let absolute = |http: &HttpBinding| http.server.as_ref().is_some_and(|url| url.contains("://"));
    let servers_differ = (&one.server, &one.server_variables) != (&other.server, &other.server_variables);
    let found = [
        ("the method", one.method != other.method),
        ("the path", one.path != other.path),
        ("the server", absolute(one) && absolute(other) && servers_differ),
        ("the security", one.security != other.security),
        ("the parameters", one.parameters != other.parameters),
        ("the request body", (&one.bodies, &one.content_type) != (&other.bodies, &other.content_type)),
        ("the responses", one.responses != other.responses),
    ];
    found.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}
