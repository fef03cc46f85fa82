//! Compressed responses (RFC 9110, section 8.4).

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

use crate::model::media::essence;
use crate::model::parameters::parameter;

/// Shorter bodies fit into one packet uncompressed.
const SHORT: u64 = 1_024;

/// Compresses the responses of a router.
pub(super) fn around(router: Router) -> Router {
    router.layer(from_fn(inside)).layer(layer()).layer(from_fn(outside))
}

/// Compresses with gzip, which every client knows, if that is worth it.
fn layer() -> CompressionLayer<Worth> {
    let layer = CompressionLayer::new().gzip(true).no_br().no_deflate().no_zstd();
    layer.quality(CompressionLevel::Fastest).compress_when(Worth)
}

/// What a client says that it accepts, while the layer does not see it.
#[derive(Clone)]
struct Accepted(Vec<HeaderValue>);

/// Marks a response that its handler has compressed.
#[derive(Clone)]
struct Own;

/// Tells the layer only if it may compress. Of a client that accepts no coding that the layer knows, it would make the status
/// 406, though the operation has run: such a client gets the response as it is (RFC 9110, section 12.5.3).
async fn outside(mut request: Request, next: Next) -> axum::response::Response {
    let accepts = accepts_gzip(request.headers());
    let accepted: Vec<_> = request.headers().get_all(ACCEPT_ENCODING).iter().cloned().collect();
    request.headers_mut().remove(ACCEPT_ENCODING);
    if accepts {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    request.extensions_mut().insert(Accepted(accepted));
    let mut response = next.run(request).await;
    let is_ours = response.extensions_mut().remove::<Own>().is_none();
    let is_known = response.status() == StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    if is_ours && headers.contains_key(CONTENT_ENCODING) {
        weaken(headers);
    }
    if is_known {
        // What the whole response would have (section 15.4.5).
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    response
}

/// Operations see what the client says.
async fn inside(mut request: Request, next: Next) -> axum::response::Response {
    if let Some(Accepted(accepted)) = request.extensions_mut().remove() {
        request.headers_mut().remove(ACCEPT_ENCODING);
        accepted.into_iter().for_each(|value| _ = request.headers_mut().append(ACCEPT_ENCODING, value));
    }
    let mut response = next.run(request).await;
    if response.headers().contains_key(CONTENT_ENCODING) {
        response.extensions_mut().insert(Own);
    }
    response
}

/// True if a client accepts gzip, and does not prefer the response as it is.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    let texts = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for coding in texts.flat_map(|text| text.split(',')) {
        let weight = parameter(coding, "q").map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok());
        match essence(coding).as_str() {
            "gzip" | "x-gzip" => gzip = weight,
            "identity" => identity = weight,
            "*" => any = weight,
            _ => {}
        }
    }
    let gzip = gzip.or(any).unwrap_or(0.0);
    gzip > 0.0 && identity.is_none_or(|identity| gzip >= identity)
}

/// A strong tag names exact bytes, which are others now (section 8.8.3.3).
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")) else { return };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(ETAG, weak);
    }
}

/// True for text that is complete: a stream would wait until there is enough to compress.
#[derive(Debug, Clone, Copy)]
struct Worth;

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
