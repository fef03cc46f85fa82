//! Bodies whose length was stated, and that turn out to be of another.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use http_body_util::{BodyExt, Collected, StreamBody};

use super::*;
use crate::http::engine::{ResponseBody, failure};

/// What is sent of a body whose lengths were found.
async fn sent(mut body: RequestBody, meanwhile: impl FnOnce()) -> Result<Bytes, String> {
    body.measure().await.map_err(|error| error.to_string())?;
    meanwhile();
    let whole = tokio::time::timeout(Duration::from_secs(10), body.collect()).await.expect("the body ends");
    whole.map(Collected::to_bytes).map_err(|error| error.to_string())
}

fn stream_of(pieces: &'static [&'static str], length: u64) -> Body {
    Body::stream(stream::iter(pieces).map(|piece| Ok(Bytes::from_static(piece.as_bytes())))).with_length(length)
}

/// Bodies between others, as in multipart, and alone.
fn framed(body: Body) -> [RequestBody; 2] {
    let text = |text: &'static str| Piece::Bytes(Bytes::from_static(text.as_bytes()));
    [RequestBody::from(body.clone()), RequestBody::of(vec![text("<"), Piece::Body(body, None), text(">")])]
}

#[tokio::test]
async fn a_stream_gives_as_many_bytes_as_it_states() {
    let more = "the stream of a body gave more than the 3 bytes that it stated";
    let table: [(&'static [&'static str], u64, Result<&str, &str>); 7] = [
        (&["ab", "", "c", ""], 3, Ok("abc")),
        (&[], 0, Ok("")),
        (&["abcd"], 3, Err(more)),
        (&["abc", "d"], 3, Err(more)),
        (&["a"], 0, Err("the stream of a body gave more than the 0 bytes that it stated")),
        (&["ab"], 3, Err("the stream of a body ended after 2 of the 3 bytes that it stated")),
        (&[], 3, Err("the stream of a body ended after 0 of the 3 bytes that it stated")),
    ];
    for (pieces, length, expected) in table {
        let [alone, _] = framed(stream_of(pieces, length));
        assert_eq!(sent(alone, || {}).await, expected.map(Bytes::from).map_err(str::to_owned), "{pieces:?} {length}");
        let [_, between] = framed(stream_of(pieces, length));
        let expected = expected.map(|text| format!("<{text}>").into()).map_err(str::to_owned);
        assert_eq!(sent(between, || {}).await, expected, "{pieces:?} {length}");
    }
}

#[tokio::test]
async fn the_end_of_a_stream_that_is_complete_is_not_waited_for() {
    for at in 0..2 {
        let pieces = stream::iter([Ok(Bytes::from("abc"))]).chain(stream::pending());
        let [alone, between] = framed(Body::stream(pieces).with_length(3));
        let start = Instant::now();
        let found = sent(if at == 0 { alone } else { between }, || {}).await.unwrap();
        assert_eq!(found, if at == 0 { "abc" } else { "<abc>" });
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn what_a_stream_fails_with_is_found() {
    let lost = || io::Error::other(url::ParseError::EmptyHost);
    for at in 0..2 {
        let body = framed(Body::stream(stream::iter([Err(lost())]))).into_iter().nth(at).unwrap();
        let error = body.collect().await.unwrap_err();
        let (mut next, mut found) = (error.source(), false);
        while let Some(error) = next {
            found |= error.is::<url::ParseError>();
            next = error.source();
        }
        assert!(found, "{error:?}");
        assert!(Unsendable::below(&error).is_some_and(|own| own.to_string() == lost().to_string()));
    }
}

/// The body of a server that sends nothing.
fn silent() -> ResponseBody {
    ResponseBody::new(StreamBody::new(stream::pending::<Result<Frame<Bytes>, io::Error>>()))
}

#[tokio::test]
async fn a_stream_from_another_server_fails_by_its_own_fault() {
    let passed_on = silent().with_idle_timeout(Some(Duration::from_millis(1)));
    let pieces = passed_on.into_data_stream().map(|piece| piece.map_err(io::Error::other));
    let error = RequestBody::from(Body::stream(pieces)).collect().await.unwrap_err();
    let failed = failure("the request failed", &error);
    assert_eq!(*failed.code(), crate::ErrorCode::ExecutionError, "{failed}");
    assert!(failed.message().starts_with("the request failed: the server was silent"), "{failed}");

    // That of a call names its operation: without it, the text would read as a fault of the server that is sent to.
    let gone = io::Error::other(crate::CallError::execution("the response broke off").with_operation("shop.download"));
    let error = RequestBody::from(Body::stream(stream::iter([Err(gone)]))).collect().await.unwrap_err();
    let failed = failure("the request failed", &error);
    let told = "the request failed: shop.download: EXECUTION_ERROR: the response broke off";
    assert_eq!((failed.message(), failed.operation()), (told, None));
}

#[test]
fn no_runtime_is_needed() {
    let mut body = RequestBody::of(vec![Piece::Body(stream_of(&["abc"], 3), Some(3))]);
    assert_eq!(body.frame().now_or_never().unwrap().unwrap().unwrap().into_data().unwrap(), "abc");
    let pieces = stream::iter([Ok(Bytes::from("abc"))]).chain(stream::pending());
    let mut body = RequestBody::of(vec![Piece::Body(Body::stream(pieces), Some(3))]);
    assert!(body.frame().now_or_never().is_none());
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent() {
    let path = |at: usize| -> PathBuf {
        let path = std::env::temp_dir().join(format!("ops-changing-{}-{at}", std::process::id()));
        std::fs::write(&path, "hello").unwrap();
        path
    };
    for at in 0..2 {
        let path = path(at);
        let body = || framed(Body::file(&path)).into_iter().nth(at).unwrap();
        let grown = sent(body(), || std::fs::write(&path, "hello, world").unwrap()).await.unwrap();
        assert_eq!(grown, if at == 0 { "hello" } else { "<hello>" });
        std::fs::write(&path, "hello").unwrap();
        let error = sent(body(), || std::fs::write(&path, "he").unwrap()).await.unwrap_err();
        let expected = format!("the file `{}` became shorter while it was sent: 2 bytes, not 5", path.display());
        assert_eq!(error, expected);
        // What is sent again is measured again.
        let mut again = body();
        again.measure().await.unwrap();
        std::fs::write(&path, "hello").unwrap();
        again.measure().await.unwrap();
        assert_eq!(again.collect().await.unwrap().to_bytes().len(), if at == 0 { 5 } else { 7 });
        std::fs::remove_file(path).unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_a_stream() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    for at in 0..2 {
        let (end, mut start) = std::io::pipe().unwrap();
        start.write_all(b"once").unwrap();
        drop(start);
        let mut body = framed(Body::file(format!("/dev/fd/{}", end.as_raw_fd()))).into_iter().nth(at).unwrap();
        body.measure().await.unwrap();
        assert!(!body.is_repeatable() && body.size_hint().exact().is_none());
        let again = body.clone();
        assert_eq!(body.collect().await.unwrap().to_bytes(), if at == 0 { "once" } else { "<once>" });
        assert!(again.collect().await.unwrap_err().to_string().contains("read already"));
    }
}
