//! Golden expansions: `tests/output/NAME.rs` is what the attribute and fn of a test expand to.
//!
//! `UPDATE_GOLDEN=1 cargo test -p ops-macros` writes them anew.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{File, Item};

use crate::expand::expand;

/// Compares an expansion, which must be short beside the user's fn and the input type, as must be what makes the input.
fn check(name: &str, arguments: TokenStream, item: &TokenStream) {
    let file = golden(name, arguments, item);
    let (own, making) = (own_lines(file.clone()), making_lines(file));
    assert!(own < 40, "{name} has {own} lines of its own");
    // One fn that makes the input, which names each property once, and one conversion.
    assert!(making <= 13, "{name} has {making} lines that make its input");
}

fn golden(name: &str, arguments: TokenStream, item: &TokenStream) -> File {
    let text = expand(arguments, item).to_string();
    let file: File = syn::parse_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    let printed = prettyplease::unparse(&file);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/output").join(format!("{name}.rs"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == printed, "{name} differs; see the difference with UPDATE_GOLDEN=1. It is now:\n{printed}");
    file
}

/// The lines of an expansion beside the user's fn, and the input type with what makes it.
fn own_lines(mut file: File) -> usize {
    file.items.retain(|item| match item {
        Item::Fn(_) | Item::Impl(_) => false,
        Item::Struct(item) => !item.ident.to_string().ends_with("Input"),
        _ => true,
    });
    prettyplease::unparse(&file).lines().count()
}

/// The lines of an expansion by which callers make the input.
fn making_lines(mut file: File) -> usize {
    file.items.retain(|item| matches!(item, Item::Impl(_)));
    prettyplease::unparse(&file).lines().count()
}

#[test]
fn basic() {
    check(
        "basic",
        quote!(namespace = "math"),
        &quote! {
            /// Adds two numbers.
            pub async fn add(a: i64, b: i64) -> i64 {
                a + b
            }
        },
    );
}

#[test]
fn everything() {
    golden(
        "everything",
        quote! {
            namespace = "shop", name = "reserve/pet", kind = query, version = "2.1.0", title = "Reserve",
            tags("pets", "stock"), scopes("pets:write"), scopes_any("staff", "admin"),
            resource(type = "pet", action = "reserve"), timeout = "5s",
            retry(attempts = 5, backoff = "250ms", max_backoff = "1m", factor = 3, deadline = "1h", errors(Busy)), state(Pool, crate::Config),
            errors(NotFound = 404, "sold-out" = 409, Busy), deprecated
        },
        &quote! {
            /// Reserves a pet.
            ///
            /// Until *midnight*.
            pub(crate) async fn reserve(
                context: &Context,
                /// The name of the pet.
                #[serde(rename = "petName")]
                name: &str,
                #[input(default = 1)]
                #[schemars(range(min = 1))]
                count: u32,
                #[input(default = "en")] language: String,
                #[input(default)] tags: &[String],
                r#type: Option<Kind>,
            ) -> Result<ResponseEnvelope<Pet>, ShopError> {
                todo!()
            }
        },
    );
}

#[test]
fn subscription() {
    check(
        "subscription",
        quote!(namespace = "shop"),
        &quote! {
            async fn watch_pets(ids: &[u64], context: &Context) -> impl Stream<Item = Pet> {}
        },
    );
}

#[test]
fn subscription_in_result() {
    check(
        "subscription_in_result",
        quote!(namespace = "shop", kind = subscription),
        &quote! {
            async fn watch(context: Context, id: u64) -> Result<impl Stream<Item = Result<Pet>> + Send, ShopError> {}
        },
    );
}

