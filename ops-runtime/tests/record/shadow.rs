//! Types with the names of everything that printed code could name by accident.

#![allow(non_camel_case_types)]

/// A value of this crate's own.
pub struct Result {
    pub ok: ::std::option::Option<Ok>,
    pub some: Some,
    pub record: ::std::option::Option<::std::boxed::Box<Record>>,
}

pub struct Record {
    pub vec: ::std::vec::Vec<String>,
    pub extra: ::std::collections::BTreeMap<::std::string::String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Some {
    None,
    Err,
    Other(::std::string::String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ok {
    Self_,
    Value,
    Other(::serde_json::Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Option {
    Result(::std::boxed::Box<Result>),
    Record(Record),
    Other(::serde_json::Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum String {
    Vec(::std::vec::Vec<Vec>),
    Option(::std::boxed::Box<Option>),
    String(::std::string::String),
    Box(Box),
}

pub type Box = bool;
pub type Vec = i64;
pub type Value = (Box, Vec);
pub struct Reader;
pub struct Deserialize;
pub struct Serialize;
pub struct None;
pub struct Err;
pub trait From {}
pub mod std {}
pub mod serde {}
pub mod serde_json {}
pub mod core {}

mod impls {
    use ::ops_runtime::record::prelude::*;

    impl Record for super::Result {
        const NAME: &'static str = "Result";
        const FIELDS: &'static [&'static str] = &["ok", "some", "record"];
        type Slots = (Optional<super::Ok>, Required<super::Some>, Optional<::std::boxed::Box<super::Record>>);
        fn make((ok, some, record): Values<Self>) -> Self {
            Self { ok, some, record }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.ok, &self.some, &self.record)
        }
    }
    ::ops_runtime::__generated::table!(super::Result);

    impl Record for super::Record {
        const NAME: &'static str = "Record";
        const FIELDS: &'static [&'static str] = &["vec"];
        type Slots = (Defaulted<::std::vec::Vec<super::String>>, Rest<super::Value>);
        fn make((vec, extra): Values<Self>) -> Self {
            Self { vec: vec.unwrap_or_default(), extra }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.vec, &self.extra)
        }
    }
    ::ops_runtime::__generated::table!(super::Record);
}

// The macros stand the company of these names even beside them.
::ops_runtime::__generated::names!(Some { "none" => None, "err" => Err, _ => Other });
::ops_runtime::__generated::values!(Ok { "self" => Self_, 1 => Value, _ => Other });
::ops_runtime::__generated::tagged!(Option["type"] { "result" => Result, "record" => Record, _ => Other });
::ops_runtime::__generated::untagged!(String { Array => Vec, Object => Option, String => String, Boolean => Box });

#[test]
fn names_of_the_prelude_are_free() {
    let text = r#"{"type":"result","ok":1,"some":"err","record":{"vec":["a",[1,2],true],"x":[false,3]}}"#;
    let option: Option = ::ops_runtime::record::from_str(text).unwrap();
    assert_eq!(::serde_json::to_string(&option).unwrap(), text);
}
