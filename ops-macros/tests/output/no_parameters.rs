async fn now() -> ResponseEnvelope<u64> {}
///The input of [`Now`].
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
struct NowInput {}
impl ::core::default::Default for NowInput {
    fn default() -> Self {
        Self {}
    }
}
impl ::core::convert::From<()> for NowInput {
    fn from((): ()) -> Self {
        ::core::default::Default::default()
    }
}
struct Now;
const _: () = {
    use ::ops_runtime::__private as __ops;
    impl __ops::Operation for Now {
        type Input = NowInput;
        type Output = u64;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::query(
                "clock.now",
            )
            .with_input(__ops::input_schema::<NowInput>())
            .with_output(__ops::output_schema::<u64>());
    }
    impl __ops::Call for Now {}
    impl __ops::Handled for Now {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|_| async move { __ops::envelope(now().await) })
        }
    }
    __ops::submit!(Now);
};
