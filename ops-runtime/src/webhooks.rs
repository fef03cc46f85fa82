//! Receiving webhooks: a request is accepted only if it was signed with a secret that the sender and you share, and its
//! payload is read as the type that the API's document describes (`decode`, with the feature `registry`).
//!
//! [`WebhookVerifier::standard`] is for services that follow [Standard Webhooks](https://www.standardwebhooks.com),
//! [`WebhookVerifier::new`] for those that sign with HMAC in a way of their own.
//!
//! ```
//! use http::HeaderMap;
//! use ops_runtime::webhooks::{Algorithm, Encoding, WebhookVerifier};
//!
//! // The body must be as it arrived, byte for byte: verify it before it is parsed.
//! let body = br#"{"test": 2432232314}"#;
//! let mut headers = HeaderMap::new();
//! let signature = "sha256=504457c5eeee4d79e4c541ab9296726c7511337240b2e9b374c45af6fbe44fbe";
//! headers.insert("x-hub-signature-256", signature.parse()?);
//!
//! // GitHub; then Stripe, Shopify and Slack.
//! let github = WebhookVerifier::new("X-Hub-Signature-256", "s3cr3t")?.with_prefix("sha256=");
//! assert!(github.verify(&headers, body).is_ok());
//! let stripe = WebhookVerifier::new("Stripe-Signature", "whsec_s3cr3t")?.with_pairs("t", "v1");
//! let shopify = WebhookVerifier::new("X-Shopify-Hmac-Sha256", "s3cr3t")?.with_encoding(Encoding::Base64);
//! let slack = WebhookVerifier::new("X-Slack-Signature", "s3cr3t")?
//!     .with_prefix("v0=")
//!     .with_timestamp_header("X-Slack-Request-Timestamp", "v0:{timestamp}:{body}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Signatures are compared in constant time. If a service signs the time, too, requests whose time differs from now by more
//! than the tolerance are refused; it is five minutes by default. An attacker can replay a request within that time, and at
//! any time if only its body is signed. If doing the work twice does harm, keep the ids of the requests that were handled
//! (`webhook-id`). If the id is not signed, keep the signatures instead, since an attacker can change the id.

#[cfg(feature = "registry")]
mod decode;

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::InvalidLength;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha1::Sha1;
use sha2::{Sha256, Sha512};

#[cfg(feature = "registry")]
pub use self::decode::{decode, decode_with};
pub use crate::model::operation::Webhook;

/// How far the time of a request may be from now.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// How many signatures of a request are tried.
const MAX_SIGNATURES: usize = 32;

/// The hash function of an HMAC (RFC 2104).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// SHA-1: for services that have nothing better.
    Sha1,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How a signature is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Encoding {
    /// Hexadecimal digits of either case.
    #[default]
    Hex,
    /// Base64 (RFC 4648, section 4).
    Base64,
}

/// Verifies the signatures of the webhooks of one service. `Debug` does not show the secrets.
#[derive(Clone)]
pub struct WebhookVerifier {
    secrets: Vec<Vec<u8>>,
    header: String,
    algorithm: Algorithm,
    encoding: Encoding,
    prefix: String,
    scheme: Scheme,
    tolerance: Duration,
}

/// What is signed, and where the signature stands.
#[derive(Debug, Clone)]
enum Scheme {
    /// The body alone is signed; the header holds one signature.
    Body,
    /// `id.timestamp.body` is signed; the header holds several signatures, each with a version.
    Standard { prefix: String },
    /// `timestamp.body` is signed; the header holds both: `t=1,v1=ab`.
    Pairs { timestamp: String, signature: String },
    /// A template is signed; another header holds the timestamp.
    Template { timestamp: String, template: String },
}

impl WebhookVerifier {
    /// A verifier of [Standard Webhooks](https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md),
    /// by a symmetric secret: `whsec_` and base64.
    ///
    /// ```
    /// use ops_runtime::webhooks::WebhookVerifier;
    ///
    /// let verifier = WebhookVerifier::standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    /// # Ok::<(), ops_runtime::webhooks::WebhookError>(())
    /// ```
    ///
    /// # Errors
    /// If the secret is not base64, or is empty.
    pub fn standard(secret: &str) -> Result<Self, WebhookError> {
        let mut verifier = Self::new("", standard_key(secret)?)?;
        verifier.encoding = Encoding::Base64;
        verifier.scheme = Scheme::Standard { prefix: "webhook-".to_owned() };
        Ok(verifier)
    }

    /// A verifier of a header that holds the HMAC of the body: with SHA-256 and in hexadecimal, unless set otherwise.
    ///
    /// # Errors
    /// If the secret is empty, so that everybody could sign.
    pub fn new(header: impl Into<String>, secret: impl AsRef<[u8]>) -> Result<Self, WebhookError> {
        let verifier = Self {
            secrets: Vec::new(),
            header: header.into(),
            algorithm: Algorithm::default(),
            encoding: Encoding::default(),
            prefix: String::new(),
            scheme: Scheme::Body,
            tolerance: TOLERANCE,
        };
        verifier.with_key(secret.as_ref().to_vec())
    }

