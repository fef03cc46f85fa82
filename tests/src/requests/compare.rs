//! Whether what arrived is what must arrive, member by member.

use serde_json::Value;

use super::expected::{Body, Expected, Holds, Part, PartContent};
use super::media::{Media, essence};
use super::server::Arrived;
use super::style::{Text, unescaped};

/// A place where a request is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The place in the request.
    pub place: String,
    /// What must be there.
    pub expected: String,
    /// What is.
    pub found: String,
}

/// What a client says that it is, unless a parameter does: the crates of the project have one version.
const USER_AGENT: &str = concat!("ops-runtime/", env!("CARGO_PKG_VERSION"));

/// Nothing at all.
const NOTHING: &str = "nothing";

impl Difference {
    pub(super) fn new(place: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { place: place.into(), expected: expected.into(), found: found.into() }
    }
}

/// Every difference between a request that arrived below a base path and what must arrive.
pub(super) async fn differences(expected: &Expected, arrived: &Arrived, base: &str) -> Vec<Difference> {
    let mut found = Vec::new();
    if expected.method != arrived.method {
        found.push(Difference::new("method", &expected.method, &arrived.method));
    }
    let path = Text::Bytes(expected.path.clone());
    let below = arrived.path.strip_prefix(base);
    // The path of a whole server is `/`, with or without a base.
    let below = if below == Some("") && path.plain() == "/" { Some("/") } else { below };
    if !below.is_some_and(|below| path.is(below.as_bytes(), false)) {
        found.push(Difference::new("path", format!("{base}{path}"), &arrived.path));
    }
    let query = arrived.query.as_deref().unwrap_or_default();
    let pairs: Vec<&[u8]> = query.as_bytes().split(|b| *b == b'&').filter(|pair| !pair.is_empty()).collect();
    texts("query", &expected.query, &pairs, &mut found);
    headers(expected, arrived, &mut found);
    body(expected.body.as_ref(), arrived, &mut found).await;
    found
}

/// Compares texts of which the order says nothing, but for those that are alike.
fn texts(place: &str, expected: &[Text], arrived: &[&[u8]], found: &mut Vec<Difference>) {
    // Only a form has a `+` for a space.
    let is_form = place != "cookie";
    let mut left: Vec<&[u8]> = arrived.to_vec();
    let mut missing = Vec::new();
    for text in expected {
        match left.iter().position(|arrived| text.is(arrived, is_form)) {
            Some(at) => _ = left.remove(at),
            None => missing.push(text.plain()),
        }
    }
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    for text in missing {
        let own = name(&text);
        let alike = left.iter().position(|pair| name(&String::from_utf8_lossy(&unescaped(pair))) == own);
        let other = alike.map_or(NOTHING.into(), |at| String::from_utf8_lossy(left.remove(at)).into_owned());
        found.push(Difference::new(format!("{place} `{own}`"), text, other));
    }
    for pair in left {
        let text = String::from_utf8_lossy(pair);
        found.push(Difference::new(format!("{place} `{}`", name(&text)), NOTHING, text));
    }
}

fn headers(expected: &Expected, arrived: &Arrived, found: &mut Vec<Difference>) {
    for (name, value) in &expected.headers {
        let texts: Vec<_> = arrived.header(name).map(|value| String::from_utf8_lossy(value)).collect();
        if texts.iter().map(AsRef::as_ref).ne([value.as_str()]) {
            let text = if texts.is_empty() { NOTHING.to_owned() } else { texts.join(" and ") };
            found.push(Difference::new(format!("header `{name}`"), value, text));
        }
    }
    let cookies: Vec<&[u8]> = arrived.header("cookie").map(AsRef::as_ref).collect();
    let cookies = cookies.join(&b"; "[..]);
    let pairs = String::from_utf8_lossy(&cookies).into_owned();
    let pairs: Vec<&[u8]> = pairs.split("; ").filter(|pair| !pair.is_empty()).map(str::as_bytes).collect();
    texts("cookie", &expected.cookies, &pairs, found);
    for (name, value) in &arrived.headers {
        let text = String::from_utf8_lossy(value);
        let is_expected = expected.headers.iter().any(|(own, _)| own == name);
        let problem = match name.as_str() {
            _ if is_expected => None,
            "cookie" | "content-type" | "host" => None,
            "accept" => accept(&expected.accept, &text),
            "content-length" => length(arrived, &text),
            "user-agent" => (text != USER_AGENT).then(|| USER_AGENT.to_owned()),
            _ => Some(NOTHING.to_owned()),
        };
        if let Some(due) = problem {
            found.push(Difference::new(format!("header `{name}`"), due, text));
        }
    }
    for name in ["accept", "host"] {
        if arrived.header(name).count() != 1 {
            found.push(Difference::new(format!("header `{name}`"), "one", arrived.header(name).count().to_string()));
        }
    }
}

