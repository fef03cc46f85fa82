async fn list(tags: &[String], limit: Option<u32>) -> Vec<Pet> {}
///The input of [`List`].
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
struct ListInput {
    #[serde(default)]
    tags: ::std::vec::Vec<String>,
    #[serde(skip_serializing_if = "::core::option::Option::is_none")]
    limit: Option<u32>,
}
impl ::core::default::Default for ListInput {
    fn default() -> Self {
        Self {
            tags: ::core::default::Default::default(),
            limit: ::core::default::Default::default(),
        }
    }
}
impl ::core::convert::From<()> for ListInput {
    fn from((): ()) -> Self {
        ::core::default::Default::default()
    }
}
struct List;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl __ops::Operation for List {
        type Input = ListInput;
        type Output = Vec<Pet>;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::query(
                "shop.list",
            )
            .with_input(__ops::input_schema::<ListInput>())
            .with_output(__ops::output_schema::<Vec<Pet>>())
            .with_http(
                __ops::HttpBinding::new("GET", "/pets")
                    .with_parameters(const {
                        &[
                            __ops::HttpParameter::query("tags"),
                            __ops::HttpParameter::query("limit"),
                        ]
                    })
                    .with_responses(__ops::Sent::<Vec<Pet>>::RESPONSES),
            );
    }
    impl __ops::Call for List {}
    impl __ops::Handled for List {
        fn registration() -> __ops::Registration {
            __ops::Registration::function::<
                Self,
                _,
                _,
            >(|input| async move { __ops::value(list(&input.tags, input.limit).await) })
        }
    }
    __ops::submit!(List);
};
