//! References between resources: RFC 3986, as far as identifiers of schemas need it.

/// The absolute form of a reference in a document.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or(reference);
    if reference.is_empty() {
        return base.to_owned();
    }
    if scheme(reference).is_some() {
        return normal(reference);
    }
    let base = base.split('?').next().unwrap_or(base);
    let Some(length) = scheme(base) else {
        return normal(&format!("{}{reference}", if reference.starts_with('/') { "" } else { folder(base) }));
    };
    let (scheme, rest) = base.split_at(length);
    if let Some(authority) = reference.strip_prefix("//") {
        return normal(&format!("{scheme}//{authority}"));
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(inner) => rest.split_at(inner.find('/').map_or(rest.len(), |at| at + 2)),
        None => ("", rest),
    };
    if reference.starts_with('/') {
        return normal(&format!("{scheme}{authority}{reference}"));
    }
    let folder = if path.is_empty() && !authority.is_empty() { "/" } else { folder(path) };
    normal(&format!("{scheme}{authority}{folder}{reference}"))
}

/// The length of the scheme, its colon included.
fn scheme(text: &str) -> Option<usize> {
    let colon = text.find(':')?;
    let name = text.get(..colon)?;
    let legal = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    legal.then_some(colon + 1)
}

fn folder(path: &str) -> &str {
    path.rfind('/').and_then(|slash| path.get(..=slash)).unwrap_or("")
}

/// Takes the segments `.` and `..` out of a path.
fn normal(uri: &str) -> String {
    if !uri.contains("./") && !uri.ends_with("/.") && !uri.ends_with("/..") {
        return uri.to_owned();
    }
    let start = uri.find("://").map_or(0, |at| at + 3);
    let (head, path) = uri.split_at(start);
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." && kept.len() > 1 {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("{head}{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn references_are_relative_to_their_base() {
        for (base, reference, expected) in [
            ("http://a.b/c/d.json", "e.json", "http://a.b/c/e.json"),
            ("http://a.b/c/d.json", "/e.json", "http://a.b/e.json"),
            ("http://a.b/c/d.json", "../e.json", "http://a.b/e.json"),
            ("http://a.b/c/d.json", "./e.json", "http://a.b/c/e.json"),
            ("http://a.b/c/d.json", "//x.y/e", "http://x.y/e"),
            ("http://a.b/c/d.json", "urn:x:y", "urn:x:y"),
            ("http://a.b", "e", "http://a.b/e"),
            ("http://a.b/c/", "", "http://a.b/c/"),
            ("", "folder/e.json", "folder/e.json"),
            ("folder/e.json", "f.json#part", "folder/f.json"),
            ("urn:x:y", "z", "urn:z"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference} in {base}");
        }
    }
}
