//! The ids of jobs.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::model::hex::hex;
use crate::model::random;

/// The longest name of a queue, in bytes.
const MAX_QUEUE: usize = 64;
/// Number of digits of a token: 128 bits.
const TOKEN: usize = 32;

/// The id of a job, which is text: `<queue>.<lane>.<token>`.
///
/// The lane is that of the tenant. The token is random, or a hash of all that identifies a key. So submits of the same
/// key for the same operation, tenant and identity have the same id.
///
/// ```
/// use ops_runtime::durable::JobId;
///
/// let id: JobId = "jobs.7.0123456789abcdef0123456789abcdef".parse()?;
/// assert_eq!((id.queue(), id.lane()), ("jobs", 7));
/// # Ok::<(), ops_runtime::durable::InvalidJobId>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    text: Arc<str>,
}

impl JobId {
    /// A unique id.
    pub(super) fn random(queue: &str, lane: u16) -> Self {
        Self::of(queue, lane, &random::key())
    }

    /// The id of a key, which is all of these texts.
    pub(super) fn of_key(queue: &str, lane: u16, key: &[&str]) -> Self {
        Self::of(queue, lane, &hash(key))
    }

    fn of(queue: &str, lane: u16, token: &str) -> Self {
        Self { text: format!("{queue}.{lane}.{token}").into() }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, without copying it.
    #[cfg(feature = "jetstream")]
    pub(super) fn text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// The queue.
    pub fn queue(&self) -> &str {
        self.text.split('.').next().unwrap_or_default()
    }

    /// The lane of the tenant.
    pub fn lane(&self) -> u16 {
        self.text.split('.').nth(1).and_then(|lane| lane.parse().ok()).unwrap_or_default()
    }

    /// The unique part: 32 hexadecimal digits.
    pub fn token(&self) -> &str {
        self.text.rsplit('.').next().unwrap_or_default()
    }
}

/// True if the text can be the name of a queue: lower-case letters, digits, `_` and `-`.
pub(super) fn is_queue(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_QUEUE && name.bytes().all(is_plain)
}

/// A hash of texts as 32 hexadecimal digits.
pub(super) fn hash(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        // With its length, so that different lists have different hashes.
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    let digest = hasher.finalize();
    hex(digest.get(..TOKEN / 2).unwrap_or_default())
}

impl FromStr for JobId {
    type Err = InvalidJobId;

    fn from_str(text: &str) -> Result<Self, InvalidJobId> {
        let mut parts = text.split('.');
        let (queue, lane, token) = (parts.next(), parts.next(), parts.next());
        // Each number has one form.
        let is_plain = |lane: &str| lane == "0" || lane.starts_with(|digit| matches!(digit, '1'..='9'));
        let is_lane = |lane: &str| is_plain(lane) && lane.parse::<u16>().is_ok();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = |token: &str| token.len() == TOKEN && token.bytes().all(is_digit);
        let is_id = queue.is_some_and(is_queue) && lane.is_some_and(is_lane) && token.is_some_and(is_token);
        if is_id && parts.next().is_none() { Ok(Self { text: text.into() }) } else { Err(InvalidJobId) }
    }
}

/// For lookups by text.
impl Borrow<str> for JobId {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = JobId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id of a job")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<JobId, E> {
                text.parse().map_err(E::custom)
            }
        }

        d.deserialize_str(Text)
    }
}

/// The error of parsing a text that is not the id of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidJobId;

impl fmt::Display for InvalidJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no id of a job: write `<queue>.<lane>.<token>`, as `JobId` shows it")
    }
}

impl std::error::Error for InvalidJobId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back() {
        let token = "0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (format!("jobs.0.{token}"), true),
            (format!("my_jobs-2.65535.{token}"), true),
            (format!("jobs.65536.{token}"), false),
            (format!("jobs.01.{token}"), false),
            (format!("jobs.+1.{token}"), false),
            (format!("Jobs.1.{token}"), false),
            (format!(".1.{token}"), false),
            (format!("jobs.1.{token}."), false),
            (format!("jobs.1.{token}0"), false),
            (format!("jobs.1.{}", token.to_uppercase()), false),
            ("jobs.1".to_owned(), false),
            ("jobs.*.>".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(text.parse::<JobId>().is_ok(), expected, "{text}");
        }
        let id = JobId::random("jobs", 3);
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_eq!((id.queue(), id.lane(), id.token().len()), ("jobs", 3, 32));
    }

    #[test]
    fn a_key_is_all_of_its_texts() {
        let of = |key: &[&str]| JobId::of_key("jobs", 0, key);
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
