//! The types of generated code for strings of a format, if its generator is asked for them.
//!
//! Each comes with the feature of its crate; without it, and by default, such strings are text.
//!
//! ```
//! # #[cfg(feature = "chrono")] {
//! let when: ops_runtime::__generated::formats::DateTime = serde_json::from_str(r#""2026-11-22T10:00:00+01:00""#).unwrap();
//! assert_eq!(when.to_rfc3339(), "2026-11-22T10:00:00+01:00");
//! # }
//! ```

/// A `date-time` (RFC 3339, section 5.6) with its own offset.
#[cfg(feature = "chrono")]
pub type DateTime = chrono::DateTime<chrono::FixedOffset>;

/// A `date` (RFC 3339, section 5.6).
#[cfg(feature = "chrono")]
pub type Date = chrono::NaiveDate;

/// A `uuid` (RFC 9562).
#[cfg(feature = "uuid")]
pub type Uuid = uuid::Uuid;

/// A `uri` (RFC 3986), which is written in the normal form of the URL standard.
#[cfg(feature = "url")]
pub type Url = url::Url;
