use serde_json::json;

use super::*;
use crate::CallError;

const SECRET: &str = "p/s w\"d+\u{e9}1";

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add(SECRET);
    secrets.add("tok3n");
    secrets
}

#[test]
fn secrets_are_replaced_however_they_are_written() {
    for (text, told) in [
        ("nothing", "nothing"),
        ("", ""),
        ("a tok3n, tok3ntok3n", "a ***, ***"),
        ("p/s w\"d+\u{e9}1", "***"),
        ("?key=p%2Fs%20w%22d%2B%C3%A91&x", "?key=***&x"),
        ("?key=p%2fs+w%22d%2b%c3%a91&x", "?key=***&x"),
        (r#"{"told": "p\/s w\"d+\u00e91"}"#, r#"{"told": "***"}"#),
        (r#""{\"told\": \"p/s w\\\"d+é1\"}""#, r#""{\"told\": \"***\"}""#),
        ("<p>p/s w&quot;d+&#233;1</p>", "<p>***</p>"),
        ("to%6b3n, %74%6F%6B%33%6E", "***, ***"),
        ("tok%253n", "tok%253n"),
        ("tok3", "tok3"),
        ("\u{1f600}tok3n\u{1f600}", "\u{1f600}***\u{1f600}"),
    ] {
        assert_eq!(secrets().text(text), told, "{text}");
    }
    assert!(matches!(secrets().text("100 % & +"), Cow::Borrowed(_)));
}

#[test]
fn values_are_searched_to_the_last_name() {
    let mut secrets = secrets();
    secrets.add("12345678");
    let mut value = json!({ "tok3n": ["tok3n", { "a tok3n": [12_345_678, 1, null, true] }], "b": "c" });
    secrets.value(&mut value);
    assert_eq!(value, json!({ "***": ["***", { "a ***": ["***", 1, null, true] }], "b": "c" }));
}

#[test]
fn errors_keep_all_but_the_secrets() {
    let error = CallError::execution("HTTP 401: tok3n")
        .with_details(json!({ "statusCode": 401, "headers": { "x": "tok3n" }, "body": "a to", "truncated": true }))
        .with_operation("a.b")
        .transient();
    let told = error.clone().without(&secrets());
    assert_eq!((told.code(), told.operation()), (error.code(), Some("a.b")));
    assert_eq!(told.message(), "HTTP 401: ***");
    let details = json!({ "statusCode": 401, "headers": { "x": "***" }, "body": "a to", "truncated": true });
    assert_eq!(told.details(), &details);
    // What was cut off may end within a secret.
    let cut = CallError::execution("x").with_details(json!({ "body": "a tok3", "truncated": true }));
    assert_eq!(cut.without(&secrets()).details()["body"], "a ***");
}

#[cfg(any(feature = "mcp", feature = "openapi"))]
#[test]
fn the_pointer_of_a_diagnostic_leads_to_its_place() {
    let diagnostic = Diagnostic::warning("/paths/~1tok3n/get", "`/tok3n` is repeated")
        .with_help("see tok3n")
        .with_document("https://h.test/a.json?q=tok3n");
    let hidden = secrets().diagnostic(diagnostic);
    assert_eq!((&*hidden.pointer, &*hidden.message), ("/paths/~1tok3n/get", "`/***` is repeated"));
    assert_eq!(hidden.help.as_deref(), Some("see ***"));
    assert_eq!(hidden.document.as_deref(), Some("https://h.test/a.json?q=***"));
}

#[test]
fn what_is_short_or_harmless_stays() {
    let mut secrets = Secrets::default();
    secrets.add("abc");
    secrets.add_setting("Mode", "strict");
    secrets.add_header("User-Agent", "a long name of a program");
    secrets.add_header("Accept", "application/json");
    let text = "abc strict a long name of a program application/json";
    assert_eq!(secrets.text(text), text);
    secrets.add_header("X-Api-Key", "k3y!");
    secrets.add_header("X-Tenant", "a long value");
    assert_eq!(secrets.text("k3y! a long value"), "*** ***");
}

#[test]
fn parts_of_settings_are_secrets_themselves() {
    let mut secrets = Secrets::default();
    secrets.add_header("Authorization", "Bearer t0k3n-of-ann");
    secrets.add_header("Cookie", "theme=dark; id=s3ss10n-of-ann");
    secrets.add_setting("DATABASE_URL", "postgres://ann:p%40ssw0rd@db.test/x");
    secrets.add_setting("HOOK", "https://hooks.test/services/T0000/k3y0123456789abc?q=value-of-q&r=short#f");
    secrets.add("first line\nsecond line\n");
    for (text, told) in [
        ("Bearer t0k3n-of-ann", "Bearer ***"),
        ("s3ss10n-of-ann; theme=dark", "***; theme=dark"),
        ("p%40ssw0rd, p@ssw0rd", "***, ***"),
        ("postgres://ann@db.test/x", "postgres://ann@db.test/x"),
        ("/services/T0000/k3y0123456789abc?q=value-of-q", "/services/T0000/***?q=***"),
        ("first line: second line", "***: ***"),
    ] {
        assert_eq!(secrets.text(text), told, "{text}");
    }
}

#[cfg(feature = "http")]
#[test]
fn pairs_of_basic_authentication_are_secrets() {
    let mut secrets = Secrets::default();
    secrets.add_header("Authorization", "Basic YW5uOnA6d29yZD8/Pw==");
    for text in
        ["p:word???", "YW5uOnA6d29yZD8/Pw==", "YW5uOnA6d29yZD8/Pw", "YW5uOnA6d29yZD8_Pw", "YW5uOnA6d29yZD8%2FPw%3D%3D"]
    {
        assert_eq!(secrets.text(text), "***", "{text}");
    }
}

#[cfg(feature = "http")]
#[test]
fn a_user_without_a_password_is_a_secret() {
    let mut secrets = Secrets::default();
    secrets.add_header("Authorization", "Basic c2tfbGl2ZT8/Og==");
    for text in ["sk_live??", "c2tfbGl2ZT8/Og==", "c2tfbGl2ZT8_Og", "sk_live%3F%3F"] {
        assert_eq!(secrets.text(text), "***", "{text}");
    }
    let mut secrets = Secrets::default();
    secrets.add_url("https://sk%5Flive@api.test/v1");
    assert_eq!(secrets.text("sk_live c2tfbGl2ZTo= api.test"), "*** *** api.test");
    let mut secrets = Secrets::default();
    secrets.add_basic("", "");
    assert!(secrets.is_empty());
}

#[test]
fn hostile_texts_cost_in_proportion() {
    let mut secrets = Secrets::default();
    secrets.add(&format!("{}b", "a".repeat(16_000)));
    let start = std::time::Instant::now();
    for text in ["a".repeat(1 << 20), "%61".repeat(1 << 20), "%25".repeat(1 << 20), r"\\".repeat(1 << 20)] {
        assert_eq!(secrets.text(&text), text);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}
