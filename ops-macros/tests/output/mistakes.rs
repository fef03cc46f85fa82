pub async fn find<T>(id: u64, (a, b): (T, T), name: &'static str, other: T) -> &str {}
::core::compile_error! {
    "a namespace has no dot: the id `namespace.name` is split at its first one"
}
::core::compile_error! {
    "unknown argument `kin`; the known ones are `namespace`, `name`, `kind`, `http`, `status`, `title`, `version`, `timeout`, `retry`, `tags`, `scopes`, `scopes_any`, `resource`, `errors`, `state`, `deprecated`, `input`, `output`, `crate`"
}
::core::compile_error! {
    "expected a text in quotes"
}
::core::compile_error! {
    "expected the HTTP status of an error, from 400 to 599, without quotes"
}
::core::compile_error! {
    "expected a whole number and a unit: \"250ms\", \"5s\", \"2m\" or \"1h\""
}
::core::compile_error! {
    "an operation cannot be generic: its input and output are one type each"
}
::core::compile_error! {
    "a parameter of an operation needs a name, which becomes the name of a property"
}
::core::compile_error! {
    "the input lives as long as the call: leave the lifetime out"
}
::core::compile_error! {
    "an operation gives owned data, such as a `String`"
}
///The input of [`Find`].
#[derive(
    ::core::fmt::Debug,
    ::core::clone::Clone,
    ::ops_runtime::__private::serde::Serialize,
    ::ops_runtime::__private::serde::Deserialize,
    ::ops_runtime::__private::schemars::JsonSchema,
)]
#[serde(crate = "::ops_runtime::__private::serde")]
#[schemars(crate = "::ops_runtime::__private::schemars", description = "")]
#[allow(missing_docs)]
pub struct FindInput {
    pub id: u64,
}
impl FindInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    pub fn new(id: u64) -> Self {
        Self { id }
    }
}
impl ::core::convert::From<u64> for FindInput {
    fn from(value: u64) -> Self {
        Self::new(value)
    }
}
pub struct Find;
const _: () = {
    use ::ops_runtime::__private as __ops;
    impl __ops::Operation for Find {
        type Input = FindInput;
        type Output = ();
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
            "invalid.operation",
        );
    }
    impl __ops::Call for Find {}
    impl __ops::Subscribe for Find {}
    impl __ops::Handled for Find {
        fn registration() -> __ops::Registration {
            ::core::unreachable!()
        }
    }
};
