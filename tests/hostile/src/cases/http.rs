//! Responses of HTTP servers, and what they say of redirects, time and authorization.

use crate::Case;

mod doors;
mod streams;

pub(super) const CASES: &[Case] = &[
    Case::new("http-events-share-a-long-id", 8 << 20, streams::long_id).with_family("events"),
    Case::new("http-events-small", 2 << 20, streams::small_events).with_family("events"),
    Case::new("http-events-without-data", 4 << 20, streams::no_data).with_family("events"),
    Case::new("http-event-of-empty-lines", 64 << 20, streams::empty_lines),
    Case::new("http-events-beside-headers", 1 << 20, streams::beside_headers).with_family("headers"),
    Case::new("http-headers-without-end", 32 << 20, streams::many_headers).with_family("headers"),
    Case::new("http-header-of-megabytes", 32 << 20, streams::long_header).with_family("headers"),
    Case::new("http-lines-small", 2 << 20, streams::small_lines).with_family("events"),
    Case::new("http-body-without-end", 256 << 20, streams::endless_body),
    Case::new("http-reconnects-at-once", 3, streams::reconnects),
    Case::new("http-stream-is-silent", 0, streams::silent),
    Case::new("http-redirects-a-body-elsewhere", 0, doors::redirected_body),
    Case::new("http-redirects-into-the-network", 0, doors::redirected_inside),
    Case::new("oauth-opens-what-it-should-not", 0, doors::opened),
    Case::new("oauth-metadata-leads-inside", 0, doors::metadata_inside),
    Case::new("oauth-answer-without-end", 64 << 20, doors::endless_metadata),
    Case::new("config-secret-in-a-broken-field", 0, doors::secrets),
];
