//! What each form accepts and writes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ops_runtime::record::{from_slice, from_str, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::types::*;

/// Decodes from text and from a value, and checks that both agree and that what is written is `written`.
#[track_caller]
fn round<T: DeserializeOwned + Serialize + PartialEq + Debug>(read: &Value, written: &Value) -> T {
    let value: T = from_str(&read.to_string()).unwrap();
    assert_eq!(value, from_value::<T>(read).unwrap());
    assert_eq!(&to_value(&value).unwrap(), written);
    assert_eq!(from_value::<T>(written).unwrap(), value);
    value
}

#[track_caller]
pub(super) fn same<T: DeserializeOwned + Serialize + PartialEq + Debug>(json: &Value) -> T {
    round(json, json)
}

/// Checks that text and value fail alike, and returns the pointer and the message.
#[track_caller]
pub(super) fn fails<T: DeserializeOwned + Debug>(json: &Value) -> (String, String) {
    let error = from_str::<T>(&serde_json::to_string_pretty(json).unwrap()).unwrap_err();
    assert_eq!(error, from_value::<T>(json).unwrap_err());
    (error.pointer, error.message)
}

#[test]
fn a_record_has_every_flavour_of_field() {
    let least = round::<Pet>(
        &json!({"id": 1, "owner": null, "$type": [], "unknown": {"deep": [1, 2]}}),
        &json!({"id": 1, "owner": null, "limit": 20, "status": "paid", "$type": []}),
    );
    assert_eq!((least.weight, least.limit), (None, 20));
    let most = same::<Pet>(&json!({
        "id": 1, "owner": "Ann", "tag": "x", "weight": null, "limit": 3, "status": "lost",
        "$type": [1, "auto", false, 0.5, "slow", 7],
        "parent": {"id": 2, "owner": null, "weight": 1.5, "limit": 0, "status": "new", "$type": []}
    }));
    assert_eq!(most.weight, Some(None));
    assert_eq!(most.type_[..4], [Level::One, Level::Auto, Level::Off, Level::Half]);
    assert_eq!(most.type_[4..], [Level::Other(json!("slow")), Level::Other(json!(7))]);
}

