use std::time::Duration;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

fn caller(name: &str) -> CallerId {
    CallerId::connection(name)
}

fn results(bytes: usize) -> Results {
    Results::new(ResultLimits::new().with_max_shown(bytes))
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// The parts of a result as text.
fn told(fitted: &Fitted) -> Vec<String> {
    fitted.parts.iter().map(ToString::to_string).collect()
}

fn refusal(result: Result<Fitted, CallError>) -> (String, String) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    let violation = &error.details()["violations"][0];
    assert_eq!(violation["message"], error.message());
    (violation["pointer"].as_str().unwrap().to_owned(), error.message().to_owned())
}

#[test]
fn what_fits_is_left_alone() {
    let results = results(300);
    for value in [json!(null), json!("a".repeat(298)), json!({ "a": [1, 2] })] {
        let fitted = results.fit(&caller("a"), value.clone());
        assert_eq!(fitted.clone().into_value(), value);
        assert_eq!((fitted.parts, fitted.cursor, fitted.note), (vec![], None, None));
    }
    assert_eq!(results.store().kept(), (0, 0));
    assert!(results.fit(&caller("a"), json!("a".repeat(299))).cursor.is_some());
}

#[test]
fn what_is_shown_of_each_form() {
    let text = "é\n".repeat(200);
    let table = [
        // Items in order, as many as fit.
        (
            json!((100..300).collect::<Vec<_>>()),
            json!((100..174).collect::<Vec<_>>()),
            vec!["74 of 200 items are shown, 126 more"],
        ),
        // Characters, by what they take as JSON.
        (
            json!(text),
            json!(text.chars().take(149).collect::<String>()),
            vec!["149 of 400 characters are shown, 251 more"],
        ),
        // Small members whole, the large one cut, whatever their order.
        (
            json!({ "a": 1, "list": vec![1; 1_000], "next": "n" }),
            json!({ "a": 1, "list": vec![1; 136], "next": "n" }),
            vec!["/list: 136 of 1,000 items are shown, 864 more"],
        ),
        // Of several large ones, each has its part, and what a smaller one leaves.
        (
            json!({ "long": "x".repeat(1_000), "short": "y".repeat(130), "z": 1 }),
            json!({ "long": "x".repeat(142), "short": "y".repeat(130), "z": 1 }),
            vec!["/long: 142 of 1,000 characters are shown, 858 more"],
        ),
        // A list whose first item does not fit.
        (
            json!([{ "id": 7, "text": "x".repeat(500) }, 2, 3]),
            json!([{ "id": 7, "text": "x".repeat(280) }]),
            vec!["1 of 3 items are shown, 2 more", "/0/text: 280 of 500 characters are shown, 220 more"],
        ),
    ];
    for (value, shown, parts) in table {
        let fitted = results(300).fit(&caller("a"), value.clone());
        assert!(size(&fitted.shown) <= 300, "{}", size(&fitted.shown));
        assert_eq!((told(&fitted), &fitted.shown), (parts.into_iter().map(str::to_owned).collect(), &shown), "{value}");
    }
}

#[test]
fn an_object_of_many_members_is_shown_from_its_start() {
    let members: Map<String, Value> = (0..1_000).map(|n| (format!("m{n}"), json!("x".repeat(20)))).collect();
    let results = results(300);
    let fitted = results.fit(&caller("a"), members.clone().into());
    assert_eq!(told(&fitted), ["10 of 1,000 members are shown, 990 more"]);
    let shown: Map<String, Value> = members.into_iter().take(10).collect();
    assert_eq!(fitted.shown, Value::Object(shown));
    let next = results.read(&caller("a"), &fitted.cursor.unwrap(), &ReadAt::new()).unwrap();
    assert_eq!(told(&next), ["members 10 to 19 of 1,000 are shown, counted from 0, 980 more"]);
    assert_eq!(next.shown.as_object().unwrap().keys().next().unwrap(), "m10");
}

