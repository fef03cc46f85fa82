//! Comparing values with golden files.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use ops_runtime::record::{from_str, from_value, to_value};
use serde::de::DeserializeOwned;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// Named values of one type, in the order of the file.
struct Cases<'a, T>(&'a [(&'static str, T)]);

impl<T: Serialize> Serialize for Cases<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut m = s.serialize_map(None)?;
        self.0.iter().try_for_each(|(name, value)| m.serialize_entry(name, value))?;
        m.end()
    }
}

/// Checks that the cases are written as the file says, that the file is read as the cases from text and from values and
/// in any order of members, and that it conforms to the schema.
pub(crate) fn check<T>(file: &str, schema: &str, cases: &[(&'static str, T)])
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/json").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&Cases(cases)).unwrap();
        fs::write(&path, text + "\n").unwrap();
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let golden: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(golden.len(), cases.len(), "{file}");
    let validator = validator(schema);
    for (name, value) in cases {
        let json = &golden[*name];
        assert_eq!(&to_value(value).unwrap(), json, "{file}, {name}: written");
        assert_eq!(&from_str::<T>(&json.to_string()).unwrap(), value, "{file}, {name}: read from text");
        assert_eq!(&from_str::<T>(&reversed(json)).unwrap(), value, "{file}, {name}: read in reverse");
        assert_eq!(&from_value::<T>(json).unwrap(), value, "{file}, {name}: read from a value");
        if let Err(error) = validator.validate(json) {
            panic!("{file}, {name}: {error} at {}", error.instance_path());
        }
    }
}

/// Compiles a schema, which must be valid itself.
pub(crate) fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Checks that a schema refuses every one of the values.
#[track_caller]
pub(crate) fn refused(schema: &str, bad: &[Value]) {
    let validator = validator(schema);
    for value in bad {
        assert!(!validator.is_valid(value), "{value}");
    }
}

/// The JSON text of a value with the members of every object in reverse.
pub(crate) fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members =
                members.iter().rev().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), reversed(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