#[test]
fn the_last_of_a_property_that_comes_twice_stays() {
    let push: Push = from_str(r#"{"kind": "a", "commits": ["x"], "kind": "b"}"#).unwrap();
    assert_eq!(push, Push { kind: "b".into(), commits: vec!["x".into()] });
}

#[test]
fn a_record_is_strict_about_null_and_types() {
    let pet = json!({"id": 1, "owner": null, "$type": []});
    let wrong = [
        ("id", Value::Null, "/id", "invalid type: null, expected i64"),
        ("id", json!("1"), "/id", "invalid type: string \"1\", expected i64"),
        ("id", json!(1.5), "/id", "invalid type: floating point `1.5`, expected i64"),
        ("id", json!(u64::MAX), "/id", "invalid value: integer `18446744073709551615`, expected i64"),
        ("limit", json!(-1), "/limit", "invalid value: integer `-1`, expected u32"),
        ("tag", json!({}), "/tag", "invalid type: map, expected a string"),
        ("status", json!(1), "/status", "invalid type: integer `1`, expected a string"),
        ("parent", json!([]), "/parent", "invalid type: sequence, expected an object (Pet)"),
        ("parent", json!({"id": 1}), "/parent", "missing properties `owner`, `$type` of Pet"),
    ];
    for (name, value, pointer, message) in wrong {
        let mut pet = pet.clone();
        pet[name] = value;
        assert_eq!(fails::<Pet>(&pet), (pointer.to_owned(), message.to_owned()), "{name}");
    }
    assert_eq!(fails::<Pet>(&json!({})), ("".into(), "missing properties `id`, `owner`, `$type` of Pet".into()));
    assert_eq!(fails::<Push>(&json!({"kind": ""})), ("".into(), "missing property `commits` of Push".into()));
}

#[test]
fn null_stands_for_nothing_where_a_property_may_be_absent() {
    let pet = json!({"id": 1, "owner": null, "tag": null, "weight": null, "limit": null, "status": null, "$type": []});
    let pet: Pet = from_value(&pet).unwrap();
    assert_eq!((&pet.tag, pet.weight, pet.limit), (&None, Some(None), 20));
    assert_eq!(pet.status, Status::Paid);
}

#[test]
fn a_pointer_leads_to_the_value() {
    let pets =
        json!({"a/b~c": [{"id": 1, "owner": null, "$type": []}, {"id": 1, "owner": "\"{[,", "$type": [], "tag": 7}]});
    assert_eq!(fails::<BTreeMap<String, Vec<Pet>>>(&pets).0, "/a~1b~0c/1/tag");
    assert_eq!(fails::<Vec<Pet>>(&json!([{"id": 1}])).0, "/0");
    assert_eq!(fails::<Prices>(&json!({"x": ["EUR", 1], "y": ["EUR"]})).0, "/y");
    assert_eq!(from_str::<Vec<i64>>("[1, 2, x]").unwrap_err().pointer, "/2");
    assert_eq!(from_str::<Pet>("{\"id\": }").unwrap_err().pointer, "/id");
    assert_eq!(from_str::<Pet>("{\"id\": 1").unwrap_err().message, "EOF while parsing an object");
    assert_eq!(from_str::<bool>("true x").unwrap_err().message, "trailing characters");
    assert_eq!(from_slice::<Vec<String>>(b"[\"a\", \"\xff\"]").unwrap_err().pointer, "/1");
}

#[test]
fn additional_properties_are_kept() {
    let labels = same::<Labels>(&json!({"name": "n", "a": 1, "b": 2}));
    assert_eq!(labels.extra, BTreeMap::from([("a".into(), 1), ("b".into(), 2)]));
    assert_eq!(same::<Labels>(&json!({})), Labels::default());
    assert_eq!(Labels::from(()), Labels::default());
    assert_eq!(fails::<Labels>(&json!({"a": "x"})).0, "/a");
    // What is declared is never written from the rest: it would be read as something else.
    let clash = Labels { name: None, extra: BTreeMap::from([("name".into(), 1), ("a".into(), 2)]) };
    let told = "`name` is a property of its own, and is not written from `extra`";
    assert_eq!(serde_json::to_string(&clash).unwrap_err().to_string(), told);
    assert!(to_value(&clash).unwrap_err().to_string().contains(told));
}

#[test]
fn names_keep_what_they_do_not_know() {
    assert_eq!(same::<Status>(&json!("new")), Status::New);
    assert_eq!(round::<Status>(&json!("settled"), &json!("paid")), Status::Paid);
    assert_eq!(same::<Status>(&json!("a\"b\\")), Status::Other("a\"b\\".into()));
    assert_eq!((Status::from("new"), Status::New.as_str()), (Status::New, "new"));
    assert_eq!(format!("{:>6}|{}", Status::Paid, Status::Other("x".into())), "  paid|x");
    assert_eq!(fails::<Status>(&Value::Null).1, "invalid type: null, expected a string");
}

#[test]
fn values_compare_as_json() {
    assert_eq!(same::<Level>(&json!(1)), Level::One);
    assert_eq!(round::<Level>(&json!(1.0), &json!(1)), Level::One);
    for other in [json!("1"), json!(true), json!(u64::MAX), json!(-7), json!(1.5)] {
        assert_eq!(same::<Level>(&other), Level::Other(other));
    }
}

/// A value of another kind may be one of the known ones, written in another way: it is left to be repaired.
#[test]
fn values_of_other_kinds_are_none() {
    #[derive(Debug, PartialEq)]
    enum Size {
        One,
        Half,
        Other(Value),
    }
    ops_runtime::__generated::values!(Size { 1 => One, 0.5 => Half, _ => Other });
    assert_eq!(same::<Size>(&json!(7)), Size::Other(json!(7)));
    assert_eq!(fails::<Size>(&json!("1")).1, "invalid type: string \"1\", expected a number");
    assert_eq!(fails::<Size>(&json!(true)).1, "invalid type: boolean `true`, expected a number");
    let expected = "expected a string or a number or a boolean";
    assert_eq!(fails::<Level>(&json!([1])).1, format!("invalid type: sequence, {expected}"));
    assert_eq!(fails::<Level>(&json!({"a": {"b": null}})).1, format!("invalid type: map, {expected}"));
    assert_eq!(fails::<Level>(&Value::Null).1, format!("invalid type: null, {expected}"));
}

/// A union whose variants may have the tags of both unions that they are in.
#[test]
fn a_variant_of_two_unions_may_have_both_tags() {
    let card = json!({"category": "payment", "method": "card", "number": "1"});
    let made = Ledger::Payment(Payment::Card(Card { category: "payment".into(), number: "1".into() }));
    assert_eq!(same::<Ledger>(&card), made);
    // Wherever they are, they are written once.
    let parts = [r#""category":"payment""#, r#""method":"card""#, r#""number":"1""#];
    for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let text = format!("{{{},{},{}}}", parts[a], parts[b], parts[c]);
        let read: Ledger = from_str(&text).unwrap();
        assert_eq!(read, made, "{text}");
        assert_eq!(serde_json::to_string(&read).unwrap().matches("category").count(), 1);
    }
    // One tag may select what another does, too: what the variant holds is written.
    let Ledger::Payment(Payment::Card(card)) =
        same::<Ledger>(&json!({"category": "transfer", "method": "card", "number": "1"}))
    else {
        panic!()
    };
    assert_eq!(card.category, "transfer");
    // A variant that keeps what it does not declare does not get the tags that it does not declare.
    for text in [
        r#"{"category":"payment","method":"bank","a":1}"#,
        r#"{"a":1,"method":"bank","category":"payment"}"#,
        r#"{"method":"bank","a":1,"category":"payment"}"#,
    ] {
        let read: Ledger = from_str(text).unwrap();
        let Ledger::Payment(Payment::Bank(labels)) = &read else { panic!("{read:?}") };
        assert_eq!(labels.extra, BTreeMap::from([("a".into(), 1)]));
        assert_eq!(to_value(&read).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }
    // Nor does a boxed one; and an unknown object is kept whole.
    for text in [r#"{"method":"map","a":1,"category":"payment"}"#, r#"{"category":"payment","method":"map","a":1}"#] {
        assert_eq!(from_str::<Ledger>(text).unwrap(), Ledger::Payment(Payment::Map([("a".into(), 1)].into())));
    }
    let other = json!({"a": 1, "category": "transfer", "method": "cash"});
    assert_eq!(same::<Ledger>(&other), Ledger::Payment(Payment::Other(other)));
    // What is made without the outer tag gets it.
    let made = Ledger::Payment(Payment::Other(json!({"method": "cash"})));
    assert_eq!(to_value(&made).unwrap(), json!({"category": "payment", "method": "cash"}));
    let error = from_str::<Ledger>(r#"{"category":"payment","method":"card"}"#).unwrap_err();
    assert_eq!(error.to_string(), "missing property `number` of Card");
}

#[test]
fn a_tag_may_come_anywhere() {
    let pet = r#""pet": {"id": 1, "owner": null, "limit": 2, "status": "x", "$type": [1]}"#;
    let texts = [
        format!(r#"{{"kind": "issue", {pet}, "title": "t"}}"#),
        format!(r#"{{{pet}, "kind": "issue", "title": "t"}}"#),
        format!(r#"{{{pet}, "title": "t", "\u006bind": "issue"}}"#),
    ];
    for text in texts {
        let event: Event = from_str(&text).unwrap();
        let Event::Issue(issue) = &event else { panic!("{event:?}") };
        assert_eq!((issue.title.as_str(), issue.pet.as_ref().map(|pet| pet.limit)), ("t", Some(2)));
        assert_eq!(to_value(&event).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(event, from_value(&serde_json::from_str(&text).unwrap()).unwrap());
    }
}

#[test]
fn a_variant_has_the_tag_if_it_declares_it() {
    let push = same::<Event>(&json!({"kind": "force-push", "commits": []}));
    assert_eq!(push, Event::Push(Push { kind: "force-push".into(), commits: vec![] }));
    assert_eq!(same::<Event>(&json!({"kind": "map", "a": 1})), Event::Map([("a".into(), 1)].into()));
    assert_eq!(same::<Event>(&json!({"kind": "raw", "a": {}})), Event::Raw(json!({"a": {}})));
    let Event::Labels(labels) = same(&json!({"kind": "labels", "x": 1})) else { panic!() };
    assert_eq!(labels.extra, BTreeMap::from([("x".into(), 1)]));
}

/// Wherever the tag is, the union is the same; what a variant keeps of the rest does not hold it.
#[test]
fn the_place_of_a_tag_makes_no_difference() {
    for members in [
        vec![("kind", json!("map")), ("a", json!(1)), ("b", json!(2))],
        vec![("kind", json!("labels")), ("name", json!("n")), ("x", json!(1))],
        vec![("kind", json!("raw")), ("a", json!({"kind": "map"})), ("b", json!([{}]))],
        vec![("kind", json!("force-push")), ("commits", json!(["a"])), ("more", json!({"kind": 1}))],
        vec![("kind", json!("issue")), ("title", json!("\n")), ("more", json!(null))],
        vec![("kind", json!("gone")), ("a", json!({"b": []})), ("c", json!("\\"))],
    ] {
        let text = |at: usize| {
            let mut members = members.clone();
            let tag = members.remove(0);
            members.insert(at, tag);
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            format!(" {{ {} }} ", members.join(" , "))
        };
        let first: Event = from_str(&text(0)).unwrap();
        for at in 1..members.len() {
            assert_eq!(from_str::<Event>(&text(at)).unwrap(), first, "{}", text(at));
            let mut listed: Vec<Event> = from_str(&format!("[{},{}]", text(at), text(0))).unwrap();
            assert_eq!((listed.pop().as_ref(), listed.pop().as_ref()), (Some(&first), Some(&first)));
            // Two faults: behind the tag that is looked for, and before it.
            for end in 0..text(at).trim_end().len() {
                let cut = &text(at)[..end];
                assert!(from_str::<Event>(cut).is_err(), "{cut}");
            }
        }
    }
    // Of two tags the first tells the variant.
    let event: Event = from_str(r#"{"x": 1, "kind": "labels", "kind": "map"}"#).unwrap();
    assert_eq!(event, from_str(r#"{"kind": "labels", "x": 1}"#).unwrap());
}

/// A name is guessed from the one before it, and only a name that is written as the guess is taken for it.
#[test]
fn names_are_not_taken_for_others() {
    let in_order = r#"{"id": 1, "owner": "o", "tag": "t", "weight": 1.5, "limit": 2, "status": "new", "$type": []}"#;
    let pet: Pet = from_str(in_order).unwrap();
    for text in [
        r#"{"\u0069d": 1, "owner": "o", "tag": "t", "weight": 1.5, "limit": 2, "status": "new", "$type": []}"#,
        r#"{"$type": [], "status": "new", "limit": 2, "weight": 1.5, "tag": "t", "owner": "o", "id": 1}"#,
        r#"{"id": 1, "own": 0, "owner": "o", "ownerr": 0, "tag" :"t", "weight": 1.5, "limit": 2, "status": "new", "$type": []}"#,
        r#"{"": 0, "i": 0, "id": 1, "id ": 0, "owner": "o", "tag": "t", "weight": 1.5, "limit": 2, "status": "new", "$type": []}"#,
    ] {
        assert_eq!(from_str::<Pet>(text).unwrap(), pet, "{text}");
    }
    for end in 0..in_order.len() {
        assert!(from_str::<Pet>(&in_order[..end]).is_err(), "{end}");
    }
    let quoted = same::<Quoted>(&json!({"a\"b": 1, "c\\d": 2}));
    assert_eq!((quoted.quote, quoted.slash), (1, 2));
    assert_eq!(fails_as_text::<Quoted>(r#"{"a"b": 1, "c\\d": 2}"#), "expected `:`");
    assert_eq!(fails_as_text::<Quoted>(r#"{"a\"b": 1, "c\d": 2}"#), "invalid escape");
}

/// A newtype of the user's whose name is a key of the map that it is the key of.
#[test]
fn newtypes_stay_keys() {
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    struct Key(String);
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    #[serde(rename = "7")]
    struct Number(u8);
    let map = same::<BTreeMap<Key, i64>>(&json!({"Key": 1, "key": 2}));
    assert_eq!(map[&Key("Key".into())], 1);
    assert_eq!(from_str::<BTreeMap<Number, i64>>(r#"{"7": 1, "8": 2}"#).unwrap()[&Number(7)], 1);
}

#[track_caller]
fn fails_as_text<T: DeserializeOwned + Debug>(text: &str) -> String {
    from_str::<T>(text).unwrap_err().message
}

#[test]
fn an_unknown_tag_keeps_the_object() {
    for kind in [json!("new"), json!(1), Value::Null, json!([1, {"a": "b"}])] {
        let event = json!({"a": [1.5, -1, true, null, "\n"], "kind": kind, "z": {"y": 1}});
        assert_eq!(same::<Event>(&event), Event::Other(event));
    }
    // Without a tag there is no telling either.
    assert_eq!(same::<Event>(&json!({"a": 1})), Event::Other(json!({"a": 1})));
    assert_eq!(fails::<Vec<Event>>(&json!([1])).1, "invalid type: integer `1`, expected an object (Event)");
    assert!(to_value(&Event::Other(json!(1))).is_err());
}

#[test]
fn a_tag_may_be_a_boolean_or_an_integer() {
    assert!(matches!(same::<Answer>(&json!({"ok": true, "a": 1})), Answer::Yes(_)));
    assert!(matches!(same::<Answer>(&json!({"a": 1, "ok": false})), Answer::No(_)));
    assert!(matches!(same::<Answer>(&json!({"ok": -3})), Answer::Third(_)));
    assert!(matches!(same::<Answer>(&json!({"ok": "true"})), Answer::Other(_)));
}

#[test]
fn an_error_in_front_of_the_tag_has_its_pointer_too() {
    let pet = json!({"id": 1, "owner": null, "$type": [], "parent": {"id": 2, "owner": null, "$type": 7}});
    let (pointer, message) = fails::<Vec<Event>>(&json!([{"a: b": 1, "pet": pet, "kind": "issue", "title": ""}]));
    assert_eq!(pointer, "/0/pet/parent/$type");
    assert_eq!(message, "invalid type: integer `7`, expected a sequence");
    let text = r#"[{"kind": "map", "a": 1}, {"a: b": "x", "kind": "map", "b": 1}]"#;
    assert_eq!(from_str::<Vec<Event>>(text).unwrap_err().pointer, "/1/a: b");
    let text = r#"[{"commits": [], "kind": "issue", "tail": []}]"#;
    let error = from_str::<Vec<Event>>(text).unwrap_err();
    assert_eq!((error.pointer.as_str(), error.message.as_str()), ("/0", "missing property `title` of Issue"));
}

#[test]
fn an_untagged_union_is_told_apart_by_kind() {
    assert_eq!(same::<Id>(&json!(7)), Id::Number(7));
    assert_eq!(same::<Id>(&json!("7")), Id::Text("7".into()));
    assert_eq!(same::<Id>(&json!([1, ["a"]])), Id::List(vec![Id::Number(1), Id::List(vec![Id::Text("a".into())])]));
    assert!(matches!(same::<Id>(&json!({"kind": "a", "commits": []})), Id::Push(_)));
    assert_eq!(fails::<Id>(&json!(1.5)).1, "invalid type: floating point `1.5`, expected a variant of Id");
    assert_eq!(fails::<Id>(&Value::Null).1, "invalid type: null, expected a variant of Id");
    assert_eq!(fails::<Id>(&json!([1, {"kind": "a"}])), ("/1".into(), "missing property `commits` of Push".into()));
}

#[test]
fn an_untagged_union_is_told_apart_by_properties() {
    assert!(matches!(same::<Shape>(&json!({"radius": 1.5})), Shape::Circle(_)));
    assert!(matches!(same::<Shape>(&json!({"side": 1.5, "inner": {"radius": 2.0}})), Shape::Square(_)));
}

#[test]
fn an_open_record_and_an_empty_one() {
    let open = same::<Open>(&json!({"a": [], "b": [[], [[]]]}));
    assert_eq!(open.extra["b"].0.len(), 2);
    assert_eq!(fails::<Open>(&json!({"a": [[], [0]]})).0, "/a/1/0");
    assert_eq!(round::<Empty>(&json!({"a": 1}), &json!({})), Empty {});
}

#[test]
fn unions_hold_unions() {
    let map = json!({"kind": "map", "a": 1});
    assert_eq!(same::<Outer>(&map), Outer::Event(Event::Map([("a".into(), 1)].into())));
    assert!(matches!(same::<Outer>(&json!({"kind": "empty"})), Outer::Empty(_)));
    for text in [
        r#"{"kind":"answer","ok":true,"a":1}"#,
        r#"{"a":1,"kind":"answer","ok":true}"#,
        r#"{"ok":true,"a":1,"kind":"answer"}"#,
    ] {
        let outer: Outer = from_str(text).unwrap();
        let Outer::Answer(answer) = &outer else { panic!("{outer:?}") };
        assert!(matches!(&**answer, Answer::Yes(labels) if labels.extra["a"] == 1));
        assert_eq!(to_value(&outer).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }
    let error = from_str::<Outer>(r#"{"a":"x","ok":true,"kind":"answer"}"#).unwrap_err();
    assert_eq!(error.to_string(), "/a: invalid type: string \"x\", expected i64");
    let without = Box::new(Answer::Other(json!({"a": 1, "kind": "answer"})));
    assert_eq!(from_value::<Outer>(&json!({"a": 1, "kind": "answer"})).unwrap(), Outer::Answer(without));

    assert_eq!(same::<Any>(&map), Any::Outer(Outer::Event(Event::Map([("a".into(), 1)].into()))));
    assert_eq!(same::<Any>(&json!("auto")), Any::Scalar(Level::Auto));
    assert_eq!(same::<Any>(&json!(0.5)), Any::Scalar(Level::Half));
    for rest in [json!({"a": 1}), json!([1]), Value::Null, json!({"kind": "map", "a": "x"})] {
        assert_eq!(same::<Any>(&rest), Any::Rest(rest));
    }
}

/// What is kept of an object whose tag comes twice has the tag by which it was read.
#[test]
fn the_first_of_two_tags_stays() {
    for text in [r#"{"method":"cash","x":1,"method":"card"}"#, r#"{"x":1,"method":"cash","method":"card"}"#] {
        assert_eq!(from_str::<Payment>(text).unwrap(), Payment::Other(json!({"method": "cash", "x": 1})), "{text}");
    }
    // A value has only the last of them.
    let text = r#"{"kind":"issue","title":"t","kind":"raw"}"#;
    assert!(matches!(from_str::<Event>(text), Ok(Event::Issue(issue)) if issue.title == "t"));
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(from_value::<Event>(&value).unwrap(), Event::Raw(json!({"title": "t"})));
}

/// A tag that was put among what a variant keeps is written once, and as it is.
#[test]
fn a_tag_among_what_is_kept_is_written_once() {
    let labels = Labels { name: Some("n".into()), extra: BTreeMap::from([("kind".into(), 7), ("x".into(), 1)]) };
    for (event, text) in [
        (Event::Map(BTreeMap::from([("kind".into(), 7)])), r#"{"kind":7}"#),
        (Event::Map(BTreeMap::from([("a".into(), 1)])), r#"{"kind":"map","a":1}"#),
        (Event::Raw(json!({"kind": "raw"})), r#"{"kind":"raw"}"#),
        (Event::Labels(labels.clone()), r#"{"name":"n","kind":7,"x":1}"#),
    ] {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(to_value(&event).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }
    // In a box, too.
    let boxed = Boxed::Labels(Box::new(labels));
    assert_eq!(serde_json::to_string(&boxed).unwrap(), r#"{"name":"n","kind":7,"x":1}"#);
    let untagged = Boxed::Labels(Box::new(Labels { name: None, extra: BTreeMap::from([("x".into(), 1)]) }));
    assert_eq!(serde_json::to_string(&untagged).unwrap(), r#"{"kind":"labels","x":1}"#);
}
