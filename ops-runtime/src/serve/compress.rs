//! Compressed responses (RFC 9110, section 8.4).

use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

use crate::model::media::essence;

/// Shorter bodies fit into one packet uncompressed.
const SHORT: u64 = 1_024;

/// Compresses with gzip, which every client knows, if that is worth it.
pub(super) fn layer() -> CompressionLayer<Worth> {
    let layer = CompressionLayer::new().gzip(true).no_br().no_deflate().no_zstd();
    layer.quality(CompressionLevel::Fastest).compress_when(Worth)
}

/// True for text that is complete: a stream would wait until there is enough to compress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth;

impl Predicate for Worth {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        response.body().size_hint().exact().is_some_and(|length| length >= SHORT) && content_type.is_some_and(is_text)
    }
}

/// True for types whose content is text, and not already compressed.
fn is_text(content_type: &str) -> bool {
    let kind = essence(content_type);
    let texts = ["application/json", "application/xml", "application/yaml", "application/javascript", "image/svg+xml"];
    kind.starts_with("text/")
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| kind.ends_with(suffix))
        || texts.contains(&kind.as_str())
}
