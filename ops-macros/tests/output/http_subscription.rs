async fn watch(filter: Filter) -> impl Stream<Item = Pet> {}
struct Watch;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for Watch {
        type Input = Filter;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::subscription(
                "shop.watch",
            )
            .with_input(__ops::input_schema::<Filter>())
            .with_output(__ops::output_schema::<Pet>())
            .with_http(
                __ops::HttpBinding::new("POST", "/pets/events")
                    .with_bodies(const {
                        &[__ops::HttpBody::new(__ops::type_of_rest(&[])).with_rest()]
                    })
                    .with_responses(__ops::ITEMS),
            );
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
            >(|input, _| {
                __ops::generate(move |sink| async move {
                    sink.send_all(watch(input).await, |item| __ops::value(item)).await
                })
            })
        }
    }
    __ops::submit!(Watch);
};
