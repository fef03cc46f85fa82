//! The header `Accept` of a request (RFC 9110, section 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

use crate::model::media::{covers, essence};
use crate::model::parameters::parameter;

/// An envelope as the response, with its meta and warnings.
pub(super) const ENVELOPE: &str = "application/vnd.ops.envelope+json";

/// The content types that a client accepts: ranges, each with its weight in thousandths.
#[derive(Debug, Default)]
pub(super) struct Accept(Vec<(String, u32)>);

impl Accept {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges = texts.flat_map(|text| text.split(',')).map(|range| {
            let weight = parameter(range, "q").and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0);
            // A weight has three digits.
            (essence(range), (weight.clamp(0.0, 1.0) * 1_000.0) as u32)
        });
        Self(ranges.filter(|(range, _)| !range.is_empty()).collect())
    }

    /// True if the exact type is listed, not only a range.
    pub(super) fn names(&self, content_type: &str) -> bool {
        self.0.iter().any(|(range, weight)| range == content_type && *weight > 0)
    }

    /// The weight of a type: that of the most specific range that covers it. Without `Accept`, every type is accepted.
    pub(super) fn weight(&self, content_type: &str) -> u32 {
        if self.0.is_empty() {
            return 1_000;
        }
        let covering = self.0.iter().filter(|(range, _)| covers(range, content_type));
        covering.max_by_key(|(range, _)| (!range.ends_with('*'), range.len())).map_or(0, |(_, weight)| *weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, "application/json, text/*;q=0.5, text/html;q=0".parse().unwrap());
        headers.append(ACCEPT, "*/*; q=0.1".parse().unwrap());
        let accept = Accept::of(&headers);
        for (kind, weight) in [("application/json", 1_000), ("text/plain", 500), ("text/html", 0), ("image/png", 100)] {
            assert_eq!(accept.weight(kind), weight, "{kind}");
        }
        assert!(accept.names("application/json") && !accept.names("text/html") && !accept.names("image/png"));
        assert_eq!(Accept::default().weight("image/png"), 1_000);
    }
}
