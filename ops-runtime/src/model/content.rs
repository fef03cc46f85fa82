//! The content blocks of MCP results, as types of our own.
//!
//! ```
//! use ops_runtime::content::ContentBlock;
//! use serde_json::json;
//!
//! let block: ContentBlock = serde_json::from_value(json!({ "type": "text", "text": "hello" })).unwrap();
//! assert_eq!(block, ContentBlock::text("hello"));
//! ```

mod json;

use serde_json::{Map, Value};

/// One block of an MCP result (MCP specification, `ContentBlock`).
///
/// A block of an unknown kind becomes a text block that holds its JSON; unknown fields of a known kind are kept in
/// `extra`. So nothing that a server says is lost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(MediaContent),
    /// A sound.
    Audio(MediaContent),
    /// A resource with its content.
    Resource(EmbeddedResource),
    /// A resource to be fetched.
    ResourceLink(ResourceLink),
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), annotations: None, extra: Map::new() })
    }

    /// An image block of base64 data.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(data, mime_type))
    }

    /// An audio block of base64 data.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(data, mime_type))
    }

    /// The text, if it is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

/// A text block.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for the reader.
    pub annotations: Option<Annotations>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

/// An image or a sound.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct MediaContent {
    /// The data in base64.
    pub data: String,
    /// The media type, such as `image/png`.
    pub mime_type: String,
    /// Hints for the reader.
    pub annotations: Option<Annotations>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

impl MediaContent {
    /// Base64 data of a media type.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
    }
}

/// A resource with its content.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContent,
    /// Hints for the reader.
    pub annotations: Option<Annotations>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

/// The content of a resource, as text or as base64.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The URI of the resource.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// The content, if it is text.
    pub text: Option<String>,
    /// The content in base64, if it is not text.
    pub blob: Option<String>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

/// A resource to be fetched.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ResourceLink {
    /// The URI of the resource.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// Hints for the reader.
    pub annotations: Option<Annotations>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

/// Hints for the reader of a block (MCP specification, `Annotations`).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Annotations {
    /// The intended readers: `user`, `assistant`.
    pub audience: Option<Vec<String>>,
    /// How important it is, from 0 to 1.
    pub priority: Option<f64>,
    /// When it was last changed, an ISO 8601 time.
    pub last_modified: Option<String>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

/// The reference to the schema of content blocks, in schemas that use it.
#[cfg(feature = "mcp-server")]
pub(crate) const BLOCK_REFERENCE: &str = "#/$defs/mcp.ContentBlock";
