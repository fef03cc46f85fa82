//! The decoder of generated types: it reads what it writes, and says of what it refuses where it is wrong.
//!
//! The types are those of the generator's golden files.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use ops_runtime::record::{from_slice, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ops_fuzz::mutate_json(data, size, max_size, seed)
});

macro_rules! golden {
    ($($module:ident $path:literal { $($t:ident)* })*) => {
        $(
            #[allow(dead_code)]
            #[path = $path]
            mod $module;
        )*

        fn all(input: &[u8]) {
            $($(one::<$module::$t>(input);)*)*
        }
    };
}

golden! {
    all_of "../../ops-codegen/tests/golden/all_of.rs" { Heir Grandchild Holder }
    defaults "../../ops-codegen/tests/golden/defaults.rs" { Settings Tagged Zero }
    enums "../../ops-codegen/tests/golden/enums.rs" { Mixed Open Signs Status Titles }
    records "../../ops-codegen/tests/golden/records.rs" { Labels Open Pair Pet Wide }
    recursion "../../ops-codegen/tests/golden/recursion.rs" { Expression Json Node Tree }
    unions "../../ops-codegen/tests/golden/unions.rs" {
        AllInput ByConst ByMapping ByName ByShape Choice Itself Nested Same Shared TypeListValue
    }
}

fuzz_target!(|input: &[u8]| all(input));

fn one<T: Serialize + DeserializeOwned>(input: &[u8]) {
    // What is passed over need not be a value: a number may be too large for any type, a text no UTF-8.
    let _ = from_slice::<T>(input);
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    // Without properties that come twice, the first of which may be wrong.
    let text = value.to_string();
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let decoded = from_slice::<T>(text.as_bytes());
    match (decoded, from_value::<T>(&value)) {
        (Ok(one), Ok(other)) => {
            let (one, other) = (json(&one), json(&other));
            assert_eq!(one, other, "a text and its value are alike");
            let again = from_value::<T>(&one).unwrap_or_else(|error| panic!("{error} in {one} of {value}"));
            assert_eq!(json(&again), one, "what is written is read");
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(value.pointer(&one.pointer).is_some(), "{one} leads nowhere in {value}");
        }
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("{error}: but for one of text and value"),
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    to_value(value).expect("a generated type has JSON")
}
