//! Variants of unions that are not generated: options, and types of the user's own.

use std::collections::BTreeMap;

use ops_runtime::record::{from_str, from_value};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shapes::{fails, same};
use super::types::Push;

/// Lists and objects that may be null.
#[derive(Debug, PartialEq)]
enum Stop {
    Word(String),
    Words(Option<Vec<String>>),
    Limits(Option<BTreeMap<String, i64>>),
    Never(bool),
}

ops_runtime::__generated::untagged!(Stop {
    String => Word,
    Array | Null => Words,
    Object | Null => Limits,
    Boolean => Never
});

#[test]
fn a_variant_may_be_null_or_a_list_or_an_object() {
    assert_eq!(same::<Stop>(&json!(["a", "b"])), Stop::Words(Some(vec!["a".into(), "b".into()])));
    assert_eq!(same::<Stop>(&json!([])), Stop::Words(Some(vec![])));
    assert_eq!(same::<Stop>(&json!({"tokens": 7})), Stop::Limits(Some([("tokens".into(), 7)].into())));
    assert_eq!(same::<Stop>(&Value::Null), Stop::Words(None));
    assert_eq!(same::<Stop>(&json!("a")), Stop::Word("a".into()));
    assert_eq!(same::<Vec<Stop>>(&json!([["a"], {}])).len(), 2);
    assert_eq!(fails::<Stop>(&json!(["a", 1])), ("/1".into(), "invalid type: integer `1`, expected a string".into()));
    assert_eq!(fails::<Stop>(&json!({"tokens": "7"})).0, "/tokens");
    assert!(from_str::<Stop>(r#"["a""#).is_err());
}

/// Items, the first of which might be read as all of them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Rows(Vec<Value>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Money(BTreeMap<String, i64>);

#[derive(Debug, PartialEq)]
enum Table {
    Rows(Rows),
    Money(Money),
}

ops_runtime::__generated::untagged!(Table { Array => Rows, Object => Money });

#[test]
fn a_variant_may_be_a_newtype() {
    assert_eq!(same::<Table>(&json!([[1, 2]])), Table::Rows(Rows(vec![json!([1, 2])])));
    assert_eq!(same::<Table>(&json!(["a"])), Table::Rows(Rows(vec![json!("a")])));
    assert_eq!(same::<Table>(&json!({"EUR": 3})), Table::Money(Money([("EUR".into(), 3)].into())));
    assert_eq!(fails::<Table>(&json!({"EUR": "3"})).0, "/EUR");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Cash(BTreeMap<String, Value>);

#[derive(Debug, PartialEq)]
enum Paid {
    Cash(Cash),
    Card(Option<Cash>),
    Other(Value),
}

ops_runtime::__generated::tagged!(Paid["kind"] { "cash" => Cash(_), "card" => Card(_), _ => Other });

#[test]
fn a_variant_of_a_tagged_union_may_be_an_option_or_a_newtype() {
    for text in [r#"{"kind": "cash", "sum": 3}"#, r#"{"sum": 3, "kind": "cash"}"#] {
        let members = || BTreeMap::from([("kind".to_owned(), json!("cash")), ("sum".to_owned(), json!(3))]);
        assert_eq!(from_str::<Paid>(text).unwrap(), Paid::Cash(Cash(members())), "{text}");
        let json: Value = serde_json::from_str(text).unwrap();
        assert_eq!(same::<Paid>(&json), Paid::Cash(Cash(members())));
        let card = from_str::<Paid>(&text.replace("cash", "card")).unwrap();
        assert!(matches!(&card, Paid::Card(Some(Cash(members))) if members.len() == 2), "{card:?}");
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Year(u16);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Unit {
    Metre,
    Foot,
}

/// Objects that are kept until it is known which they are, with keys that are no text.
#[derive(Debug, PartialEq)]
enum Counts {
    Push(Push),
    ByNumber(BTreeMap<i8, i64>),
    ByYear(BTreeMap<Year, i64>),
    ByHash(BTreeMap<u128, i64>),
    ByUnit(BTreeMap<Unit, i64>),
}

ops_runtime::__generated::untagged!(Counts {
    Object["kind", "commits"] => Push,
    Object => ByNumber,
    Object => ByYear,
    Object => ByHash,
    Object => ByUnit
});

#[test]
fn the_keys_of_a_variant_may_be_no_text() {
    assert_eq!(same::<Counts>(&json!({"-1": 2, "30": 4})), Counts::ByNumber([(-1, 2), (30, 4)].into()));
    assert_eq!(same::<Counts>(&json!({"1999": 1})), Counts::ByYear([(Year(1999), 1)].into()));
    // One more than a `u64` can be.
    let hash = u128::from(u64::MAX) + 1;
    assert_eq!(same::<Counts>(&json!({"18446744073709551616": 1})), Counts::ByHash([(hash, 1)].into()));
    assert_eq!(same::<Counts>(&json!({"Foot": 1})), Counts::ByUnit([(Unit::Foot, 1)].into()));
    assert!(matches!(same::<Counts>(&json!({"kind": "a", "commits": []})), Counts::Push(_)));
    for key in ["", " 1", "1 ", "+1", "01", "-0", "1.5", "1e2", "-129", "yes", "metre", "\n1"] {
        let json = Value::Object([(key.to_owned(), json!(1))].into_iter().collect());
        assert!(from_value::<Counts>(&json).is_err(), "{key:?}");
    }
}