    /// Accepts another secret, too, while the service goes over to it.
    ///
    /// # Errors
    /// If the secret is empty; for Standard Webhooks, also if it is not base64.
    pub fn with_secret(self, secret: impl AsRef<[u8]>) -> Result<Self, WebhookError> {
        let key = match &self.scheme {
            Scheme::Standard { .. } => standard_key(&String::from_utf8_lossy(secret.as_ref()))?,
            _ => secret.as_ref().to_vec(),
        };
        self.with_key(key)
    }

    fn with_key(mut self, key: Vec<u8>) -> Result<Self, WebhookError> {
        if key.is_empty() {
            return Err(WebhookError::InvalidSecret("it is empty"));
        }
        self.secrets.push(key);
        Ok(self)
    }

    /// Sets the hash function; Standard Webhooks have SHA-256.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets how the signature is written.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Sets what stands before the signature, such as `sha256=`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Reads the header as pairs, of which one is the time and others are signatures of `time.body`, as Stripe's
    /// `t=1492774577,v1=5257a8..`.
    #[must_use]
    pub fn with_pairs(mut self, timestamp: impl Into<String>, signature: impl Into<String>) -> Self {
        self.scheme = Scheme::Pairs { timestamp: timestamp.into(), signature: signature.into() };
        self
    }

    /// Takes the time from another header, and expects the signature of a text in which `{timestamp}` and `{body}` are
    /// replaced. If one of them is missing, no request is accepted: one signature would do for any body, or for any time.
    #[must_use]
    pub fn with_timestamp_header(mut self, header: impl Into<String>, signed: impl Into<String>) -> Self {
        self.scheme = Scheme::Template { timestamp: header.into(), template: signed.into() };
        self
    }

    /// Sets what the headers of Standard Webhooks begin with, such as `svix-`; `webhook-` by default.
    #[must_use]
    pub fn with_header_prefix(mut self, prefix: impl Into<String>) -> Self {
        if let Scheme::Standard { prefix: known } = &mut self.scheme {
            *known = prefix.into();
        }
        self
    }

    /// Sets how far the time of a request may be from now, in either direction: five minutes by default.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies a request by its headers and its body, as they arrived.
    ///
    /// # Errors
    /// If a header is missing or malformed, if the request is too old or too new, or if no signature is right.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), WebhookError> {
        self.verify_at(headers, body, SystemTime::now())
    }

    /// Verifies a request at a given time, for tests and for requests that were kept.
    ///
    /// # Errors
    /// Those of [`verify`](Self::verify).
    pub fn verify_at(&self, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<(), WebhookError> {
        match &self.scheme {
            Scheme::Body => {
                let signature = header(headers, &self.header)?;
                self.check(&[self.unprefixed(signature)?], &[body])
            }
            Scheme::Standard { prefix } => {
                let of = |name: &str| header(headers, &format!("{prefix}{name}"));
                let (id, time, signatures) = (of("id")?, of("timestamp")?, of("signature")?);
                self.in_time(time, &format!("{prefix}timestamp"), now)?;
                // Other versions are of other algorithms.
                let signatures: Vec<&str> =
                    signatures.split_ascii_whitespace().filter_map(|signature| signature.strip_prefix("v1,")).collect();
                self.check(&signatures, &[id.as_bytes(), b".", time.as_bytes(), b".", body])
            }
            Scheme::Pairs { timestamp, signature } => {
                let pairs = header(headers, &self.header)?.split(',').filter_map(|pair| pair.trim().split_once('='));
                let mut times = pairs.clone().filter(|(name, _)| name == timestamp).map(|(_, value)| value);
                let (Some(time), None) = (times.next(), times.next()) else {
                    return Err(WebhookError::MalformedHeader(self.header.clone()));
                };
                self.in_time(time, &self.header, now)?;
                let signatures = pairs.filter(|(name, _)| name == signature).map(|(_, value)| self.unprefixed(value));
                let signatures: Vec<&str> = signatures.collect::<Result<_, _>>()?;
                self.check(&signatures, &[time.as_bytes(), b".", body])
            }
            Scheme::Template { timestamp, template } => {
                let signature = self.unprefixed(header(headers, &self.header)?)?;
                let time = header(headers, timestamp)?;
                self.in_time(time, timestamp, now)?;
                if !template.contains("{timestamp}") {
                    return Err(WebhookError::TimeNotSigned);
                }
                let (before, after) = template.split_once("{body}").ok_or(WebhookError::BodyNotSigned)?;
                let (before, after) = (before.replace("{timestamp}", time), after.replace("{timestamp}", time));
                self.check(&[signature], &[before.as_bytes(), body, after.as_bytes()])
            }
        }
    }

    fn unprefixed<'a>(&self, signature: &'a str) -> Result<&'a str, WebhookError> {
        let signature = signature.trim().strip_prefix(self.prefix.as_str());
        signature.ok_or_else(|| WebhookError::MalformedHeader(self.header.clone()))
    }

    fn in_time(&self, time: &str, header: &str, now: SystemTime) -> Result<(), WebhookError> {
        let is_number = !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit());
        let seconds: Option<u64> = time.parse().ok().filter(|_| is_number);
        let seconds = seconds.ok_or_else(|| WebhookError::MalformedHeader(header.to_owned()))?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let away = Duration::from_secs(now.abs_diff(seconds));
        if away > self.tolerance {
            return Err(WebhookError::OutOfTime { away, tolerance: self.tolerance });
        }
        Ok(())
    }

    /// Succeeds if one of the signatures is that of the parts by one of the secrets.
    fn check(&self, signatures: &[&str], parts: &[&[u8]]) -> Result<(), WebhookError> {
        for signature in signatures.iter().take(MAX_SIGNATURES) {
            let Some(signature) = self.decode(signature) else { continue };
            for secret in &self.secrets {
                let is_right = match self.algorithm {
                    Algorithm::Sha1 => is_mac::<Hmac<Sha1>>(secret, parts, &signature),
                    Algorithm::Sha256 => is_mac::<Hmac<Sha256>>(secret, parts, &signature),
                    Algorithm::Sha512 => is_mac::<Hmac<Sha512>>(secret, parts, &signature),
                };
                if is_right.unwrap_or(false) {
                    return Ok(());
                }
            }
        }
        Err(WebhookError::WrongSignature)
    }

    fn decode(&self, text: &str) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Base64 => STANDARD.decode(text).ok(),
            Encoding::Hex => {
                let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
                Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
            }
        }
    }
}

