//! Multipart bodies: a part for each property of an object (RFC 7578), or for each item of a list (RFC 2046).

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{BASE64, BASE64_URL, Input, header, is_any_bytes, own_type, schema};
use crate::http::media::{Form, form};
use crate::http::outgoing::Piece;
use crate::http::style::{Escape, plain};
use crate::http::{RequestBody, invalid, pointer, style};
use crate::model::media::{JSON, Media, OCTETS, covers, essence, in_charset};
use crate::model::random;
use crate::normalise::Validator;
use crate::{Body, CallError, HttpBody, HttpField};

use base64::Engine;

/// A multipart body, and what its content type says about it.
pub(super) struct Encoded {
    pub(super) boundary: String,
    /// The content type of the first part, if it has one.
    pub(super) first: Option<String>,
    pub(super) body: RequestBody,
}

/// Writes the parts; `None` if the value is neither an object nor a list and the parts have no names.
///
/// Lists repeat the part, objects and lists in lists are JSON, `null` is left out. Bytes (a [`Body`], or a string of
/// base64 where the document describes bytes and no text that it could be) are files. Another part with a style of its own
/// is written as in a form.
///
/// # Errors
/// A `VALIDATION_ERROR` with the place of a part that cannot have its type, such as an object where that is XML.
pub(super) fn encode(
    body: &HttpBody,
    essence: &str,
    value: &Value,
    input: Input<'_>,
) -> Result<Option<Encoded>, CallError> {
    let form_data = essence == "multipart/form-data";
    // Nobody must be able to guess it: in a part, it would begin others.
    let boundary = format!("ops-{}", random::key());
    let mut parts = Parts {
        pieces: Vec::new(),
        text: Vec::new(),
        boundary: &boundary,
        body,
        input,
        form_data,
        nameless: false,
        first: None,
        bytes: HashMap::new(),
        texts: HashMap::new(),
        json_texts: HashMap::new(),
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let field = body.fields.iter().find(|field| field.name == *name);
                parts.property(name, field, value)?;
            }
        }
        Value::Array(items) if !form_data => {
            parts.nameless = true;
            for item in items {
                parts.part(None, None, item, true)?;
            }
        }
        value => {
            // A value that is not an object has parts with one name, that of the binding's only field.
            let [field] = body.fields.as_ref() else { return Ok(None) };
            let name = Some(field.name.as_ref());
            parts.nameless = true;
            match value {
                Value::Array(items) => items.iter().try_for_each(|item| parts.part(name, Some(field), item, true))?,
                value => parts.part(name, Some(field), value, false)?,
            }
        }
    }
    let (first, body) = parts.finish();
    Ok(Some(Encoded { boundary, first, body }))
}

struct Parts<'a> {
    pieces: Vec<Piece>,
    /// Text before the next body.
    text: Vec<u8>,
    boundary: &'a str,
    body: &'a HttpBody,
    input: Input<'a>,
    form_data: bool,
    /// True if the body is itself the part or the list of parts, not an object of parts.
    nameless: bool,
    /// The content type of the first part, empty if it has none; `None` before the first part.
    first: Option<String>,
    /// True for names of parts that the document describes as bytes: a list may have many parts of one name.
    bytes: HashMap<String, bool>,
    /// The texts that parts of these names take besides bytes; true for items of a list.
    texts: HashMap<(String, bool), Validator>,
    /// True for names of parts that the document describes as text that is JSON already.
    json_texts: HashMap<String, bool>,
}

