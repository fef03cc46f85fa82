async fn put(id: u64, pet: &Pet) -> Pet {}
const _: () = ::ops_runtime::__private::is_parameter::<Pet>();
///The input of [`Put`].
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
struct PutInput {
    id: u64,
    pet: Pet,
}
impl PutInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    fn new(id: u64, pet: Pet) -> Self {
        Self { id, pet }
    }
}
impl ::core::convert::From<(u64, Pet)> for PutInput {
    fn from(value: (u64, Pet)) -> Self {
        Self::new(value.0, value.1)
    }
}
struct Put;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for Put {
        type Input = PutInput;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
                "shop.put",
            )
            .with_input(__ops::input_schema::<PutInput>())
            .with_output(__ops::output_schema::<Pet>())
            .with_http(
                __ops::HttpBinding::new("PUT", "/pets/{id}")
                    .with_parameters(const { &[__ops::HttpParameter::path("id")] })
                    .with_bodies(const {
                        &[
                            __ops::HttpBody::new(__ops::Sent::<Pet>::TYPE)
                                .with_property("pet"),
                        ]
                    })
                    .with_responses(__ops::Sent::<Pet>::RESPONSES),
            );
    }
    impl __ops::Call for Put {}
    const _: () = __ops::is_data(__ops::Sent::<Pet>::IS_RESULT);
    impl __ops::Handled for Put {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|input| async move { __ops::value(put(input.id, &input.pet).await) })
        }
    }
    __ops::submit!(Put);
};
