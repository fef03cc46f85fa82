//! Bodies that are bytes: uploads and downloads.
//!
//! A [`Body`] is a field of an input or the whole output of an operation, wherever a document says
//! `{"type":"string","format":"binary"}`. In JSON it is a string of base64. A binding that streams, such as HTTP, sends
//! and receives the bytes themselves, and need not hold all of them in memory.
//!
//! ```
//! use ops_runtime::Body;
//!
//! let body = Body::from("hello").with_file_name("hello.txt").with_content_type("text/plain");
//! assert_eq!(body.as_bytes(), Some(&b"hello"[..]));
//! assert_eq!(serde_json::to_value(&body)?, "aGVsbG8=");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod base64;
#[cfg(feature = "registry")]
pub(crate) mod handover;
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) mod measured;
#[cfg(any(feature = "http", feature = "http-server", feature = "mcp-server"))]
pub(crate) mod pieces;
#[cfg(feature = "registry")]
mod read;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_core::{Deserialize, Deserializer, Serialize, Serializer, ser};

#[cfg(feature = "registry")]
pub use read::BodyStream;
#[cfg(feature = "registry")]
pub(crate) use read::Shared;

/// Bytes that are shared, not copied.
#[cfg(feature = "registry")]
type Data = bytes::Bytes;
#[cfg(not(feature = "registry"))]
type Data = Arc<[u8]>;

/// A body of bytes: held in memory, in a file, or read from a stream.
///
/// In JSON it is a string of base64. A string that is not base64, as some servers send, is kept unchanged, and its
/// bytes are those of its text. A file or a stream has no JSON: it can only be sent by a binding that streams.
/// Likewise, only such bindings use the file name and the content type.
///
/// A clone is the same body. A stream can be read once only, by the first reader.
#[derive(Clone, Default)]
pub struct Body {
    content: Content,
    file_name: Option<Arc<str>>,
    content_type: Option<Arc<str>>,
}

#[derive(Clone)]
enum Content {
    Bytes(Data),
    /// A string of foreign JSON that is not base64.
    Text(Arc<str>),
    File(Arc<Path>),
    #[cfg(feature = "registry")]
    Stream(Shared),
}

impl Default for Content {
    fn default() -> Self {
        Self::Bytes(Data::default())
    }
}

impl Body {
    /// The content of a file, which is opened anew each time the body is read or sent.
    ///
    /// Its name is the body's file name. A pipe or a device, such as `/dev/stdin`, is sent once, like a stream, because it
    /// cannot be read again. The same holds for a file that has contents but a size of 0, as below `/proc`.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path: PathBuf = path.into();
        let file_name = path.file_name().map(|name| Arc::from(name.to_string_lossy()));
        Self { content: Content::File(path.into()), file_name, content_type: None }
    }

    /// Sets the name of the body's file for the receiver.
    #[must_use]
    pub fn with_file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into().into());
        self
    }

    /// Sets the content type, such as `image/png`.
    #[must_use]
    pub fn with_content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into().into());
        self
    }

    /// The file name, if there is one.
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// The content type, if it is known.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// The bytes, if they are in memory.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The path of the file that the body is read from, if there is one.
    pub fn as_path(&self) -> Option<&Path> {
        match &self.content {
            Content::File(path) => Some(path),
            _ => None,
        }
    }

    /// The body in JSON: base64, or the text that it was read from.
    fn text(&self) -> Result<Cow<'_, str>, &'static str> {
        match &self.content {
            Content::Bytes(bytes) => Ok(Cow::Owned(base64::encode(bytes))),
            Content::Text(text) => Ok(Cow::Borrowed(text)),
            Content::File(_) => Err("a file has no JSON: it passes only through a binding that streams, such as HTTP"),
            #[cfg(feature = "registry")]
            Content::Stream(_) => {
                Err("a stream has no JSON: it passes only through a binding that streams, such as HTTP")
            }
        }
    }

    /// How many bytes a text of JSON stands for, as it is read.
    #[cfg(feature = "registry")]
    pub(crate) fn length_of_text(text: &str) -> usize {
        base64::length(text).unwrap_or(text.len())
    }

    fn of_text(text: &str) -> Self {
        #[cfg(feature = "registry")]
        if let Some(given) = handover::given(text) {
            return given;
        }
        match base64::decode(text) {
            Some(bytes) => Self::from(bytes),
            None => Self { content: Content::Text(text.into()), ..Self::default() },
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { content: Content::Bytes(bytes.into()), ..Self::default() }
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Body {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl PartialEq for Body {
    /// Bodies in memory are equal by their bytes, files by their paths; a stream equals only its clones.
    fn eq(&self, other: &Self) -> bool {
        let content = match (&self.content, &other.content) {
            (Content::File(a), Content::File(b)) => a == b,
            #[cfg(feature = "registry")]
            (Content::Stream(a), Content::Stream(b)) => a.same(b),
            _ => self.as_bytes().is_some() && self.as_bytes() == other.as_bytes(),
        };
        content && self.file_name == other.file_name && self.content_type == other.content_type
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content is never shown: it is long, and may be secret.
        let mut body = f.debug_struct("Body");
        match &self.content {
            Content::Bytes(bytes) => body.field("bytes", &bytes.len()),
            Content::Text(text) => body.field("bytes", &text.len()),
            Content::File(path) => body.field("file", path),
            #[cfg(feature = "registry")]
            Content::Stream(stream) => body.field("stream", &stream.length()),
        };
        body.field("file_name", &self.file_name).field("content_type", &self.content_type).finish()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[cfg(feature = "registry")]
        if let Some(placeholder) = handover::put_aside(self) {
            return s.serialize_str(&placeholder);
        }
        s.serialize_str(&self.text().map_err(ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::model::json::read_text(d, "a string of base64", Self::of_text)
    }
}

#[cfg(feature = "macros")]
impl schemars::JsonSchema for Body {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Body".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "binary" })
    }
}

#[cfg(test)]
mod tests;
