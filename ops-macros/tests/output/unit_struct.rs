/// Follows the pets.
pub struct Follow;
const _: () = {
    use ::ops_runtime::__private as __ops;
    impl Follow {
        /// The error code `NotFound`.
        pub const NOT_FOUND: &'static ::core::primitive::str = "NotFound";
    }
    impl __ops::Operation for Follow {
        type Input = Query;
        type Output = Vec<Pet>;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::subscription(
                "shop.Follow",
            )
            .with_description("Follows the pets.")
            .with_input(__ops::input_schema::<Query>())
            .with_output(__ops::output_schema::<Vec<Pet>>())
            .with_errors(const { &[__ops::ErrorDefinition::new(Self::NOT_FOUND)] });
    }
    impl __ops::Subscribe for Follow {}
};
