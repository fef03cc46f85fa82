async fn add(pet: &Pet) -> Pet {}
const _: () = ::ops_runtime::__private::is_parameter::<Pet>();
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
struct AddInput {
    pet: Pet,
}
impl AddInput {
    /// Sets every property.
    #[must_use]
    #[allow(dead_code)]
    fn new(pet: Pet) -> Self {
        Self { pet }
    }
}
impl ::core::convert::From<Pet> for AddInput {
    fn from(value: Pet) -> Self {
        Self::new(value)
    }
}
struct Add;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for Add {
        type Input = AddInput;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
                "shop.add",
            )
            .with_input(__ops::input_schema::<AddInput>())
            .with_output(__ops::output_schema::<Pet>())
            .with_http(
                __ops::HttpBinding::new("POST", "/pets")
                    .with_bodies(const {
                        &[
                            __ops::HttpBody::new(__ops::Sent::<Pet>::TYPE)
                                .with_property("pet"),
                        ]
                    })
                    .with_responses(const {
                        &[__ops::success(201u16, __ops::Sent::<Pet>::GIVES)]
                    }),
            );
    }
    impl __ops::Call for Add {}
    const _: () = __ops::is_data(__ops::Sent::<Pet>::IS_RESULT);
    impl __ops::Handled for Add {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|input| async move { __ops::value(add(&input.pet).await) })
        }
    }
    __ops::submit!(Add);
};
