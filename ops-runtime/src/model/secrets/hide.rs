//! Collecting secrets, and replacing them in texts, values and errors.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::{Map, Value};

use super::NAMES;
use super::plain::{is_written, placed, plain};
#[cfg(any(feature = "mcp", feature = "openapi"))]
use crate::Diagnostic;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// The shortest credential that is replaced, in bytes. A shorter one stands in too many words of any text.
const SHORTEST: usize = 4;

/// The shortest setting that is replaced, in bytes, unless its name says that it is a secret: most settings are none.
const SHORTEST_SETTING: usize = 8;

/// The shortest part of a URL that may be a key, in bytes.
const SHORTEST_KEY: usize = 16;

/// The headers that hold no credential; any other may.
const HARMLESS: [&str; 5] = ["accept", "accept-language", "content-length", "content-type", "user-agent"];

/// What knows the secrets that go out with a call; it is asked for them when something has failed.
pub(crate) trait KeepsSecrets: Send + Sync {
    fn collect(&self, secrets: &mut Secrets);
}

/// The texts to hide.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Secret>);

#[derive(Clone, PartialEq)]
struct Secret {
    text: String,
    /// As it is meant: servers write again what they were sent in an encoding of theirs.
    plain: Vec<u8>,
}

impl Secrets {
    pub(crate) fn of(keeper: &dyn KeepsSecrets) -> Self {
        let mut secrets = Self::default();
        keeper.collect(&mut secrets);
        secrets
    }

