async fn sell(
    shop: &str,
    id: u64,
    key: Option<String>,
    session: String,
    dry_run: bool,
    tags: &[String],
    price: Price,
    count: u32,
    context: &Context,
) -> Result<(), Sold> {}
const _: () = ::ops_runtime::__private::is_parameter::<Price>();
///The input of [`Sell`].
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
struct SellInput {
    shop: ::std::string::String,
    #[serde(rename = "pet-id")]
    id: u64,
    #[serde(skip_serializing_if = "::core::option::Option::is_none")]
    key: Option<String>,
    session: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    tags: ::std::vec::Vec<String>,
    price: Price,
    #[serde(default = "SellInput::__default_count")]
    count: u32,
}
impl SellInput {
    fn __default_count() -> u32 {
        1
    }
}
impl SellInput {
    /// Sets what is required, and leaves the rest to its defaults.
    #[must_use]
    #[allow(dead_code)]
    fn new(
        shop: impl ::core::convert::Into<::std::string::String>,
        id: u64,
        session: impl ::core::convert::Into<String>,
        price: Price,
    ) -> Self {
        Self {
            shop: ::core::convert::Into::into(shop),
            id,
            key: ::core::default::Default::default(),
            session: ::core::convert::Into::into(session),
            dry_run: ::core::default::Default::default(),
            tags: ::core::default::Default::default(),
            price,
            count: Self::__default_count(),
        }
    }
}
struct Sell;
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl Sell {
        /// The error code `Sold`.
        const SOLD: &'static ::core::primitive::str = "Sold";
    }
    impl __ops::Operation for Sell {
        type Input = SellInput;
        type Output = ();
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::mutation(
                "shop.sell",
            )
            .with_input(__ops::input_schema::<SellInput>())
            .with_output(__ops::output_schema::<()>())
            .with_errors(const {
                &[__ops::ErrorDefinition::new(Self::SOLD).with_http_status(409u16)]
            })
            .with_http(
                __ops::HttpBinding::new("POST", "/shops/{shop}/pets/{pet-id}")
                    .with_parameters(const {
                        &[
                            __ops::HttpParameter::path("shop"),
                            __ops::HttpParameter::path("pet-id"),
                            __ops::HttpParameter::header("Idempotency-Key")
                                .with_property("key"),
                            __ops::HttpParameter::cookie("session"),
                            __ops::HttpParameter::query("dry-run")
                                .with_property("dry_run"),
                            __ops::HttpParameter::query("tags"),
                        ]
                    })
                    .with_bodies(const {
                        &[
                            __ops::HttpBody::new(
                                    __ops::type_of_rest(&[__ops::Sent::<Price>::IS_BYTES]),
                                )
                                .with_rest(),
                        ]
                    })
                    .with_responses(__ops::Sent::<()>::RESPONSES),
            );
    }
    impl __ops::Call for Sell {}
    impl __ops::Handled for Sell {
        fn registration() -> __ops::Registration {
            __ops::Registration::call::<
                Self,
                _,
                _,
            >(|input, context| async move {
                __ops::result(
                    sell(
                            &input.shop,
                            input.id,
                            input.key,
                            input.session,
                            input.dry_run,
                            &input.tags,
                            input.price,
                            input.count,
                            &context,
                        )
                        .await,
                )
            })
        }
    }
    __ops::submit!(Sell);
};
