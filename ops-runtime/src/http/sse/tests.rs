//! The cases of the standard, and every way to cut a stream into pieces.

use std::time::Duration;

use proptest::prelude::*;

use super::{SseError, SseEvent, SseParser};

fn event(kind: &str, data: &str, id: &str) -> SseEvent {
    SseEvent { data: data.into(), kind: kind.into(), id: id.into(), retry: None }
}

fn drain(parser: &mut SseParser) -> Vec<SseEvent> {
    std::iter::from_fn(|| parser.next_event()).collect()
}

fn parse<'a>(
    mut parser: SseParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Result<(), SseError>) {
    let mut events = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        result = parser.push(piece);
        events.extend(drain(&mut parser));
        if result.is_err() {
            break;
        }
    }
    (events, result)
}

fn whole(stream: &[u8]) -> Vec<SseEvent> {
    let (events, result) = parse(SseParser::new(), [stream]);
    result.unwrap();
    events
}

/// A name, a stream, and the type, data and id of each of its events.
type Case = (&'static str, &'static [u8], &'static [(&'static str, &'static str, &'static str)]);

#[test]
fn cases_of_the_standard() {
    let table: &[Case] = &[
        ("one event", b"data: seven\n\n", &[("message", "seven", "")]),
        ("several data lines", b"data: a\ndata:b\ndata:  c\n\n", &[("message", "a\nb\n c", "")]),
        ("named", b"event: add\ndata: 1\n\nevent: del\ndata: 2\n\n", &[("add", "1", ""), ("del", "2", "")]),
        ("a name does not persist", b"event: add\ndata: 1\n\ndata: 2\n\n", &[("add", "1", ""), ("message", "2", "")]),
        ("the last name counts", b"event: a\nevent: b\ndata: 1\n\n", &[("b", "1", "")]),
        ("an empty name is none", b"event: a\nevent\ndata: 1\n\n", &[("message", "1", "")]),
        ("a name without data is forgotten", b"event: a\n\ndata: 1\n\n", &[("message", "1", "")]),
        ("an id persists", b"id: 9\ndata: 1\n\ndata: 2\n\n", &[("message", "1", "9"), ("message", "2", "9")]),
        ("an empty id resets", b"id: 9\ndata: 1\n\nid\ndata: 2\n\n", &[("message", "1", "9"), ("message", "2", "")]),
        ("an id without data counts", b"id: 9\n\ndata: 1\n\n", &[("message", "1", "9")]),
        ("an id with a null is ignored", b"id: 8\nid: 9\0\ndata: 1\n\n", &[("message", "1", "8")]),
        (
            "one space is removed",
            b"data:x\n\ndata: x\n\ndata:  x\n\ndata:\tx\n\n",
            &[("message", "x", ""), ("message", "x", ""), ("message", " x", ""), ("message", "\tx", "")],
        ),
        ("no colon", b"data\n\ndata\ndata\n\ndata:\n", &[("message", "", ""), ("message", "\n", "")]),
        ("more colons", b"data: a: b:c\n\n", &[("message", "a: b:c", "")]),
        ("comments", b": hello\n:\ndata: 1\n:data: 2\n\n:\n\n", &[("message", "1", "")]),
        ("unknown fields", b"Data: 1\n data: 2\ndatas: 3\nfoo\ndata: 4\n\n", &[("message", "4", "")]),
        ("no data", b"\n\n\nevent: x\n\n", &[]),
        ("carriage returns", b"data: 1\rdata: 2\r\rdata: 3\r\r", &[("message", "1\n2", ""), ("message", "3", "")]),
        ("both", b"data: 1\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n", &[("message", "1\n2", ""), ("message", "3", "")]),
        (
            "mixed",
            b"data: 1\n\rdata: 2\r\n\rdata: 3\r\r\n",
            &[("message", "1", ""), ("message", "2", ""), ("message", "3", "")],
        ),
        ("byte order mark", b"\xEF\xBB\xBFdata: 1\n\n", &[("message", "1", "")]),
        ("only the first mark", b"\xEF\xBB\xBF\xEF\xBB\xBFdata: 1\n\ndata: 2\n\n", &[("message", "2", "")]),
        ("a mark later on", b"\n\xEF\xBB\xBFdata: 1\n\ndata: \xEF\xBB\xBF2\n\n", &[("message", "\u{feff}2", "")]),
        ("not UTF-8", b"data: \xF0\x9F\ndata: \xFF!\n\n", &[("message", "\u{fffd}\n\u{fffd}!", "")]),
        ("cut off", b"data: 1\n\ndata: 2\n", &[("message", "1", "")]),
        ("cut off in a line", b"data: 1\n\ndata: 2", &[("message", "1", "")]),
    ];
    for (name, stream, expected) in table {
        let expected: Vec<_> = expected.iter().map(|(kind, data, id)| event(kind, data, id)).collect();
        assert_eq!(whole(stream), expected, "{name}");
        assert_eq!(parse(SseParser::new(), stream.chunks(1)).0, expected, "{name}, byte by byte");
        for cut in 0..stream.len() {
            let (a, b) = stream.split_at(cut);
            assert_eq!(parse(SseParser::new(), [a, &[], b]).0, expected, "{name}, cut at {cut}");
        }
    }
}

