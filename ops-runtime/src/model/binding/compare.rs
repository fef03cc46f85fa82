//! What differs between two bindings, so that calls of one would not be calls of the other.

use super::{Binding, HttpBinding, HttpBody};

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
    // Specs of older versions lack `variant`, which then is no difference.
    let is_same = |(one, other): (&HttpBody, &HttpBody)| {
        let mut one = one.clone();
        if one.variant.is_none() || other.variant.is_none() {
            one.variant = other.variant;
        }
        one == *other
    };
    let bodies_differ =
        one.bodies.len() != other.bodies.len() || !one.bodies.iter().zip(other.bodies.iter()).all(is_same);
    let servers_differ = (&one.server, &one.server_variables) != (&other.server, &other.server_variables);
    let found = [
        ("the method", one.method != other.method),
        ("the path", one.path != other.path),
        ("the server", absolute(one) && absolute(other) && servers_differ),
        ("the security", one.security != other.security),
        ("the parameters", one.parameters != other.parameters),
        ("the request body", bodies_differ || one.content_type != other.content_type),
        ("the responses", one.responses != other.responses),
    ];
    found.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_an_older_spec_is_the_same() {
        let of = |variant: Option<u16>| {
            let mut body = HttpBody::new("application/json");
            body.variant = variant;
            let mut http = HttpBinding::new("POST", "/");
            http.bodies = vec![body].into();
            Binding::Http(http)
        };
        for (one, other, differs) in [
            (None, None, &[][..]),
            (Some(0), None, &[]),
            (None, Some(1), &[]),
            (Some(0), Some(0), &[]),
            (Some(0), Some(1), &["the request body"]),
        ] {
            assert_eq!(of(one).differences(&of(other)), differs, "{one:?} {other:?}");
        }
    }
}
