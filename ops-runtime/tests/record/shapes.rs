//! What each form accepts and writes.

use std::fmt::Debug;

use ops_runtime::record::{from_str, from_value, to_value};
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
fn same<T: DeserializeOwned + Serialize + PartialEq + Debug>(json: Value) -> T {
    round(&json, &json)
}

#[test]
fn a_record_has_every_flavour_of_field() {
    let least = round::<Pet>(
        &json!({"id": 1, "owner": null, "$type": [], "unknown": {"deep": [1, 2]}}),
        &json!({"id": 1, "owner": null, "limit": 20, "status": "paid", "$type": []}),
    );
    assert_eq!((least.weight, least.limit), (None, 20));
    let most = same::<Pet>(json!({
        "id": 1, "owner": "Ann", "tag": "x", "weight": null, "limit": 3, "status": "lost", "$type": [1, "auto", false, 0.5, null],
        "parent": {"id": 2, "owner": null, "weight": 1.5, "limit": 0, "status": "new", "$type": []}
    }));
    assert_eq!(most.weight, Some(None));
    assert_eq!(
        most.type_,
        [
            Level::One,
            Level::Auto,
            Level::Off,
            Level::Half,
            Level::Other(Value::Null)
        ]
    );
}
