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
    impl __ops::Handled for Place {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|input| async move { __ops::value(place(&input).await) })
        }
    }
    __ops::submit!(Place);
};