#[test]
fn whole_input() {
    check(
        "whole_input",
        quote!(namespace = "shop"),
        &quote! {
            pub async fn place(#[input] order: &Order) {}
        },
    );
}

#[test]
fn no_parameters() {
    check(
        "no_parameters",
        quote!(namespace = "clock", kind = query),
        &quote! {
            async fn now() -> ResponseEnvelope<u64> {}
        },
    );
}

#[test]
fn unit_struct() {
    check(
        "unit_struct",
        quote!(namespace = "shop", kind = subscription, input = Query, output = Vec<Pet>, errors(NotFound)),
        &quote! {
            /// Follows the pets.
            pub struct Follow;
        },
    );
}

#[test]
fn http_places() {
    golden(
        "http_places",
        quote!(namespace = "shop", http = "POST /shops/{shop}/pets/{pet-id}", errors(Sold = 409)),
        &quote! {
            async fn sell(
                shop: &str,
                #[serde(rename = "pet-id")] id: u64,
                #[input(header = "Idempotency-Key")] key: Option<String>,
                #[input(cookie)] session: String,
                #[input(query = "dry-run", default)] dry_run: bool,
                #[input(query)] tags: &[String],
                price: Price,
                #[input(default = 1)] count: u32,
                context: &Context,
            ) -> Result<(), Sold> {
            }
        },
    );
}

#[test]
fn http_body() {
    check(
        "http_body",
        quote!(namespace = "shop", http = "PUT /pets/{id}"),
        &quote! {
            async fn put(id: u64, pet: &Pet) -> Pet {}
        },
    );
}

#[test]
fn http_flattened_body() {
    let expansion = expand(
        quote!(namespace = "shop", http = "POST /pets"),
        &quote! {
            async fn add(#[serde(flatten)] body: Page, n: u8) {}
        },
    );
    let text = expansion.to_string();
    assert!(text.contains("with_rest") && !text.contains("compile_error") && !text.contains("query"), "{text}");
}

#[test]
fn http_status() {
    golden(
        "http_status",
        quote!(namespace = "shop", http = "POST /pets", status = 201),
        &quote! {
            async fn add(pet: &Pet) -> Pet {}
        },
    );
}

#[test]
fn http_query() {
    check(
        "http_query",
        quote!(namespace = "shop", http = "GET /pets"),
        &quote! {
            async fn list(tags: &[String], limit: Option<u32>) -> Vec<Pet> {}
        },
    );
}

#[test]
fn http_subscription() {
    check(
        "http_subscription",
        quote!(namespace = "shop", http = "POST /pets/events"),
        &quote! {
            async fn watch(#[input] filter: Filter) -> impl Stream<Item = Pet> {}
        },
    );
}

#[test]
fn mistakes() {
    golden(
        "mistakes",
        quote!(namespace = "shop.eu", kin = query, version = 1, errors(Bad = 600), timeout = "5"),
        &quote! {
            pub async fn find<T>(id: u64, (a, b): (T, T), name: &'static str, other: T) -> &str {}
        },
    );
}

#[test]
fn what_is_bound_to_head_gives_nothing() {
    let told = |http: &str, item: &TokenStream| expand(quote!(namespace = "a", http = #http), item).to_string();
    let count = quote!(
        async fn count(id: u64) -> u64 {}
    );
    for (http, is_checked) in [("HEAD /pets", true), ("GET /pets", false)] {
        let text = told(http, &count);
        assert_eq!((text.contains("gives_nothing"), text.contains("compile_error")), (is_checked, false), "{text}");
    }
    let watch = quote!(
        async fn watch() -> impl Stream<Item = u64> {}
    );
    for (http, is_refused) in [("HEAD /pets", true), ("GET /pets", false)] {
        let text = told(http, &watch);
        assert_eq!(text.contains("a response to HEAD has no body"), is_refused, "{text}");
    }
}

#[test]
fn names_that_hide_what_the_code_names() {
    let told = |item: &TokenStream| expand(quote!(namespace = "a"), item).to_string();
    for item in [
        quote!(
            async fn send(to: String) -> Result<(), Box<dyn Error + Send + Sync>> {}
        ),
        quote!(
            async fn pet(id: u64) -> Vec<Pet> {}
        ),
        quote!(
            async fn option(limit: Option<u64>) {}
        ),
        quote!(
            async fn none() {}
        ),
        quote!(
            async fn find(queries: Vec<FindInput>) {}
        ),
    ] {
        let text = told(&item);
        assert!(text.contains("keep the id by `name") && !text.contains("struct"), "{text}");
    }
    // Nothing beside these names that, or means it by another path.
    for item in [
        quote!(
            async fn send(to: String) -> u64 {}
        ),
        quote!(
            async fn find(#[input] input: FindInput) {}
        ),
        quote!(
            async fn echo(text: String) -> EchoInput {}
        ),
        quote!(
            async fn item() -> impl Stream<Item = u64> {}
        ),
        quote!(
            async fn pet(id: u64) -> shop::Pet {}
        ),
    ] {
        let text = told(&item);
        assert!(!text.contains("compile_error"), "{text}");
    }
}

#[test]
fn places_have_names_and_parameters_one_default() {
    for (parameter, message) in [
        (quote!(#[input(header = "")] a: String), "the name of a header cannot be empty"),
        (quote!(#[input(cookie = "")] a: String), "the name of a cookie cannot be empty"),
        (quote!(#[input(default = 1, default = 2)] a: u8), "a parameter has one default"),
        (quote!(#[input(default)] #[input(default = 2)] a: u8), "a parameter has one default"),
        (quote!(#[input(default = Some(7))] a: Option<u8>), "a query has no text for `None`"),
        (quote!(#[input(header = "X-A")] #[serde(default = "seven")] a: Option<u8>), "a header has no text for `None`"),
        (quote!(#[input(cookie, default = Some(Some(7)))] a: Option<Option<u8>>), "a cookie has no text for `None`"),
    ] {
        let item = quote! { async fn find(#parameter) {} };
        let text = expand(quote!(namespace = "a", http = "GET /a"), &item).to_string();
        assert!(text.contains(message), "{text}");
    }
    for parameter in [quote!(#[input(default = None)] a: Option<u8>), quote!(#[input(default)] a: Option<u8>)] {
        let item = quote! { async fn find(#parameter) {} };
        let text = expand(quote!(namespace = "a", http = "GET /a"), &item).to_string();
        assert!(!text.contains("compile_error"), "{text}");
    }
}

#[test]
fn errors_have_statuses_of_errors() {
    for (status, is_one) in [
        (quote!(99), false),
        (quote!(200), false),
        (quote!(302), false),
        (quote!(399), false),
        (quote!(400), true),
        (quote!(599), true),
        (quote!(600), false),
        (quote!("404"), false),
    ] {
        let item = quote!(
            async fn find(id: u64) -> Result<u64, String> {}
        );
        let text = expand(quote!(namespace = "a", errors(Gone = #status)), &item).to_string();
        let message = "expected the HTTP status of an error, from 400 to 599, without quotes";
        assert_eq!(text.contains(message), !is_one, "{status}: {text}");
        assert_eq!(text.contains("compile_error"), !is_one, "{status}: {text}");
    }
}

#[test]
fn how_optional_parameters_are_written_and_read() {
    for (parameter, skips, reads) in [
        (quote!(a: Option<u8>), 1, 0),
        (quote!(a: &Option<u8>), 1, 0),
        (quote!(a: ::std::option::Option<core::option::Option<u8>>), 1, 1),
        (quote!(a: own::Option<u8>), 0, 0),
        // A default would replace what is left out.
        (quote!(#[input(default)] a: Option<u8>), 0, 0),
        (quote!(#[input(default = Some(1))] a: Option<Option<u8>>), 0, 0),
        (quote!(#[serde(default = "one")] a: Option<Option<u8>>), 0, 0),
        // Unless it is that of the type.
        (quote!(#[input(default)] a: Option<Option<u8>>), 1, 1),
        (quote!(#[serde(default)] a: Option<Option<u8>>), 1, 1),
        // What the user says of it stays.
        (quote!(#[serde(skip_serializing_if = "is_zero")] a: Option<u8>), 1, 0),
        (quote!(#[serde(rename = "b", with = "double")] a: Option<Option<u8>>), 0, 0),
        (quote!(#[serde(flatten)] a: Option<Page>), 0, 0),
        (quote!(#[schemars(extend("x-a" = 1), required)] a: Option<u8>), 0, 0),
        (quote!(#[schemars(with = "serde_json::Value")] a: Option<u8>), 0, 0),
        (quote!(#[schemars(schema_with = "any")] a: Option<u8>), 0, 0),
    ] {
        let item = quote! { async fn find(#parameter) {} };
        let text = expand(quote!(namespace = "a"), &item).to_string();
        let found = ["skip_serializing_if", "deserialize_with"].map(|word| text.matches(word).count());
        assert_eq!(found, [skips, reads], "{text}");
        // Serde takes no attribute twice.
        assert!(text.matches("serde (default").count() <= 1 && !text.contains("compile_error"), "{text}");
    }
}

#[test]
fn other_runtime() {
    let expansion = expand(
        quote!(namespace = "math", crate = crate::ops, errors(Overflow), state(Pool)),
        &quote! {
            async fn add(#[input(default = 1)] a: i64, context: &Context) -> Result<impl Stream<Item = i64>, Oops> {}
        },
    );
    let text = expansion.to_string();
    assert!(!text.contains("ops_runtime"), "{text}");
    assert!(text.contains("crate::ops::__private::serde"), "{text}");
    let mistaken = expand(
        quote!(crate = crate::ops),
        &quote!(
            async fn add() {}
        ),
    );
    assert!(!mistaken.to_string().contains("ops_runtime"));
}

#[test]
fn item_survives() {
    for item in [
        quote!(
            enum Kind {}
        ),
        quote!(
            async fn half(a: )
        ),
        quote!(
            fn f(&self) {}
        ),
        quote!(
            struct S<T>(T);
        ),
        quote!(
            mod m {}
        ),
        TokenStream::new(),
    ] {
        let text = expand(quote!(namespace = "a"), &item).to_string();
        assert!(text.starts_with(&item.to_string()), "{text}");
        assert!(text.contains("compile_error"), "{text}");
    }
}
