async fn watch(
    context: Context,
    id: u64,
) -> Result<impl Stream<Item = Result<Pet>> + Send, ShopError> {}
///The input of [`Watch`].
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
struct WatchInput {
    id: u64,
}
impl WatchInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    fn new(id: u64) -> Self {
        Self { id }
    }
}
impl ::core::convert::From<u64> for WatchInput {
    fn from(value: u64) -> Self {
        Self::new(value)
    }
}
struct Watch;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for Watch {
        type Input = WatchInput;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::subscription(
                "shop.watch",
            )
            .with_input(__ops::input_schema::<WatchInput>())
            .with_output(__ops::output_schema::<Pet>());
    }
    impl __ops::Subscribe for Watch {}
    const _: () = __ops::is_data(__ops::Sent::<Pet>::IS_RESULT);
    impl __ops::Handled for Watch {
        fn registration() -> __ops::Registration {
            __ops::Registration::subscription::<
                Self,
                _,
                _,
                _,
            >(|input, context| {
                __ops::generate(move |sink| async move {
                    sink.send_all(
                            __ops::opened(watch(context, input.id).await)?,
                            |item| __ops::result(item),
                        )
                        .await
                })
            })
        }
    }
    __ops::submit!(Watch);
};