impl Parts<'_> {
    fn property(&mut self, name: &str, field: Option<&HttpField>, value: &Value) -> Result<(), CallError> {
        // A function distinguishes `null` from a default. Callers of other operations mean by `null` that there is no value.
        let is_nothing = value.is_null() && self.input.spec.input.is_made();
        if is_nothing || value.as_array().is_some_and(Vec::is_empty) {
            return schema::refuse_replaced(self.input.spec, &self.body.property, name, value);
        }
        let style = field.and_then(|field| field.style).filter(|_| !self.is_file(name, value));
        if let Some((style, explode)) = style {
            let mut parameter = style::form_field(name, value);
            (parameter.style, parameter.explode) = (style, explode);
            let value = self.input.json(value)?;
            let at = format!("{}{}", self.body.pointer(), pointer(name));
            style::refuse_torn(&parameter, &value, &at, Escape::None)?;
            // The pairs of a form, unescaped, since parts need no escapes.
            for pair in style::query(&parameter, &value) {
                let (name, value) = pair.split_once('=').unwrap_or((&pair, ""));
                let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
                let value = Value::String(decode(value));
                self.part(Some(&decode(name)), None, &value, false)?;
            }
            return Ok(());
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.part(Some(name), field, item, true)),
            value => self.part(Some(name), field, value, false),
        }
    }

    /// True if a value is bytes, or a list with bytes: these are written unchanged, whatever the style.
    fn is_file(&mut self, name: &str, value: &Value) -> bool {
        let has_body = match value {
            Value::Array(items) => items.iter().any(|item| self.input.body(item).is_some()),
            value => self.input.body(value).is_some(),
        };
        has_body || self.is_described_as_bytes(name)
    }

    /// Writes a value that is a part, or an item of a list with a part for each.
    fn part(
        &mut self,
        name: Option<&str>,
        field: Option<&HttpField>,
        value: &Value,
        is_item: bool,
    ) -> Result<(), CallError> {
        if value.is_null() {
            return Ok(());
        }
        // Several types may be listed; the first that fits counts.
        let described: Vec<&str> = field
            .and_then(|field| field.content_type.as_deref())
            .map_or_else(Vec::new, |types| types.split(',').map(str::trim).filter(|kind| !kind.is_empty()).collect());
        if let Some(body) = self.input.body(value) {
            let fits = |own: &str| described.is_empty() || described.iter().any(|kind| covers(kind, own));
            let kind = match own_type(body) {
                Some(own) if fits(own) => own.to_owned(),
                // All bytes are octets.
                Some(_) if described.iter().any(|kind| essence(kind) == OCTETS) => OCTETS.to_owned(),
                Some(own) if !is_any_bytes(own) => {
                    let message = format!("a part of type `{own}` is not taken, but `{}`", described.join("`, `"));
                    return Err(invalid(&self.pointer(name), message));
                }
                _ => self.type_of_file(name, &described, body)?.unwrap_or(OCTETS).to_owned(),
            };
            let file_name = body.file_name().or(name).map(str::to_owned);
            let body = body.clone();
            self.head(name, file_name.as_deref(), Some(&kind))?;
            return self.content(body);
        }
        match value {
            Value::String(text) if self.is_bytes(name, &described, value, is_item) => {
                // Parts may be described in either alphabet (`contentEncoding`), and bytes say nothing of it.
                let bytes = BASE64.decode(text).or_else(|_| BASE64_URL.decode(text)).map_err(|_| {
                    let part = name.map_or_else(|| "a part".to_owned(), |name| format!("the part `{name}`"));
                    invalid(&self.pointer(name), format!("{part} is bytes, which are written from a string of base64"))
                })?;
                self.head(name, name, Some(concrete(&described).unwrap_or(OCTETS)))?;
                self.content(bytes.into())
            }
            Value::Object(_) | Value::Array(_) => {
                let text = self.input.json(value)?.to_string();
                let kind = of_json(&described).or_else(|| concrete(&described)).unwrap_or(JSON);
                if !holds_json(kind) {
                    let message =
                        format!("a part of type `{kind}` is written from a string, not from an object or a list");
                    return Err(invalid(&self.pointer(name), message));
                }
                self.head(name, None, Some(kind))?;
                self.written(name, kind, &text)
            }
            value => {
                // In a form, a text part needs no content type.
                let usual = if self.form_data { None } else { Some("text/plain; charset=utf-8") };
                let kind = concrete(&described).or(usual);
                self.head(name, None, kind)?;
                let is_json = described.iter().any(|kind| form(kind) == Form::Json);
                let text = match value {
                    Value::String(text) if !is_json || self.is_json_text(name) => Cow::Borrowed(text),
                    value => Cow::Owned(plain(value)),
                };
                self.written(name, kind.unwrap_or_default(), &text)
            }
        }
    }

    /// The content type of a body that has none of its own. Of several, it is the one that the name of the file says.
    ///
    /// # Errors
    /// If the name says none of several.
    fn type_of_file<'k>(
        &self,
        name: Option<&str>,
        described: &[&'k str],
        body: &Body,
    ) -> Result<Option<&'k str>, CallError> {
        let file = body.file_name().filter(|_| described.len() > 1).unwrap_or_default();
        let Some((_, extension)) = file.rsplit_once('.') else { return Ok(concrete(described)) };
        // All bytes are octets.
        let of_any = || described.iter().any(|kind| covers(kind, OCTETS)).then_some(OCTETS);
        let named = of_extension(described, extension).or_else(of_any).or_else(|| of_range(described, extension));
        match named {
            Some(kind) => Ok(Some(kind)),
            None => {
                let known = described.join("`, `");
                let file = file.escape_debug();
                // A type that is not known here may be in a range all the same.
                let is_open = type_of(extension).is_none() && described.iter().any(|kind| kind.contains('*'));
                let says = if is_open { "does not say which" } else { "says none of them" };
                let message = format!("the part is one of `{known}`, and `{file}` {says}: set its content type");
                Err(invalid(&self.pointer(name), message))
            }
        }
    }

    /// The content of a text part, in the charset of its type.
    fn written(&mut self, name: Option<&str>, kind: &str, text: &str) -> Result<(), CallError> {
        let bytes = in_charset(kind, text).ok_or_else(|| {
            let message = format!("a part of type `{kind}` is written from text of that charset");
            invalid(&self.pointer(name), message)
        })?;
        self.content(bytes.into())
    }

    /// The place of a part in the input.
    fn pointer(&self, name: Option<&str>) -> String {
        let at = name.filter(|_| !self.nameless).map_or_else(String::new, pointer);
        format!("{}{at}", self.body.pointer())
    }

    /// True if a string stands for bytes: by its content type, or by its schema.
    fn is_bytes(&mut self, name: Option<&str>, described: &[&str], text: &Value, is_item: bool) -> bool {
        let of_type = !described.is_empty() && described.iter().all(|kind| form(kind) == Form::Bytes);
        let name = name.unwrap_or_default();
        // A file may have the type of a text, or that of JSON.
        of_type || self.is_described_as_bytes(name) && !self.is_described_as_text(name, text, is_item)
    }

    /// True if the schema takes a text besides bytes, and this one is such a text.
    fn is_described_as_text(&mut self, name: &str, text: &Value, is_item: bool) -> bool {
        let (spec, property) = (self.input.spec, &self.body.property);
        let texts = self.texts.entry((name.to_owned(), is_item)).or_insert_with(|| match self.nameless {
            true => schema::all_texts(spec, property, is_item),
            false => schema::texts_of(spec, property, name, is_item),
        });
        texts.check(text)
    }

    fn is_described_as_bytes(&mut self, name: &str) -> bool {
        if let Some(known) = self.bytes.get(name) {
            return *known;
        }
        let (spec, property) = (self.input.spec, &self.body.property);
        let is_bytes = match self.nameless {
            true => schema::is_all_binary(spec, property),
            false => schema::is_binary(spec, property, name),
        };
        self.bytes.insert(name.to_owned(), is_bytes);
        is_bytes
    }

    /// True if a string is JSON already: by its schema.
    fn is_json_text(&mut self, name: Option<&str>) -> bool {
        let Some(name) = name else { return false };
        if let Some(known) = self.json_texts.get(name) {
            return *known;
        }
        let is_json = schema::is_json_text(self.input.spec, &self.body.property, name);
        self.json_texts.insert(name.to_owned(), is_json);
        is_json
    }

    fn head(&mut self, name: Option<&str>, file_name: Option<&str>, kind: Option<&str>) -> Result<(), CallError> {
        self.first.get_or_insert_with(|| kind.unwrap_or_default().to_owned());
        self.text.extend_from_slice(b"--");
        self.text.extend_from_slice(self.boundary.as_bytes());
        self.text.extend_from_slice(b"\r\n");
        if let Some(name) = name {
            let file_name = file_name.map_or_else(String::new, |file| format!("; filename=\"{}\"", quoted(file)));
            let line = format!("Content-Disposition: form-data; name=\"{}\"{file_name}\r\n", quoted(name));
            self.text.extend_from_slice(line.as_bytes());
        }
        if let Some(kind) = kind {
            self.text.extend_from_slice(b"Content-Type: ");
            self.text.extend_from_slice(header(kind)?.as_bytes());
            self.text.extend_from_slice(b"\r\n");
        }
        self.text.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn content(&mut self, body: Body) -> Result<(), CallError> {
        let piece = match body.into_memory() {
            Ok(bytes) => Piece::Bytes(bytes),
            Err(body) => Piece::Body(body, None),
        };
        self.pieces.push(Piece::Bytes(Bytes::from(std::mem::take(&mut self.text))));
        self.pieces.push(piece);
        self.text.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The content type of the first part, and the body.
    fn finish(mut self) -> (Option<String>, RequestBody) {
        self.text.extend_from_slice(b"--");
        self.text.extend_from_slice(self.boundary.as_bytes());
        self.text.extend_from_slice(b"--\r\n");
        self.pieces.push(Piece::Bytes(Bytes::from(self.text)));
        (self.first.filter(|kind| !kind.is_empty()), RequestBody::of(self.pieces))
    }
}

/// The first content type that is not a range.
fn concrete<'a>(described: &[&'a str]) -> Option<&'a str> {
    described.iter().find(|kind| !essence(kind).contains('*')).copied()
}