/// Compares in constant time.
fn is_mac<M: Mac + KeyInit>(secret: &[u8], parts: &[&[u8]], signature: &[u8]) -> Result<bool, InvalidLength> {
    let mut mac = <M as KeyInit>::new_from_slice(secret)?;
    parts.iter().for_each(|part| mac.update(part));
    Ok(mac.verify_slice(signature).is_ok())
}

fn standard_key(secret: &str) -> Result<Vec<u8>, WebhookError> {
    let text = secret.strip_prefix("whsec_").unwrap_or(secret);
    STANDARD.decode(text).map_err(|_| WebhookError::InvalidSecret("it is not `whsec_` and base64"))
}

/// The value of a header that must be there once.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, WebhookError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(WebhookError::MissingHeader(name.to_owned())),
        (Some(value), None) => value.to_str().map_err(|_| WebhookError::MalformedHeader(name.to_owned())),
        _ => Err(WebhookError::MalformedHeader(name.to_owned())),
    }
}

impl fmt::Debug for WebhookVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookVerifier")
            .field("header", &self.header)
            .field("scheme", &self.scheme)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// Why a webhook is not accepted. It holds nothing of the secret, and no signature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebhookError {
    /// The secret cannot be used: of the verifier, not of the request.
    InvalidSecret(&'static str),
    /// The request lacks a header.
    MissingHeader(String),
    /// A header is not as the service writes it, or is there more than once.
    MalformedHeader(String),
    /// The time of the request is too far from now.
    OutOfTime {
        /// How far it is.
        away: Duration,
        /// How far it may be.
        tolerance: Duration,
    },
    /// The text that is signed does not hold the body: a mistake of the verifier, not of the request.
    BodyNotSigned,
    /// The text that is signed does not hold the time: a mistake of the verifier, not of the request.
    TimeNotSigned,
    /// No signature is that of the body by a known secret: the secret is another, the body was changed, or a stranger
    /// sent it.
    WrongSignature,
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidSecret(why) => write!(f, "the secret of the webhook cannot be used: {why}"),
            Self::MissingHeader(name) => write!(f, "the webhook has no header `{name}`"),
            Self::MalformedHeader(name) => write!(f, "the header `{name}` of the webhook is malformed"),
            Self::OutOfTime { away, tolerance } => write!(
                f,
                "the time of the webhook is {} s from now, and may be {} s: check the clock, or raise `with_tolerance`",
                away.as_secs(),
                tolerance.as_secs()
            ),
            Self::BodyNotSigned => f.write_str("the text that the webhook signs has no `{body}`: see `with_timestamp_header`"),
            Self::TimeNotSigned => {
                f.write_str("the text that the webhook signs has no `{timestamp}`: see `with_timestamp_header`")
            }
            Self::WrongSignature => f.write_str(
                "no signature of the webhook is right: check the secret, and that the body is as it arrived, byte for byte",
            ),
        }
    }
}

impl Error for WebhookError {}
