//! A module in which every name that an expansion could lean on means something else.
#![allow(unused_imports, dead_code, unused_macros, non_camel_case_types, non_snake_case)]

use ops_runtime::{Operation as _, operation};
use serde_json::json;

mod hostile {
    use super::operation;

    mod std {}
    mod core {}
    mod alloc {}
    mod serde {}
    mod serde_json {}
    mod schemars {}
    mod inventory {}
    mod ops_runtime {}

    pub(super) struct Option;
    pub(super) struct Vec;
    pub(super) struct Box;
    pub(super) struct String;
    pub(super) struct Default;
    pub(super) struct Send;
    pub(super) struct From;
    pub(super) struct Into;
    pub(super) struct Clone;
    pub(super) struct Debug;
    pub(super) struct Serialize;
    pub(super) struct Deserialize;
    pub(super) struct JsonSchema;
    pub(super) struct Operation;
    pub(super) struct Registration;
    pub(super) struct Stream;
    pub(super) struct CallError;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) type Result<T> = ::core::result::Result<T, ::std::string::String>;

    /// Its fn is called as the closure's parameter.
    #[operation(namespace = "hostile", kind = query, tags("x"), scopes("a"), errors(Bad = 400), timeout = "5s")]
    pub(super) async fn input(
        context: &str,
        sink: u32,
        __ops: ::core::option::Option<u8>,
        items: &[u8],
    ) -> Result<::std::string::String> {
        ::core::result::Result::Ok(::std::format!("{context} {sink} {__ops:?} {items:?}"))
    }

    #[operation(namespace = "hostile")]
    pub(super) async fn context(context: &::ops_runtime::Context, input: u8) -> u8 {
        let _ = context;
        input
    }

    #[operation(namespace = "hostile")]
    pub(super) async fn sink(
        context: &::ops_runtime::Context,
        input: u8,
    ) -> ::core::result::Result<impl ::futures_core::Stream<Item = Result<u8>>, ::std::string::String> {
        let _ = context;
        ::core::result::Result::Ok(::futures_util::stream::iter([::core::result::Result::Ok(input)]))
    }

    #[operation(namespace = "hostile", input = u8, output = u16)]
    pub(super) struct Apart;

    /// The code that schemars derives for a default says `Some`, so that one name must mean what it does everywhere.
    pub(super) mod defaults {
        use super::{Box, Default, Err, From, Into, None, Ok, Operation, Option, Result, String, Vec, operation};

        #[operation(namespace = "hostile")]
        pub(in super::super) async fn filled(
            #[input(default = "en")] context: &str,
            #[input(default = 3)] sink: u32,
            #[input(default)] __ops: ::core::option::Option<u8>,
        ) -> Result<::std::string::String> {
            ::core::result::Result::Ok(::std::format!("{context} {sink} {__ops:?}"))
        }
    }
}

#[tokio::test]
async fn expansions_lean_on_no_name() {
    let registry = ops_runtime::Registry::new();
    registry.register(hostile::Input).unwrap();
    registry.register(hostile::Sink).unwrap();
    registry.register(hostile::Context).unwrap();
    let output = registry.call("hostile.context", json!({ "input": 7 })).await.unwrap().into_data();
    assert_eq!(output, json!(7));
    let output = registry.call("hostile.input", json!({ "context": "c", "sink": 3, "items": [1] })).await;
    assert_eq!(output.unwrap().into_data(), json!("c 3 None [1]"));
    registry.register(hostile::defaults::Filled).unwrap();
    let output = registry.call("hostile.filled", json!({})).await.unwrap().into_data();
    assert_eq!(output, json!("en 3 None"));
}

/// A crate that offers the runtime under another name.
mod facade {
    pub(super) mod inner {
        pub(crate) use ops_runtime as ops;
    }
}

#[facade::inner::ops::operation(namespace = "facade", crate = crate::hygiene::facade::inner::ops)]
async fn renamed(#[input(default = 1)] n: u8) -> u8 {
    n
}

#[tokio::test]
async fn the_runtime_may_have_another_path() {
    let output = crate::registry(Renamed).call("facade.renamed", json!({})).await.unwrap();
    assert_eq!(output.into_data(), json!(1));
}

/// As a crate that offers the runtime makes operations, for crates that need not know it.
macro_rules! greeting {
    ($name:ident, $language:expr, $doc:expr) => {
        #[doc = $doc]
        #[$crate::hygiene::facade::inner::ops::operation(namespace = "facade", crate = $crate::hygiene::facade::inner::ops)]
        async fn $name(#[input(default = $language)] language: String, note: Option<Option<u8>>) -> String {
            let _ = note;
            language
        }
    };
}

greeting!(greet, "en", "Greets.");

#[tokio::test]
async fn another_macro_may_make_the_operation() {
    greeting!(salute, "de", "Salutes.");
    for (registry, id, language) in
        [(crate::registry(Greet), "facade.greet", "en"), (crate::registry(Salute), "facade.salute", "de")]
    {
        assert_eq!(registry.call(id, json!({})).await.unwrap().into_data(), json!(language));
    }
    let described = [Greet::SPEC, Salute::SPEC].map(|spec| &*spec.description);
    assert_eq!(described, ["Greets.", "Salutes."]);
}