/// The content type that files with this extension have. Most types are named as the extension is.
fn of_extension<'a>(described: &[&'a str], extension: &str) -> Option<&'a str> {
    let extension = extension.to_ascii_lowercase();
    let meant = match extension.as_str() {
        "jpg" => "jpeg",
        "tif" => "tiff",
        "txt" | "log" => "plain",
        "htm" => "html",
        "md" => "markdown",
        "yml" => "yaml",
        "js" => "javascript",
        "gz" => "gzip",
        "mp3" | "mpg" => "mpeg",
        "m4a" => "mp4",
        "mov" => "quicktime",
        "doc" => "msword",
        "xls" => "vnd.ms-excel",
        "ppt" => "vnd.ms-powerpoint",
        "docx" => "vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "vnd.openxmlformats-officedocument.presentationml.presentation",
        same => same,
    };
    let is_meant = |kind: &&&str| {
        let essence = essence(kind);
        let sub = essence.split_once('/').map_or("", |(_, sub)| sub);
        let sub = sub.strip_prefix("x-").unwrap_or(sub);
        // Some documents write `image/jpg`.
        sub == meant || sub == extension || sub.split_once('+').is_some_and(|(sub, _)| sub == meant)
    };
    // A file of JSON may be `application/vnd.api+json`, if there is no JSON by name.
    let is_based_on = |kind: &&&str| essence(kind).rsplit_once('+').is_some_and(|(_, base)| base == meant);
    described.iter().find(is_meant).or_else(|| described.iter().find(is_based_on)).copied()
}

