async fn watch_pets(ids: &[u64], context: &Context) -> impl Stream<Item = Pet> {}
///The input of [`WatchPets`].
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
struct WatchPetsInput {
    ids: ::std::vec::Vec<u64>,
}
impl WatchPetsInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    fn new(ids: ::std::vec::Vec<u64>) -> Self {
        Self { ids }
    }
}
impl ::core::convert::From<::std::vec::Vec<u64>> for WatchPetsInput {
    fn from(value: ::std::vec::Vec<u64>) -> Self {
        Self::new(value)
    }
}
struct WatchPets;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for WatchPets {
        type Input = WatchPetsInput;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::subscription(
                "shop.watch_pets",
            )
            .with_input(__ops::input_schema::<WatchPetsInput>())
            .with_output(__ops::output_schema::<Pet>());
    }
    impl __ops::Subscribe for WatchPets {}
    const _: () = __ops::is_data(__ops::Sent::<Pet>::IS_RESULT);
    impl __ops::Handled for WatchPets {
        fn registration() -> __ops::Registration {
            __ops::Registration::subscription::<
                Self,
                _,
                _,
                _,
            >(|input, context| {
                __ops::generate(move |sink| async move {
                    sink.send_all(
                            watch_pets(&input.ids, &context).await,
                            |item| __ops::value(item),
                        )
                        .await
                })
            })
        }
    }
    __ops::submit!(WatchPets);
};
