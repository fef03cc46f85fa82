/// Reserves a pet.
///
/// Until *midnight*.
pub(crate) async fn reserve(
    context: &Context,
    name: &str,
    count: u32,
    language: String,
    tags: &[String],
    r#type: Option<Kind>,
) -> Result<ResponseEnvelope<Pet>, ShopError> {
    todo!()
}
const _: () = ::ops_runtime::__private::is_parameter::<Option<Kind>>();
///The input of [`Reserve`].
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
pub(crate) struct ReserveInput {
    /// The name of the pet.
    #[serde(rename = "petName")]
    pub(crate) name: ::std::string::String,
    #[schemars(range(min = 1))]
    #[serde(default = "ReserveInput::__default_count")]
    pub(crate) count: u32,
    #[serde(default = "ReserveInput::__default_language")]
    pub(crate) language: String,
    #[serde(default)]
    pub(crate) tags: ::std::vec::Vec<String>,
    #[serde(skip_serializing_if = "::core::option::Option::is_none")]
    pub(crate) r#type: Option<Kind>,
}
impl ReserveInput {
    fn __default_count() -> u32 {
        1
    }
    fn __default_language() -> String {
        ::core::convert::From::from("en")
    }
}
impl ReserveInput {
    /// Sets what is required, and leaves the rest to its defaults.
    #[must_use]
    #[allow(dead_code)]
    pub(crate) fn new(name: impl ::core::convert::Into<::std::string::String>) -> Self {
        Self {
            name: ::core::convert::Into::into(name),
            count: Self::__default_count(),
            language: Self::__default_language(),
            tags: ::core::default::Default::default(),
            r#type: ::core::default::Default::default(),
        }
    }
}
impl<__A: ::core::convert::Into<::std::string::String>> ::core::convert::From<__A>
for ReserveInput {
    fn from(value: __A) -> Self {
        Self::new(value)
    }
}
/// Reserves a pet.
///
/// Until *midnight*.
pub(crate) struct Reserve;
#[allow(deprecated)]
const _: () = {
    use ::ops_runtime::__private as __ops;
    #[allow(unused_imports)]
    use __ops::SentAsJson as _;
    impl Reserve {
        /// The error code `NotFound`.
        pub(crate) const NOT_FOUND: &'static ::core::primitive::str = "NotFound";
        /// The error code `sold-out`.
        pub(crate) const SOLD_OUT: &'static ::core::primitive::str = "sold-out";
        /// The error code `Busy`.
        pub(crate) const BUSY: &'static ::core::primitive::str = "Busy";
    }
    impl __ops::Operation for Reserve {
        type Input = ReserveInput;
        type Output = Pet;
        const SPEC: &'static __ops::OperationSpec = &__ops::OperationSpec::query(
                "shop.reserve/pet",
            )
            .with_version("2.1.0")
            .with_title("Reserve")
            .with_description("Reserves a pet.\n\nUntil *midnight*.")
            .with_tags(&["pets", "stock"])
            .with_input(__ops::input_schema::<ReserveInput>())
            .with_output(__ops::output_schema::<Pet>())
            .with_errors(const {
                &[
                    __ops::ErrorDefinition::new(Self::NOT_FOUND)
                        .with_http_status(404u16),
                    __ops::ErrorDefinition::new(Self::SOLD_OUT).with_http_status(409u16),
                    __ops::ErrorDefinition::new(Self::BUSY),
                ]
            })
            .with_access(
                __ops::AccessControl::NONE
                    .with_scopes(&["pets:write"])
                    .with_scopes_any(&["staff", "admin"])
                    .with_resource("pet", "reserve"),
            )
            .with_timeout(::core::time::Duration::from_millis(5000u64))
            .with_retry(const {
                &__ops::RetryPolicy::new(5u32)
                    .with_backoff(
                        ::core::time::Duration::from_millis(250u64),
                        ::core::time::Duration::from_millis(60000u64),
                    )
                    .with_factor(3u32)
                    .with_codes(&["Busy"])
                    .with_deadline(::core::time::Duration::from_millis(3600000u64))
            })
            .with_deprecated();
    }
    impl __ops::Call for Reserve {}
    const _: () = __ops::is_data(__ops::Sent::<Pet>::IS_RESULT);
    impl __ops::Handled for Reserve {
        fn registration() -> __ops::Registration {
            __ops::Registration::call::<
                Self,
                _,
                _,
            >(|input, context| async move {
                    __ops::result_envelope(
                        reserve(
                                &context,
                                &input.name,
                                input.count,
                                input.language,
                                &input.tags,
                                input.r#type,
                            )
                            .await,
                    )
                })
                .requires::<Pool>()
                .requires::<crate::Config>()
        }
    }
    __ops::submit!(Reserve);
};
