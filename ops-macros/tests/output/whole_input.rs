pub async fn place(order: &Order) {}
pub struct Place;
const _: () = {
    use ::ops_runtime::__private as __ops;
    impl __ops::Operation for Place {
        type Input = Order;
        type Output = ();
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
                "shop.place",
            )
            .with_input(__ops::input_schema::<Order>())
            .with_output(__ops::output_schema::<()>());
    }
    impl __ops::Call for Place {}
    impl ::core::convert::From<Place> for __ops::Registration {
        fn from(_: Place) -> Self {
            Self::call::<
                Place,
                _,
                _,
            >(|input, _| async move { __ops::value(place(&input).await) })
        }
    }
    __ops::submit!(Place);
};
