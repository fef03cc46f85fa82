//! How the types of an operation that is bound to HTTP are sent, and which are no data to send.

use std::marker::PhantomData;

use crate::{Body, HttpResponse, StatusRange};

const OK: StatusRange = StatusRange::Exact(200);

/// How a type is sent. The consts of its own impls come before those of [`SentAsJson`], which any type has.
pub struct Sent<T>(PhantomData<T>);

/// What holds for a type that is sent as JSON.
pub trait SentAsJson {
    /// True for bytes.
    const IS_BYTES: bool = false;
    /// True for a `Result`, whose errors are errors of the operation.
    const IS_RESULT: bool = false;
    /// The content type of a request body.
    const TYPE: &'static str = "application/json";
    /// The content type of a response, if it has a body.
    const GIVES: Option<&'static str> = Some("application/json");
    /// The responses of success.
    const RESPONSES: &'static [HttpResponse] = const { &[HttpResponse::new(OK, "application/json")] };
}

impl<T> SentAsJson for Sent<T> {}

const OCTETS: &str = "application/octet-stream";

impl Sent<Body> {
    /// True for bytes.
    pub const IS_BYTES: bool = true;
    /// The content type of a request body.
    pub const TYPE: &'static str = OCTETS;
    /// The content type of a response.
    pub const GIVES: Option<&'static str> = Some(OCTETS);
    /// The responses of success.
    pub const RESPONSES: &'static [HttpResponse] = const { &[HttpResponse::new(OK, OCTETS)] };
}

impl Sent<Option<Body>> {
    /// True for bytes.
    pub const IS_BYTES: bool = true;
    /// The content type of a request body.
    pub const TYPE: &'static str = OCTETS;
}

impl Sent<Vec<Body>> {
    /// True for bytes.
    pub const IS_BYTES: bool = true;
}

impl Sent<Option<Vec<Body>>> {
    /// True for bytes.
    pub const IS_BYTES: bool = true;
}

impl<T, E> Sent<Result<T, E>> {
    /// True for a `Result`, whose errors are errors of the operation.
    pub const IS_RESULT: bool = true;
}

impl<T, E> Sent<Option<Result<T, E>>> {
    /// True for a `Result`, whose errors are errors of the operation.
    pub const IS_RESULT: bool = true;
}

/// Compiles if an output is data.
#[track_caller]
pub const fn is_data(is_result: bool) {
    assert!(
        !is_result,
        "the data would be a `Result`, with its errors as data: write one `Result<T, E>` around all, or an alias `Result<T>`"
    );
}

/// Compiles if an operation can be bound to `HEAD`.
#[track_caller]
pub const fn gives_nothing(gives_nothing: bool) {
    assert!(
        gives_nothing,
        "a response to HEAD has no body, and the operation gives data: write `GET`, and the server answers HEAD, too"
    );
}

impl Sent<()> {
    /// The content type of a response, which has no body.
    pub const GIVES: Option<&'static str> = None;
    /// The responses of success.
    pub const RESPONSES: &'static [HttpResponse] = const { &[HttpResponse::empty(StatusRange::Exact(204))] };
}

/// The success of a status that the operation names. Compiles if the data, if there are any, can be sent with it.
#[track_caller]
pub const fn success(status: u16, gives: Option<&'static str>) -> HttpResponse {
    match gives {
        Some(content_type) => {
            assert!(
                status != 204 && status != 205,
                "a response with the status 204 or 205 has no body, and the operation gives data: name another status"
            );
            HttpResponse::new(StatusRange::Exact(status), content_type)
        }
        None => HttpResponse::empty(StatusRange::Exact(status)),
    }
}

/// The responses of a subscription: events, or lines for a client that prefers them.
pub const ITEMS: &[HttpResponse] =
    const { &[HttpResponse::new(OK, "text/event-stream"), HttpResponse::new(OK, "application/x-ndjson")] };

/// The content type of a body of several properties: of files and other fields, if one of them is bytes.
pub const fn type_of_rest(are_bytes: &[bool]) -> &'static str {
    let mut rest = are_bytes;
    while let [is_bytes, tail @ ..] = rest {
        if *is_bytes {
            return "multipart/form-data";
        }
        rest = tail;
    }
    "application/json"
}