/// What `Accept` must be, unless it is: the document's types, JSON before others.
fn accept(types: &[String], text: &str) -> Option<String> {
    let due = if types.is_empty() { "*/*".to_owned() } else { types.join(", ") };
    let entries = split_unquoted(text);
    let found: Vec<(String, bool)> = entries
        .iter()
        .map(|entry| match entry.trim().rsplit_once(";q=") {
            Some((kind, _)) => (kind.trim().to_owned(), true),
            None => (entry.trim().to_owned(), false),
        })
        .collect();
    if types.is_empty() {
        return (text != "*/*").then_some(due);
    }
    let types: Vec<&str> = types.iter().map(|kind| kind.trim()).collect();
    let is_json = |kind: &str| Media::of(kind) == Media::Json && !kind.contains('*');
    let is_ranked = types.iter().any(|kind| is_json(kind)) && !types.iter().all(|kind| is_json(kind));
    let has_all = types.iter().all(|kind| found.iter().filter(|(own, _)| own == kind).count() == 1);
    let is_right =
        found.iter().all(|(kind, is_less)| types.contains(&kind.as_str()) && *is_less == (is_ranked && !is_json(kind)));
    (!has_all || !is_right).then_some(due)
}

/// The items of a list, which may have quoted commas.
fn split_unquoted(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut is_quoted = false;
    for c in text.chars() {
        is_quoted ^= c == '"';
        if c == ',' && !is_quoted {
            items.push(String::new());
        } else if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items
}

fn length(arrived: &Arrived, text: &str) -> Option<String> {
    let due = arrived.body.len().to_string();
    let may_be_empty = ["POST", "PUT", "PATCH"].contains(&arrived.method.as_str());
    let is_told = !arrived.body.is_empty() || may_be_empty || arrived.header("content-type").next().is_some();
    (text != due || !is_told).then_some(due)
}

async fn body(expected: Option<&Body>, arrived: &Arrived, found: &mut Vec<Difference>) {
    let kinds: Vec<_> = arrived.header("content-type").map(|kind| String::from_utf8_lossy(kind).into_owned()).collect();
    let Some(expected) = expected else {
        if !arrived.body.is_empty() {
            found.push(Difference::new("body", NOTHING, shown(&arrived.body)));
        }
        if !kinds.is_empty() {
            found.push(Difference::new("header `content-type`", NOTHING, kinds.join(" and ")));
        }
        return;
    };
    let kind = kinds.first().cloned().unwrap_or_default();
    if kinds.len() != 1 || !is_type(expected, &kind) {
        found.push(Difference::new("header `content-type`", &expected.content_type, kinds.join(" and ")));
    }
    match &expected.holds {
        Holds::Json(value) => match serde_json::from_slice::<Value>(&arrived.body) {
            Ok(other) => values("body", value, &other, found),
            Err(_) => found.push(Difference::new("body", value.to_string(), shown(&arrived.body))),
        },
        Holds::Lines(expected) => {
            let lines = arrived.body.split(|b| *b == b'\n').map(|line| line.strip_prefix(b"\x1e").unwrap_or(line));
            let lines = lines.filter(|line| !line.is_empty());
            let arrived: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap_or_default()).collect();
            values("body", &Value::from(expected.clone()), &Value::from(arrived), found);
        }
        Holds::Form(fields) => {
            let pairs: Vec<&[u8]> = arrived.body.split(|b| *b == b'&').filter(|pair| !pair.is_empty()).collect();
            texts("field", fields, &pairs, found);
        }
        Holds::Text(text) if arrived.body == text.as_bytes() => {}
        Holds::Text(text) => found.push(Difference::new("body", text, shown(&arrived.body))),
        Holds::Bytes(bytes) if arrived.body == bytes => {}
        Holds::Bytes(bytes) => found.push(Difference::new("body", shown(bytes), shown(&arrived.body))),
        Holds::Parts(parts) => match read_parts(&kind, arrived).await {
            Ok(others) => compare_parts(parts, &others, found),
            Err(error) => found.push(Difference::new("body", "a multipart body", error)),
        },
    }
}

/// Whether a content type is the one that is due: with a boundary of its own, and the charset of text that needs one.
fn is_type(expected: &Body, kind: &str) -> bool {
    let parameters = |text: &str| -> Vec<String> {
        let parameters = text.split(';').skip(1).map(|parameter| parameter.trim().to_ascii_lowercase());
        parameters.filter(|p| !p.is_empty() && !p.starts_with("boundary=")).collect()
    };
    let mut due = parameters(&expected.content_type);
    if let Holds::Text(text) = &expected.holds
        && !text.is_ascii()
        && !due.iter().any(|parameter| parameter.starts_with("charset="))
    {
        due.push("charset=utf-8".to_owned());
    }
    essence(kind) == essence(&expected.content_type) && parameters(kind) == due
}

