/// Adds two numbers.
pub async fn add(a: i64, b: i64) -> i64 {
    a + b
}
///The input of [`Add`].
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
pub struct AddInput {
    pub a: i64,
    pub b: i64,
}
impl AddInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    pub fn new(a: i64, b: i64) -> Self {
        Self { a, b }
    }
}
impl ::core::convert::From<(i64, i64)> for AddInput {
    fn from(value: (i64, i64)) -> Self {
        Self::new(value.0, value.1)
    }
}
/// Adds two numbers.
pub struct Add;
const _: () = {
    use ::ops_runtime::__private as __ops;
    impl __ops::Operation for Add {
        type Input = AddInput;
        type Output = i64;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
                "math.add",
            )
            .with_description("Adds two numbers.")
            .with_input(__ops::input_schema::<AddInput>())
            .with_output(__ops::output_schema::<i64>());
    }
    impl __ops::Call for Add {}
    impl __ops::Handled for Add {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|input| async move { __ops::value(add(input.a, input.b).await) })
        }
    }
    __ops::submit!(Add);
};
