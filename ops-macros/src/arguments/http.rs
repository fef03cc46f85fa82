//! Reads `http = "GET /pets/{id}"`: the method, and a template of a path.

use proc_macro2::Span;
use syn::LitStr;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// A request line.
pub(crate) struct Http {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The names in braces.
    pub(crate) names: Vec<String>,
    pub(crate) span: Span,
}

impl Http {
    /// Whether the method usually has a body (RFC 9110, section 9.3).
    pub(crate) fn has_body(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// Whether the method promises to change nothing by its name alone.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    pub(crate) fn of(text: &LitStr) -> syn::Result<Self> {
        read(&text.value(), text.span()).map_err(|message| syn::Error::new(text.span(), message))
    }
}

fn read(text: &str, span: Span) -> Result<Http, String> {
    let Some((method, path)) = text.split_once(' ') else {
        return Err("expected a method and a path: \"GET /pets/{id}\"".to_owned());
    };
    if !METHODS.contains(&method) {
        return Err(format!("`{method}` is no method; the known ones are {}", METHODS.join(", ")));
    }
    if !path.starts_with('/') {
        return Err("a path begins with `/`".to_owned());
    }
    if let Some(sign) = path.chars().find(|c| matches!(c, '?' | '#') || c.is_whitespace() || c.is_control()) {
        return Err(format!("a path has no {sign:?}; what is not in the path is placed by the parameters"));
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err("no request has a path with the segments `.` and `..`".to_owned());
    }
    let names = names(path)?;
    Ok(Http { method: method.to_owned(), path: path.to_owned(), names, span })
}

/// The names in braces, each once.
fn names(path: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut pieces = path.split('{');
    let first = pieces.next().unwrap_or_default();
    let brace = || "a brace has no counterpart".to_owned();
    if first.contains('}') {
        return Err(brace());
    }
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let (name, literal) = piece.split_once('}').ok_or_else(brace)?;
        if literal.contains('}') {
            return Err(brace());
        }
        if name.is_empty() || name.contains('/') {
            return Err("between braces stands the name of a parameter".to_owned());
        }
        if literal.is_empty() && pieces.peek().is_some() {
            return Err(format!(
                "nothing separates `{{{name}}}` from the next parameter, so no server can tell where it ends"
            ));
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("`{{{name}}}` stands in the path twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_lines() {
        let names = |text: &str| read(text, Span::call_site()).map(|http| http.names);
        for (text, expected) in [
            ("GET /", &[][..]),
            ("GET /pets/{id}", &["id"]),
            ("GET /pets/", &[]),
            ("PUT /pets/{id}.json/{pet-type}-{b}", &["id", "pet-type", "b"]),
        ] {
            assert_eq!(names(text).unwrap(), expected, "{text}");
        }
        for text in [
            "/pets",
            "GET",
            "GET pets",
            "get /pets",
            "TRACE /pets",
            "GET  /pets",
            "GET /pets?a={b}",
            "GET /pets#a",
            "GET /{",
            "GET /}",
            "GET /{a}}",
            "GET /{{a}",
            "GET /{}",
            "GET /{a/b}",
            "GET /{a}/{a}",
            "GET /{a}{b}",
            "GET /a/../b",
            "GET /a b",
        ] {
            assert!(names(text).is_err(), "{text}");
        }
    }
}