#[test]
fn reconnection_times() {
    let mut parser = SseParser::new();
    parser.push(b"retry: 2500\ndata: 1\n\nretry: 10 s\nretry\nretry: -1\ndata: 2\n\n").unwrap();
    let events = drain(&mut parser);
    assert_eq!(events[0].retry, Some(Duration::from_millis(2500)));
    assert_eq!(events[1].retry, None);
    assert_eq!(parser.retry(), Some(Duration::from_millis(2500)));

    parser.push(b"retry: 99999999999999999999999999\n\n").unwrap();
    assert_eq!(parser.next_event(), None, "a time alone is no event");
    assert_eq!(parser.retry(), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn the_id_of_an_event_cut_off_does_not_count() {
    let mut parser = SseParser::new().with_last_event_id("1");
    parser.push(b"id: 2\ndata: x\n\nid: 3\ndata: y\n").unwrap();
    assert_eq!(drain(&mut parser), [event("message", "x", "2")]);
    assert_eq!(parser.last_event_id(), "2");
}

#[test]
fn an_event_is_given_as_soon_as_its_last_line_ends() {
    let mut parser = SseParser::new();
    parser.push(b"data: 1\r\n\r").unwrap();
    assert_eq!(drain(&mut parser), [event("message", "1", "")]);
    parser.push(b"\ndata: 2\r\n\r\n").unwrap();
    assert_eq!(drain(&mut parser), [event("message", "2", "")]);
}

#[test]
fn limits_are_errors_and_events_before_them_are_kept() {
    let cases: &[(&[u8], SseError)] = &[
        (b"data: 1\n\ndata: 45678901234567890", SseError::LineTooLong { limit: 20 }),
        (b"data: 1\n\n: 45678901234567890123\n\ndata: 2\n\n", SseError::LineTooLong { limit: 20 }),
        (b"data: 1\n\ndata: 1234567890\ndata: 1234567890\n\n", SseError::EventTooLarge { limit: 20 }),
        (
            b"data: 1\n\ndata\ndata\ndata\ndata\ndata\ndata: 12345678901234\ndata\ndata\n",
            SseError::EventTooLarge { limit: 20 },
        ),
    ];
    for (stream, error) in cases {
        for size in [1, 3, stream.len()] {
            let mut parser = SseParser::new().with_max_line(20).with_max_event(20);
            let result = stream.chunks(size).try_for_each(|piece| parser.push(piece));
            let stream = String::from_utf8_lossy(stream);
            assert_eq!(result.as_ref(), Err(error), "{stream:?} by {size}");
            assert_eq!(drain(&mut parser), [event("message", "1", "")]);
            assert_eq!(parser.push(b"\n\ndata: 3\n\n").as_ref(), Err(error), "it stays failed");
            assert_eq!(parser.next_event(), None);
        }
    }
    let exact = b"data: 34567890123456\ndata: 12345\n\n";
    let (events, result) = parse(SseParser::new().with_max_line(20).with_max_event(20), [exact.as_slice()]);
    assert_eq!((events.len(), result), (1, Ok(())));
}

/// Streams made of the bytes that mean something, and of some that don't.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data".to_vec()),
        Just(b"event:".to_vec()),
        Just(b"id: ".to_vec()),
        Just(b"retry: 5".to_vec()),
        Just(b":".to_vec()),
        Just(b" ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\0".to_vec()),
        Just("é\u{1F600}".as_bytes().to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(crate::seeded::config(256))]

    #[test]
    fn pieces_make_no_difference(stream in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let make = || SseParser::new().with_max_line(24).with_max_event(40);
        let expected = parse(make(), [stream.as_slice()]);
        prop_assert_eq!(&parse(make(), stream.chunks(1)), &expected);

        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        prop_assert_eq!(&parse(make(), pieces), &expected);
    }

    #[test]
    fn what_a_server_writes_is_what_is_read(
        data in "[^\r\n]{0,20}(\n[^\r\n]{0,20}){0,3}",
        kind in "[a-z]{1,8}",
        id in "[^\r\n\0]{0,8}",
    ) {
        let lines: String = data.split('\n').map(|line| format!("data: {line}\n")).collect();
        let stream = format!("event: {kind}\nid: {id}\n{lines}\n");
        prop_assert_eq!(whole(stream.as_bytes()), [event(&kind, &data, &id)]);
    }
}