    /// Adds those of others.
    #[cfg(feature = "mcp")]
    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().filter(|other| !self.0.contains(other)).cloned().collect::<Vec<_>>());
    }

    /// Adds a credential, and the lines of one that has several.
    pub(crate) fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.len() < SHORTEST {
            return;
        }
        let secret = Secret { text: text.to_owned(), plain: plain(text) };
        if !self.0.contains(&secret) {
            self.0.push(secret);
        }
        if text.contains('\n') {
            text.lines().filter(|line| line.trim().len() >= SHORTEST_SETTING).for_each(|line| self.add(line));
        }
    }

    /// Adds the value of a header, a parameter or a variable, which may hold a credential or anything else.
    pub(crate) fn add_setting(&mut self, name: &str, value: &str) {
        let shortest = if names_a_secret(name) { SHORTEST } else { SHORTEST_SETTING };
        if value.trim().len() < shortest {
            return;
        }
        let is_url = || ["url", "uri"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        if value.contains("://") && (!names_a_secret(name) || is_url()) {
            self.add_url(value);
            return;
        }
        let is_one = |credential: &str| !credential.contains(' ') && credential.len() >= shortest;
        let words = value.trim().split_once(' ').filter(|(_, credential)| is_one(credential));
        if let Some((scheme, credential)) = words {
            self.add_authorization(scheme, credential);
            if name.to_ascii_lowercase().ends_with("authorization") {
                return;
            }
        }
        self.add(value);
        if name.eq_ignore_ascii_case("cookie") {
            let values = value.split(';').filter_map(|pair| Some(pair.split_once('=')?.1));
            values.filter(|value| value.len() >= SHORTEST_SETTING).for_each(|value| self.add(value));
        }
    }

    /// Adds the value of a header, unless its name says that it holds no credential.
    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        if !HARMLESS.iter().any(|harmless| harmless.eq_ignore_ascii_case(name)) {
            self.add_setting(name, value);
        }
    }

    /// Adds what stands behind the scheme of an `Authorization`.
    fn add_authorization(&mut self, scheme: &str, credential: &str) {
        self.add(credential);
        #[cfg(feature = "http")]
        if scheme.eq_ignore_ascii_case("basic") {
            use base64::Engine;
            let pair = base64::engine::general_purpose::STANDARD.decode(credential).ok();
            let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
            if let Some((user, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
                self.add_basic(user, password);
            }
        }
        #[cfg(not(feature = "http"))]
        let _ = scheme;
    }

    /// Adds a password, and the pair of user and password as basic authentication sends it. A user without a password is
    /// itself the secret: many services take a key so.
    pub(crate) fn add_basic(&mut self, user: &str, password: &str) {
        let secret = if password.is_empty() { user } else { password };
        self.add(secret);
        #[cfg(feature = "http")]
        if !secret.is_empty() {
            use base64::Engine;
            use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
            let pair = format!("{user}:{password}");
            self.add(&STANDARD.encode(&pair));
            self.add(&STANDARD_NO_PAD.encode(&pair));
            self.add(&URL_SAFE_NO_PAD.encode(&pair));
        }
    }

    /// Adds what may be secret in a URL: its password, or its user if there is no password; the values of its query, and parts
    /// of its path that look like keys.
    pub(crate) fn add_url(&mut self, url: &str) {
        let Some((_, after)) = url.split_once("://") else { return };
        let after = after.split('#').next().unwrap_or_default();
        let (path, query) = after.split_once('?').unwrap_or((after, ""));
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            self.add_setting(name, value);
        }
        let mut parts = path.split('/');
        let authority = parts.next().unwrap_or_default();
        // Some servers are called by a URL that is itself the key.
        parts.filter(|part| looks_like_key(part)).for_each(|part| self.add(part));
        let Some((user, _)) = authority.rsplit_once('@') else { return };
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        self.add_basic(user, password);
        let meant = |text: &str| String::from_utf8(plain(text)).ok();
        if let (Some(user), Some(password)) = (meant(user), meant(password)) {
            self.add_basic(&user, &password);
        }
    }

    /// The text with `***` in the place of each secret, in whichever encoding it stands there.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let as_written = |secret: &Secret| memmem::find(text.as_bytes(), secret.text.as_bytes()).is_some();
        let meant = is_written(text.as_bytes()).then(|| plain(text));
        let as_meant =
            |secret: &Secret| meant.as_ref().is_some_and(|meant| memmem::find(meant, &secret.plain).is_some());
        if !self.0.iter().any(|secret| as_written(secret) || as_meant(secret)) {
            return Cow::Borrowed(text);
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        let (bytes, places) = placed(text);
        let place = |at: usize| places.get(at).copied().unwrap_or(text.len());
        for Secret { text: secret, plain } in &self.0 {
            found.extend(memmem::find_iter(text.as_bytes(), secret).map(|at| at..at + secret.len()));
            found.extend(memmem::find_iter(&bytes, plain).map(|at| place(at)..place(at + plain.len())));
        }
        Cow::Owned(without(text, found))
    }

    /// Replaces the secrets in a value: in texts, in the names of members, and in numbers.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.text(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                if members.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
                    let renamed = std::mem::take(members).into_iter();
                    *members =
                        renamed.map(|(name, value)| (self.text(&name).into_owned(), value)).collect::<Map<_, _>>();
                }
                members.values_mut().for_each(|member| self.value(member));
            }
            Value::Number(number) => {
                if let Cow::Owned(hidden) = self.text(&number.to_string()) {
                    *value = Value::String(hidden);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// True if there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the beginning of a secret at the end of a text that was cut.
    pub(crate) fn end(&self, text: &mut String) {
        let begun = |secret: &Secret| {
            let bytes = secret.text.as_bytes();
            (SHORTEST..bytes.len())
                .rev()
                .find(|length| text.as_bytes().ends_with(bytes.get(..*length).unwrap_or_default()))
        };
        if let Some(length) = self.0.iter().filter_map(begun).max() {
            let kept = text.len() - length;
            text.truncate(text.floor_char_boundary(kept));
            text.push_str(HIDDEN);
        }
    }

    /// The diagnostic of a document without the secrets. Its pointer stays: it is made of names in the document, and would
    /// lead nowhere if one of them were replaced.
    #[cfg(any(feature = "mcp", feature = "openapi"))]
    pub(crate) fn diagnostic(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let Diagnostic { message, help, document, .. } = &mut diagnostic;
        for text in [Some(message), help.as_mut(), document.as_mut()].into_iter().flatten() {
            if let Cow::Owned(hidden) = self.text(text) {
                *text = hidden;
            }
        }
        diagnostic
    }
}

/// The text with `***` in the place of these parts.
fn without(text: &str, mut parts: Vec<Range<usize>>) -> String {
    parts.sort_unstable_by_key(|part| part.start);
    let mut out = String::with_capacity(text.len());
    let (mut at, mut is_hidden) = (0, false);
    for part in parts {
        let (start, end) = (text.floor_char_boundary(part.start.max(at)), text.ceil_char_boundary(part.end));
        if end <= at {
            continue;
        }
        if start > at || !is_hidden {
            out.push_str(text.get(at..start).unwrap_or_default());
            out.push_str(HIDDEN);
        }
        (at, is_hidden) = (end, true);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// True if a part of a URL may be a key, by its looks.
pub(crate) fn looks_like_key(part: &str) -> bool {
    part.len() >= SHORTEST_KEY && part.bytes().any(|byte| byte.is_ascii_digit())
}

/// True if a name says that what it names is secret.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests;