#[test]
fn reading_on_to_the_end() {
    let results = results(400);
    let items: Vec<Value> = (0..100).map(|n| json!({ "id": n, "name": format!("name {n}") })).collect();
    let fitted = results.fit(&caller("a"), json!({ "total": 100, "items": items }));
    let shown = |fitted: &Fitted| fitted.shown.as_array().unwrap().clone();
    let mut all = fitted.shown["items"].as_array().unwrap().clone();
    let (mut cursor, mut reads) = (fitted.cursor, 0);
    let mut last = None;
    while let Some(at) = cursor {
        let part = results.read(&caller("a"), &at, &ReadAt::default()).unwrap();
        assert!(size(&part.shown) <= 400);
        all.extend(shown(&part));
        (cursor, last, reads) = (part.cursor, part.note, reads + 1);
    }
    assert_eq!((all, reads), (items.clone(), 7));
    assert_eq!(last.unwrap(), "/items: items 98 to 99 of 100 are shown, counted from 0. That is the end.");
}

#[test]
fn reading_at_other_places() {
    let results = results(600);
    let text = "grüß 😀 ".repeat(100);
    let value = json!({ "text": text, "a/b": { "~": [1, { "deep": "x".repeat(400) }] }, "n": 7, "list": vec![0; 300] });
    let cursor = results.fit(&caller("a"), value.clone()).cursor.unwrap();
    // A cursor of any part is good for all places.
    assert!(cursor.ends_with(".1/a~1b/~0"), "{cursor}");
    let read = |pointer: &str, from: Option<usize>| {
        let mut at = ReadAt::new().with_pointer(pointer);
        at.from = from;
        results.read(&caller("a"), &cursor, &at)
    };
    assert_eq!(read("/n", None).unwrap().shown, 7);
    assert_eq!(read("/a~1b/~0/0", Some(0)).unwrap().shown, 1);
    let deep = read("/a~1b/~0/1/deep", Some(399)).unwrap();
    assert_eq!((deep.shown, deep.cursor), (json!("x"), None));
    let chars = read("/text", Some(5)).unwrap();
    assert!(chars.shown.as_str().unwrap().starts_with("😀 grüß"));
    assert_eq!(told(&read("/list", Some(298)).unwrap()), ["/list: items 298 to 299 of 300 are shown, counted from 0"]);
    // The whole from its start again.
    assert_eq!(read("", None).unwrap().shown, results.fit(&caller("a"), value).shown);

    let table = [
        (read("/txt", None), "/pointer", "the result has nothing at `/txt`: did you mean `text`?"),
        (
            read("/list/300", None),
            "/pointer",
            "the result has nothing at `/list/300`: the list has 300 items, counted from 0",
        ),
        (read("/n/x", None), "/pointer", "the result has nothing at `/n/x`"),
        (read("list", None), "/pointer", "`list` is no JSON pointer: it begins with `/`"),
        (read("/li\nst", None), "/pointer", "the result has nothing at `/li st`: did you mean `list`?"),
        (read("/list", Some(300)), "/from", "the value has 300 parts: nothing is left from 300"),
        (read("/n", Some(1)), "/from", "the value has 1 parts: nothing is left from 1"),
        (
            read("/text", Some(usize::MAX)),
            "/from",
            "the value has 700 parts: nothing is left from 18446744073709551615",
        ),
        // Two faults: the place is the first.
        (read("/txt", Some(9_999)), "/pointer", "the result has nothing at `/txt`: did you mean `text`?"),
    ];
    for (found, pointer, message) in table {
        assert_eq!(refusal(found), (pointer.to_owned(), message.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_is_its_callers_alone_and_expires() {
    let results = Results::new(ResultLimits::new().with_max_shown(256).with_keep(Duration::from_secs(60)));
    let cursor = results.fit(&caller("ann"), json!("x".repeat(1_000))).cursor.unwrap();
    let (id, place) = cursor.split_once('.').unwrap();
    assert_eq!((id.len(), place), (32, "254"));
    let other = results.fit(&caller("ann"), json!("x".repeat(1_000))).cursor.unwrap();
    assert_ne!(other, cursor);
    let unknown = (
        "/cursor".to_owned(),
        "no result has this cursor: take it from the result as it is. One is kept for 60s after it was read, or until there \
         are too many; then make the call again, unless it changes something"
            .to_owned(),
    );
    let read = |name: &str, cursor: &str| results.read(&caller(name), cursor, &ReadAt::new());
    let identity = CallerId::of(Some(&crate::Identity::new("ann")));
    assert_eq!(refusal(results.read(&identity, &cursor, &ReadAt::new())), unknown);
    for (name, cursor) in [
        ("bob", cursor.as_str()),
        ("ann", "00000000000000000000000000000000.0"),
        ("ann", ""),
        ("ann", id),
        ("ann", &format!("{id}.")),
        ("ann", &format!("{id}.-1")),
        ("ann", &format!("{id}.99999999999999999999")),
        ("ann", &format!("{id}.1items")),
        ("ann", "\u{0}.\u{0}"),
    ] {
        assert_eq!(refusal(read(name, cursor)), unknown, "{cursor}");
    }
    // Where a cursor is changed, it is still one of its own result.
    assert_eq!(refusal(read("ann", &format!("{id}.0/x"))).0, "/pointer");
    // A look of somebody else keeps nothing.
    advance(Duration::from_secs(59)).await;
    assert!(read("bob", &cursor).is_err());
    assert!(read("ann", &cursor).is_ok());
    advance(Duration::from_secs(59)).await;
    assert_eq!(refusal(read("ann", &other)), unknown);
    assert!(read("ann", &cursor).is_ok());
    advance(Duration::from_secs(60)).await;
    assert_eq!(refusal(read("ann", &cursor)), unknown);
    assert_eq!(results.store().kept(), (0, 0));
}

#[test]
fn what_is_kept_is_bounded() {
    let limits = || ResultLimits::new().with_max_shown(256).with_max_bytes(10_000, 25_000);
    let results = Results::new(limits());
    let text = |n: usize| json!("x".repeat(n));
    let cursor = |name: &str, n: usize| results.fit(&caller(name), text(n)).cursor;
    let reads = |name: &str, cursor: &str| results.read(&caller(name), cursor, &ReadAt::new()).is_ok();
    // Too large for one caller.
    let fitted = results.fit(&caller("ann"), text(10_000));
    assert_eq!(fitted.cursor, None);
    assert!(fitted.note.unwrap().ends_with("The rest is not kept: ask for less at a time."));
    // A caller's own results make room for each other, the one that was not read for longest first.
    let (first, second) = (cursor("ann", 4_000).unwrap(), cursor("ann", 4_000).unwrap());
    assert!(reads("ann", &first));
    let third = cursor("ann", 4_000).unwrap();
    assert!(reads("ann", &first) && reads("ann", &third) && !reads("ann", &second));
    // Many callers take no more than all may, and those that have most make room.
    let small = cursor("zoe", 300).unwrap();
    for n in 0..1_000 {
        cursor(&n.to_string(), 2_000).unwrap();
        let (bytes, callers) = results.store().kept();
        assert!(bytes <= 25_000 && callers <= 12, "{bytes} of {callers}");
    }
    assert!(reads("zoe", &small) && !reads("ann", &first));
    // Many small ones of one caller.
    for _ in 0..1_000 {
        cursor("eve", 300).unwrap();
    }
    let (bytes, _) = results.store().kept();
    assert!(bytes <= 25_000);
    // Small values are charged by the memory that they take.
    let many = results.fit(&caller("bob"), json!(vec![0; 1_000]));
    assert_eq!(many.cursor, None);
    let none = Results::new(limits().with_max_bytes(0, 0));
    assert_eq!(none.fit(&caller("ann"), text(1_000)).cursor, None);
}

#[test]
fn hostile_names_and_depths() {
    let results = results(400);
    // A name that cannot be shown is passed over.
    let value = json!({ "n".repeat(1_000): 1, "second": "x".repeat(1_000) });
    let fitted = results.fit(&caller("a"), value);
    assert_eq!((&fitted.shown, told(&fitted)), (&json!({}), vec!["none of 2 members are shown, 2 more".to_owned()]));
    let next = results.read(&caller("a"), &fitted.cursor.unwrap(), &ReadAt::new()).unwrap();
    assert!(next.shown["second"].as_str().unwrap().len() > 300);
    // Names do not break out of their line.
    let evil = "a\n\u{1b}[2J`";
    let fitted = results.fit(&caller("a"), json!({ evil: "x".repeat(1_000) }));
    let note = fitted.note.unwrap();
    assert!(!note.contains(char::is_control) && note.starts_with("/a\\n\\u{1b}[2J`: "), "{note}");
    // Nor does what is told grow with them.
    let long: Map<String, Value> = (0..9).map(|n| (format!("{n}").repeat(600), json!("x".repeat(900)))).collect();
    let large = Results::new(ResultLimits::new().with_max_shown(8_000));
    let fitted = large.fit(&caller("a"), long.into());
    let note = fitted.note.unwrap();
    assert!(fitted.parts.len() == 2 && note.contains(" 7 other values are cut, too. "), "{note}");
    // Depth.
    let named = |inner| Value::Object(Map::from_iter([("a".to_owned(), inner)]));
    let deep =
        (0..500).fold(json!("x".repeat(100)), |inner, n| if n % 2 == 0 { vec![inner].into() } else { named(inner) });
    let fitted = results.fit(&caller("a"), deep);
    assert!(size(&fitted.shown) <= 400);
    let (mut cursor, mut found) = (fitted.cursor, false);
    for _ in 0..100 {
        let Some(at) = cursor else { break };
        let part = results.read(&caller("a"), &at, &ReadAt::new()).unwrap();
        (cursor, found) = (part.cursor, part.shown.to_string().contains("xx"));
    }
    assert!(found, "what is deepest is reached");
    let wide = json!({ "a": vec![json!({ "b": vec![0; 500] }); 500], "c": { "d": vec![json!("y".repeat(900)); 9] } });
    let fitted = results.fit(&caller("a"), wide);
    assert!(size(&fitted.shown) <= 400, "{}", fitted.shown);
}

#[test]
fn what_has_no_room_beside_others_is_whole_by_itself() {
    let results = results(400);
    let inner = json!({ "n".repeat(120): "v".repeat(120) });
    let value = json!({ "a": inner, "b": "x".repeat(1_000) });
    let fitted = results.fit(&caller("a"), value);
    assert_eq!(fitted.shown["a"], json!({}));
    assert_eq!(told(&fitted)[0], "/a: none of 1 members are shown, 1 more");
    let part = results.read(&caller("a"), &fitted.cursor.unwrap(), &ReadAt::new()).unwrap();
    assert_eq!((part.clone().into_value(), part.parts, part.cursor), (inner, vec![], None));
}

#[test]
fn one_value_says_it_all() {
    let fitted = results(256).fit(&caller("a"), json!(vec![7; 500]));
    let value = fitted.clone().into_value();
    assert_eq!(value["result"], fitted.shown);
    assert_eq!(value["cursor"].as_str(), fitted.cursor.as_deref());
    assert_eq!(
        value["note"],
        "127 of 500 items are shown, 373 more. Read on with the cursor; with a JSON pointer as `pointer`, and `from`, at \
         another place."
    );
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 400, 40, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            prop::collection::btree_map(".{0,40}", inner, 0..40)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// True if all that is shown is in the value, where it is shown.
fn is_part(shown: &Value, value: &Value, from: usize) -> bool {
    match (shown, value) {
        (Value::Array(shown), Value::Array(items)) => {
            shown.len() <= items.len() - from
                && shown.iter().zip(items.iter().skip(from)).all(|(shown, item)| is_part(shown, item, 0))
        }
        (Value::Object(shown), Value::Object(members)) => {
            shown.iter().all(|(name, shown)| members.get(name).is_some_and(|value| is_part(shown, value, 0)))
        }
        (Value::String(shown), Value::String(text)) => {
            text.chars().skip(from).collect::<String>().starts_with(shown.as_str())
        }
        (shown, value) => shown == value,
    }
}

proptest! {
    #![proptest_config(crate::seeded::config(100))]

    #[test]
    fn any_value_fits_and_is_read_to_its_end(value in values(), max in 256_usize..2_000) {
        let results = results(max);
        let fitted = results.fit(&caller("a"), value.clone());
        prop_assert!(size(&fitted.shown) <= max, "{} of {max}", size(&fitted.shown));
        prop_assert!(is_part(&fitted.shown, &value, 0));
        prop_assert_eq!(fitted.parts.is_empty() && fitted.note.is_none(), fitted.shown == value);
        let (mut cursor, mut reads) = (fitted.cursor, 0);
        while let Some(at) = cursor {
            let part = results.read(&caller("a"), &at, &ReadAt::new()).unwrap();
            prop_assert!(size(&part.shown) <= max);
            let (_, from, pointer) = parse(&at).unwrap();
            let there = value.pointer(pointer).unwrap();
            match part.parts.first() {
                Some(own) => {
                    prop_assert!(own.pointer.starts_with(pointer) && (own.from == from || own.pointer != pointer));
                    prop_assert!(is_part(&part.shown, there, from));
                }
                // Nothing of it was shown, and by itself it fits.
                None => prop_assert_eq!((&part.shown, from, &part.cursor), (there, 0, &None)),
            }
            cursor = part.cursor;
            reads += 1;
            prop_assert!(reads < 1_000, "{at} leads to {cursor:?}");
        }
    }
}
