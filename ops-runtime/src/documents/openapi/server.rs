//! Servers: where an operation is reached.

use serde_json::Value;

use super::document::Node;
use super::reader::Reader;
use super::short::short;
use super::version::Version;
use crate::documents::source::join;
use crate::model::text::has_scheme;
use crate::{HttpBinding, ServerVariable};

impl<'a> Reader<'a> {
    /// Notes the first server of the first place that has one.
    pub(super) fn locate(&mut self, places: &[&Node<'a>], http: &mut HttpBinding) {
        if self.version == Version::V20 {
            let [operation, .., root] = places else { return };
            http.server = self.swagger_server(operation, root).map(|url| self.absolute(&url).into());
        } else {
            self.describe_server(places, http);
        }
        // A document without servers is served from its own URL (3.1, section 4.8.1).
        if http.server.is_none() && self.location().is_some() {
            http.server = Some(self.absolute("/").into());
        }
    }

    fn describe_server(&mut self, places: &[&Node<'a>], http: &mut HttpBinding) {
        let has_items = |servers: &Node<'a>| servers.items().next().is_some();
        let Some(servers) = places.iter().find_map(|place| place.get("servers").filter(has_items)) else { return };
        let mut found = None;
        for server in servers.items() {
            found = server.text("url").map(|url| (server.clone(), url.trim()));
            if found.is_some() {
                break;
            }
            self.warn(&server, "a server without `url`", "it was left out");
        }
        let Some((server, url)) = found else { return };
        let mut variables = Vec::new();
        for name in super::parameter::template_names(url) {
            let node = server.get("variables").and_then(|variables| variables.get(name));
            variables.push(self.variable(name, node.as_ref(), &server));
        }
        http.server_variables = variables.into();
        http.server = Some(match host(url) {
            Some(host) => {
                let message = format!("the server `{}` is a relative URL that looks like a host", short(url));
                let url = format!("https://{url}");
                self.note(&server, message, format!("it is taken for `https://{}`", short(host)));
                url.into()
            }
            None => self.absolute(url).into(),
        });
    }

    fn variable(&mut self, name: &str, node: Option<&Node<'a>>, server: &Node<'a>) -> ServerVariable {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let values = node.and_then(|node| node.get("enum"));
        let values: Vec<_> = values.iter().flat_map(Node::items).map(|value| text(value.value)).collect();
        let default = node.and_then(|node| node.value.get("default")).filter(|default| !default.is_null()).map(text);
        if default.is_none() {
            let first = values.first().map_or("empty", String::as_str);
            let message = format!("the server's variable `{}` has no default", short(name));
            self.warn(server, message, format!("it is {}", short(first)));
        }
        let default = default.or_else(|| values.first().cloned()).unwrap_or_default();
        let mut variable = ServerVariable::owned(name.to_owned(), default);
        variable.values = values.into_iter().collect();
        variable
    }

    /// The URL of the root document: the one that it gives itself (3.2, section 4.1.1), or where it was read.
    pub(super) fn location(&self) -> Option<&str> {
        let root = self.documents.get(0)?;
        let own = root.value.get("$self").and_then(Value::as_str);
        let is_url = |url: &&str| url.starts_with("http://") || url.starts_with("https://");
        own.filter(is_url).or_else(|| root.location.as_deref().filter(is_url))
    }

    /// A URL resolved against the root document; it stays as it is if the location of that is unknown.
    pub(super) fn absolute(&self, url: &str) -> String {
        if has_scheme(url) || url.starts_with('{') {
            return url.to_owned();
        }
        match self.location() {
            // A server without a path is the folder of the document.
            Some(location) => join(location, if url.is_empty() { "." } else { url }),
            None if url.starts_with("//") => format!("https:{url}"),
            None if url.is_empty() => "/".to_owned(),
            None => url.to_owned(),
        }
    }
}

/// The host that a URL without a scheme begins with, if it looks like one.
fn host(url: &str) -> Option<&str> {
    let host = url.split('/').next()?;
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let last = name.rsplit_once('.').map_or("", |(_, last)| last);
    let is_domain = last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    // The names of containers have no dot: a port tells them from paths.
    let has_port = !port.is_empty() && !name.is_empty() && name.bytes().all(is_of_host);
    let is_host = name == "localhost" || is_domain || has_port;
    (is_host && !name.starts_with('.') && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(host)
}

/// True if a byte may stand in the name of a host.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_scheme() {
        for (url, found) in [
            ("api.example.com/v1", Some("api.example.com")),
            ("localhost:8080", Some("localhost:8080")),
            ("petstore:8080/v1", Some("petstore:8080")),
            ("10.0.0.7:80", Some("10.0.0.7:80")),
            ("mailto:a", None),
            ("petstore:", None),
            (":8080", None),
            ("a b:8080", None),
            ("/v1", None),
            ("v1.0", None),
            ("../v1", None),
            ("", None),
            ("https://example.com", None),
            ("{host}.example.com", Some("{host}.example.com")),
        ] {
            assert_eq!(host(url), found, "{url}");
        }
    }
}