/// The content type that files with this extension have, if one of the ranges takes it.
fn of_range(described: &[&str], extension: &str) -> Option<&'static str> {
    type_of(extension).filter(|own| described.iter().any(|kind| covers(kind, own)))
}

/// The content type of files that are often sent, by their extension.
fn type_of(extension: &str) -> Option<&'static str> {
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "tif" | "tiff" => "image/tiff",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "txt" | "log" => "text/plain",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        "md" => "text/markdown",
        "json" => JSON,
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        _ => return None,
    })
}

/// The first content type that is JSON, or else JSON itself if a range takes it.
fn of_json<'a>(described: &[&'a str]) -> Option<&'a str> {
    let named = described.iter().find(|kind| form(kind) == Form::Json && !essence(kind).contains('*')).copied();
    named.or_else(|| described.iter().any(|kind| covers(kind, JSON)).then_some(JSON))
}

/// True if a part of a content type may hold JSON: it is JSON, lines of it, or plain text.
fn holds_json(kind: &str) -> bool {
    form(kind) == Form::Json || Media::of(kind).is_lines() || essence(kind) == "text/plain"
}

/// A name between quotation marks, escaped as browsers do (WHATWG HTML, section 4.10.21.8).
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => text.push_str("%22"),
            '\r' => text.push_str("%0D"),
            '\n' => text.push_str("%0A"),
            // Other control characters do not end a line, but parsers should not have to handle them.
            c if c.is_ascii_control() => text.push_str(&format!("%{:02X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}