/// Compares JSON, member by member.
pub(super) fn values(place: &str, expected: &Value, arrived: &Value, found: &mut Vec<Difference>) {
    match (expected, arrived) {
        (Value::Object(expected), Value::Object(arrived)) => {
            for (name, value) in expected {
                let place = format!("{place}/{name}");
                match arrived.get(name) {
                    Some(other) => values(&place, value, other, found),
                    None => found.push(Difference::new(place, value.to_string(), NOTHING)),
                }
            }
            let extra = arrived.iter().filter(|(name, _)| !expected.contains_key(*name));
            found.extend(
                extra.map(|(name, value)| Difference::new(format!("{place}/{name}"), NOTHING, value.to_string())),
            );
        }
        (Value::Array(expected), Value::Array(arrived)) if expected.len() == arrived.len() => {
            let both = expected.iter().zip(arrived).enumerate();
            both.for_each(|(number, (value, other))| values(&format!("{place}/{number}"), value, other, found));
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() && one.as_f64().is_some() => {}
        (one, other) if one == other => {}
        (one, other) => found.push(Difference::new(place, one.to_string(), other.to_string())),
    }
}

/// The parts of a multipart body, read by a library.
async fn read_parts(kind: &str, arrived: &Arrived) -> Result<Vec<Part>, String> {
    let boundary = kind.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="));
    let boundary = boundary.ok_or("no boundary")?.trim_matches('"');
    let body = arrived.body.clone();
    let stream = futures_util::stream::once(async move { Ok::<_, std::convert::Infallible>(body) });
    let mut reader = multer::Multipart::new(stream, boundary);
    let mut parts = Vec::new();
    while let Some(field) = reader.next_field().await.map_err(|error| error.to_string())? {
        let name = field.name().map(str::to_owned);
        let is_file = field.file_name().is_some();
        let content_type = field.headers().get("content-type");
        let content_type = content_type.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let bytes = field.bytes().await.map_err(|error| error.to_string())?;
        parts.push(Part { name, is_file, content_type, content: PartContent::Bytes(bytes.to_vec()) });
    }
    Ok(parts)
}

fn compare_parts(expected: &[Part], arrived: &[Part], found: &mut Vec<Difference>) {
    let is_same = |one: &Part, other: &Part| {
        let content = match (&one.content, &other.content) {
            (PartContent::Json(value), PartContent::Bytes(bytes)) => {
                serde_json::from_slice::<Value>(bytes).is_ok_and(|found| found == *value)
            }
            (one, other) => one == other,
        };
        content && one.name == other.name && one.is_file == other.is_file && one.content_type == other.content_type
    };
    let mut left: Vec<&Part> = arrived.iter().collect();
    for part in expected {
        let at = left.iter().position(|other| is_same(part, other));
        if let Some(at) = at {
            left.remove(at);
            continue;
        }
        let alike = left.iter().position(|other| part.name == other.name);
        let other = alike.map_or(NOTHING.to_owned(), |at| described(left.remove(at)));
        let place = format!("part `{}`", part.name.as_deref().unwrap_or_default());
        found.push(Difference::new(place, described(part), other));
    }
    for part in left {
        let place = format!("part `{}`", part.name.as_deref().unwrap_or_default());
        found.push(Difference::new(place, NOTHING, described(part)));
    }
}

fn described(part: &Part) -> String {
    let content = match &part.content {
        PartContent::Json(value) => value.to_string(),
        PartContent::Bytes(bytes) => shown(bytes),
    };
    let file = if part.is_file { "a file, " } else { "" };
    format!("{file}{}: {content}", part.content_type.as_deref().unwrap_or("no content type"))
}

fn shown(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}

/// Compares two requests as they are, but for the boundaries of their bodies.
pub(super) fn raw(typed: &Arrived, by_id: &Arrived, found: &mut Vec<Difference>) {
    let (one, other) = (without_boundary(typed), without_boundary(by_id));
    for (name, one, other) in [
        ("method", one.method.as_bytes(), other.method.as_bytes()),
        ("path", one.path.as_bytes(), other.path.as_bytes()),
        (
            "query",
            one.query.as_deref().unwrap_or_default().as_bytes(),
            other.query.as_deref().unwrap_or_default().as_bytes(),
        ),
        ("body", &one.body, &other.body),
    ] {
        if one != other {
            found.push(Difference::new(format!("the same by id: {name}"), shown(other), shown(one)));
        }
    }
    if one.headers != other.headers {
        let text = |arrived: &Arrived| format!("{:?}", arrived.headers);
        found.push(Difference::new("the same by id: headers", text(&other), text(&one)));
    }
}

/// The request with an `x` for each letter of the boundary.
fn without_boundary(arrived: &Arrived) -> Arrived {
    let mut arrived = arrived.clone();
    let kind = arrived.header("content-type").next().map(|kind| String::from_utf8_lossy(kind).into_owned());
    let boundary = kind.as_deref().and_then(|kind| kind.split("boundary=").nth(1)).map(str::to_owned);
    let Some(boundary) = boundary.filter(|boundary| !boundary.is_empty()) else { return arrived };
    let replaced = |bytes: &[u8]| {
        let mut out = Vec::new();
        let mut left = bytes;
        while !left.is_empty() {
            match left.strip_prefix(boundary.as_bytes()) {
                Some(tail) => {
                    out.extend(std::iter::repeat_n(b'x', boundary.len()));
                    left = tail;
                }
                None => {
                    out.push(left[0]);
                    left = &left[1..];
                }
            }
        }
        bytes::Bytes::from(out)
    };
    arrived.body = replaced(&arrived.body);
    arrived.headers.iter_mut().for_each(|(_, value)| *value = replaced(value));
    arrived
}
