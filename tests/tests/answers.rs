//! What becomes of responses that are not as the document says, under each policy, by type and by id.
//!
//! A server of ours gives each response of a list over HTTP. The table in `ARCHITECTURE.md` is what this prints;
//! `UPDATE_GOLDEN=1` writes it anew.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use futures_util::StreamExt;
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry, ResponseEnvelope};
use serde::Serialize;
use serde_json::{Value, json};

/// The operations of the till.
pub mod till {
    ops_runtime::include_operations!("till");
}

/// What the server says to the next request.
#[derive(Clone)]
struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

/// A response, and the place in it that the table shows.
struct Row {
    what: &'static str,
    operation: &'static str,
    answer: Answer,
    place: &'static str,
}

fn json_row(what: &'static str, operation: &'static str, body: &Value, place: &'static str) -> Row {
    raw_row(what, operation, (200, "application/json", &body.to_string()), place)
}

fn raw_row(
    what: &'static str,
    operation: &'static str,
    (status, content_type, body): (u16, &'static str, &str),
    place: &'static str,
) -> Row {
    Row { what, operation, answer: Answer { status, content_type, body: body.to_owned() }, place }
}

/// A payment that is as the document says, but for some members; `null` in the place of a member takes it away.
fn payment(changes: Value) -> Value {
    let mut payment = json!({ "id": "p1", "amount": { "currency": "EUR", "value": "10.00" } });
    for (name, value) in changes.as_object().unwrap() {
        let map = payment.as_object_mut().unwrap();
        match value {
            Value::String(text) if text == "ABSENT" => drop(map.remove(name)),
            value => drop(map.insert(name.clone(), value.clone())),
        }
    }
    payment
}

fn rows() -> Vec<Row> {
    let one = |what, changes, place| json_row(what, "showPayment", &payment(changes), place);
    let whole = |what, came| raw_row(what, "showPayment", came, "");
    let said = json!({ "message": "no session" });
    let html = "<!DOCTYPE html><title>Log in</title>";
    vec![
        one("as the document says", json!({}), "/amount"),
        one("an undeclared property", json!({ "links": {} }), "/links"),
        json_row(
            "an undeclared property in each item of a list",
            "listPayments",
            &json!([payment(json!({ "x": 1 })), payment(json!({ "x": 2 }))]),
            "/1/x",
        ),
        one("a default left out", json!({}), "/retries"),
        one(r#"`"7"` for an integer"#, json!({ "retries": "7" }), "/retries"),
        one("`7.0` for an integer", json!({ "retries": 7.0 }), "/retries"),
        one(r#"`"007"` for an integer"#, json!({ "retries": "007" }), "/retries"),
        one("`7.5` for an integer", json!({ "retries": 7.5 }), "/retries"),
        one("`12` for a string", json!({ "note": 12 }), "/note"),
        one("`true` for a string", json!({ "note": true }), "/note"),
        one("a list for a string", json!({ "note": ["a"] }), "/note"),
        one("a string for a list of them", json!({ "tags": "a" }), "/tags"),
        one("numbers in a list of strings", json!({ "tags": [1, "b"] }), "/tags"),
        one("`null` for an optional list", json!({ "tags": null }), "/tags"),
        one("`null` where there is a default", json!({ "retries": null }), "/retries"),
        one("`[]` for a map", json!({ "metadata": [] }), "/metadata"),
        one("one object for a list of them", json!({ "lines": { "name": "a", "count": "2" } }), "/lines"),
        one(r#"`"true"` for a boolean"#, json!({ "paid": "true" }), "/paid"),
        one("`1` for a boolean", json!({ "paid": 1 }), "/paid"),
        one(r#"`"yes"` for a boolean"#, json!({ "paid": "yes" }), "/paid"),
        one("an unknown enum value", json!({ "status": "disputed" }), "/status"),
        one("a number out of bounds", json!({ "score": 11 }), "/score"),
        one("a required string left out", json!({ "id": "ABSENT" }), "/id"),
        one("`null` for a required string", json!({ "id": null }), "/id"),
        one("a number for a required object", json!({ "amount": 10 }), "/amount"),
        one("an empty required object", json!({ "amount": {} }), "/amount"),
        one("a required property of an object left out", json!({ "amount": { "value": "1" } }), "/amount"),
        one("two faults in a list", json!({ "lines": [{ "name": "a" }, { "name": "b", "count": "x" }] }), "/lines"),
        one("two faults that convert", json!({ "retries": "5", "note": 1 }), "/note"),
        one("a fault beside a conversion", json!({ "retries": "5", "amount": [] }), "/retries"),
        one("a variant that fits once converted", json!({ "payer": { "born": "1990" } }), "/payer"),
        one("beside a variant that asks for nothing", json!({ "contact": { "born": "1990" } }), "/contact"),
        one("a variant with a fault", json!({ "payer": { "register": "HRB 1" } }), "/payer"),
        one("something of two variants", json!({ "payer": { "born": {}, "seat": "Bonn" } }), "/payer"),
        one("a variant that declares most once converted", json!({ "pet": { "name": "a", "barks": "true" } }), "/pet"),
        one("a variant that declares less", json!({ "pet": { "name": "a", "lives": "many" } }), "/pet"),
        json_row("a tag that nobody knows", "showShape", &json!({ "kind": "star", "points": 5 }), ""),
        json_row("a fault in a tagged variant", "showShape", &json!({ "kind": "circle", "radius": [] }), "/radius"),
        json_row("a tag left out", "showShape", &json!({ "radius": 5 }), ""),
        json_row("an error object for a tagged union", "showShape", &json!({ "error": "no session" }), ""),
        json_row(r#"`"7"` as a whole, for an integer"#, "countPayments", &json!("7"), ""),
        json_row("an object without properties, all optional", "showSettings", &json!({}), ""),
        json_row("an error object, all optional", "showSettings", &json!({ "error": "no session" }), ""),
        json_row("an error object, at the status of another variant", "showRefund", &said, ""),
        raw_row(
            "an error object, at the status of a variant that is all optional",
            "showRefund",
            (202, "application/json", &said.to_string()),
            "",
        ),
        raw_row(
            "another variant than that of its status",
            "showRefund",
            (202, "application/json", r#"{"id":"r1"}"#),
            "",
        ),
        json_row("an error object", "showPayment", &json!({ "error": "no session" }), ""),
        json_row("a list for an object", "showPayment", &json!([payment(json!({}))]), ""),
        json_row("an object for a list", "listPayments", &payment(json!({})), ""),
        json_row("an item that is no object", "listPayments", &json!([payment(json!({})), 7]), "/1"),
        json_row("`null` as a whole", "showPayment", &json!(null), ""),
        whole("nothing (200)", (200, "application/json", "")),
        whole("nothing (204)", (204, "", "")),
        whole("a page of HTML", (200, "text/html", html)),
        whole("text", (200, "text/plain", "Service unavailable")),
        whole("XML", (200, "application/xml", "<payment/>")),
        whole("half of the JSON", (200, "application/json", r#"{"id":"p1","amo"#)),
        whole("events for JSON", (200, "text/event-stream", "data: {\"id\":\"p1\"}\n\n")),
        json_row("JSON where nothing is described", "removePayment", &json!({ "ok": true }), ""),
        raw_row("text where nothing is described", "removePayment", (200, "text/plain", "done"), ""),
        raw_row("JSON for events", "watchPayments", (200, "application/json", &payment(json!({})).to_string()), ""),
        raw_row("an event that is not JSON", "watchPayments", (200, "text/event-stream", "data: oops\n\n"), ""),
        raw_row(
            "an event with a fault",
            "watchPayments",
            (200, "text/event-stream", "data: {\"id\":\"p1\",\"amount\":1}\n\n"),
            "/amount",
        ),
    ]
}

type Outcome = Result<ResponseEnvelope<Value>, CallError>;

fn as_json<T: Serialize>(result: Result<ResponseEnvelope<T>, CallError>) -> Outcome {
    result.map(|envelope| envelope.map(|data| serde_json::to_value(data).unwrap()))
}

async fn typed(registry: &Registry, operation: &str, policy: OutputPolicy) -> Outcome {
    let options = CallOptions::new().with_policy(policy);
    macro_rules! call {
        ($op:ident, $input:ident) => {
            as_json(registry.execute_with::<till::$op>(till::$input {}, options).await)
        };
    }
    match operation {
        "showPayment" => call!(ShowPayment, ShowPaymentInput),
        "listPayments" => call!(ListPayments, ListPaymentsInput),
        "showSettings" => call!(ShowSettings, ShowSettingsInput),
        "showRefund" => call!(ShowRefund, ShowRefundInput),
        "countPayments" => call!(CountPayments, CountPaymentsInput),
        "showShape" => call!(ShowShape, ShowShapeInput),
        "removePayment" => call!(RemovePayment, RemovePaymentInput),
        _ => {
            let input = till::WatchPaymentsInput {};
            let mut items = registry.subscribe_with::<till::WatchPayments>(input, options).await?;
            as_json(items.next().await.unwrap())
        }
    }
}

async fn by_id(registry: &Registry, operation: &str, policy: OutputPolicy) -> Outcome {
    let (id, options) = (format!("till.{operation}"), CallOptions::new().with_policy(policy));
    if operation == "watchPayments" {
        return registry.stream_with(&id, json!({}), options).await?.next().await.unwrap();
    }
    registry.call_with(&id, json!({}), options).await
}

/// A cell: what stands at the place, and how many warnings there are; or the error.
fn cell(outcome: &Outcome, place: &str) -> String {
    match outcome {
        Ok(envelope) => {
            let value = envelope.data.pointer(place).map_or("absent".to_owned(), |value| format!("`{value}`"));
            match envelope.warnings.len() {
                0 => value,
                count => format!("{value} ({count})"),
            }
        }
        Err(_) => "error".to_owned(),
    }
}

async fn server() -> (String, Arc<Mutex<Option<Answer>>>) {
    let next = Arc::new(Mutex::new(None::<Answer>));
    let answer = |State(next): State<Arc<Mutex<Option<Answer>>>>| async move {
        let Answer { status, content_type, body } = next.lock().unwrap().clone().unwrap();
        let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
        if !content_type.is_empty() {
            response = response.header("content-type", content_type);
        }
        response.body(axum::body::Body::from(body)).unwrap()
    };
    let app = Router::new().fallback(answer).with_state(next.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, next)
}

#[tokio::test]
async fn responses_under_three_policies() {
    let (url, next) = server().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind(till::operations()).unwrap()).unwrap();

    let policies = [OutputPolicy::Repair, OutputPolicy::Cast, OutputPolicy::Strict];
    let mut table = String::from(
        "| response | at | `Repair`, typed | by id | `Cast`, typed | by id | `Strict`, typed | by id |\n|---|---|---|---|---|---|---|---|\n",
    );
    let rows = rows();
    assert!(rows.len() >= 40);
    for Row { what, operation, answer, place } in rows {
        let mut cells = Vec::new();
        for policy in policies {
            for by_type in [true, false] {
                *next.lock().unwrap() = Some(answer.clone());
                let outcome = match by_type {
                    true => typed(&registry, operation, policy).await,
                    false => by_id(&registry, operation, policy).await,
                };
                if let Err(error) = &outcome {
                    keeps_the_answer(what, error, &answer);
                }
                cells.push(cell(&outcome, place));
            }
        }
        let at = if place.is_empty() { String::new() } else { format!("`{place}`") };
        table.push_str(&format!("| {what} | {at} | {} |\n", cells.join(" | ")));
    }
    println!("{table}");
    compare(&table);
}

#[tokio::test]
async fn what_is_told_of_a_response_names_its_cause() {
    let (url, next) = server().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind(till::operations()).unwrap()).unwrap();
    let says = |body: &str| {
        let answer = Answer { status: 200, content_type: "application/json", body: body.to_owned() };
        *next.lock().unwrap() = Some(answer);
    };
    let warnings = |outcome: Outcome| outcome.unwrap().warnings.iter().map(ToString::to_string).collect::<Vec<_>>();

    // An object without a tag is kept with the same warning by type and by id. A type has a place for other tags.
    let star = r#"{"kind":"star","points":5}"#;
    for (body, tags, found) in
        [(star, "'circle', 'square'", "string"), ("{}", "'Circle', 'Square', 'circle', 'square'", "absent")]
    {
        let expected = [format!("/kind: expected one of {tags}, found {found}")];
        says(body);
        let by_type = if found == "absent" { expected.to_vec() } else { Vec::new() };
        assert_eq!(warnings(typed(&registry, "showShape", OutputPolicy::Repair).await), by_type, "{body}");
        says(body);
        assert_eq!(warnings(by_id(&registry, "showShape", OutputPolicy::Repair).await), expected, "{body}");
        says(body);
        let error = by_id(&registry, "showShape", OutputPolicy::Strict).await.unwrap_err();
        assert_eq!(error.message(), format!("the response does not match its schema: {}", expected[0]), "{body}");
    }

    // An enum and a bound are no reason for the error, so it does not list them.
    for (fault, told) in [
        (json!({ "retries": "soon" }), "/1/retries: expected integer, found string"),
        (json!({ "id": "ABSENT" }), "/1/id: expected string, found absent"),
    ] {
        says(&json!([payment(json!({ "status": "lost", "score": 11 })), payment(fault)]).to_string());
        let error = typed(&registry, "listPayments", OutputPolicy::Repair).await.unwrap_err();
        assert_eq!(error.message(), format!("the response does not fit its type: {told}"));
        let violations = error.details()["violations"].as_array().unwrap();
        let places: Vec<&Value> = violations.iter().map(|violation| &violation["pointer"]).collect();
        assert_eq!(places, [told.split(':').next().unwrap()], "{error}");
    }
    // Nor does it if only the type has an objection: it has no place for so large a number.
    let large = payment(json!({ "retries": 1_u64 << 63 }));
    says(&json!([payment(json!({ "status": "lost", "score": 11 })), large]).to_string());
    let error = typed(&registry, "listPayments", OutputPolicy::Repair).await.unwrap_err();
    let message = error.message();
    assert!(message.starts_with("the response does not fit its type: /1/retries: "), "{message}");
    assert!(!message.ends_with(" more)"), "{message}");
    let violations = error.details()["violations"].as_array().unwrap();
    let places: Vec<&Value> = violations.iter().map(|violation| &violation["pointer"]).collect();
    assert_eq!(places, ["/1/retries"], "{message}");
    // A rule at the same place is not the cause.
    says(&payment(json!({ "score": 1_u64 << 63 })).to_string());
    let error = typed(&registry, "showPayment", OutputPolicy::Repair).await.unwrap_err();
    let cause = "invalid value: integer `9223372036854775808`, expected i64";
    assert_eq!(error.message(), format!("the response does not fit its type: /score: {cause} (and 1 more)"));
    let rule = "integer to be less or equal to 10";
    let violations = json!([
        { "pointer": "/score", "message": cause },
        { "pointer": "/score", "expected": rule, "found": "integer" },
    ]);
    assert_eq!(error.details()["violations"], violations);

    says("{\"id\":\n\"p1");
    let error = typed(&registry, "showPayment", OutputPolicy::Repair).await.unwrap_err();
    assert!(error.message().contains(" at line 2 column "), "{error}");
}

/// An error keeps what came, with its status and content type, so that nobody has to ask again.
fn keeps_the_answer(what: &str, error: &CallError, answer: &Answer) {
    assert_eq!(error.code(), &ErrorCode::ValidationError, "{what}: {error}");
    let details = error.details();
    assert_eq!(details["statusCode"], answer.status, "{what}: {details}");
    assert!(details["contentType"].as_str().unwrap().starts_with(answer.content_type), "{what}: {details}");
    assert!(!details["violations"].as_array().unwrap().is_empty(), "{what}: {details}");
    let raw = &details["raw"];
    match serde_json::from_str::<Value>(answer.body.trim_start_matches("data: ")) {
        Ok(came) if answer.content_type == "application/json" => assert_eq!(*raw, came, "{what}"),
        _ if answer.body.is_empty() => assert_eq!(*raw, Value::Null, "{what}"),
        _ => {
            let text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            assert!(answer.body.contains(text.trim_end()), "{what}: {text}");
        }
    }
}

/// Compares the table with the one in the document, or writes it there.
fn compare(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("<!-- answers -->\n", "<!-- /answers -->");
    let (before, rest) = document.split_once(start).expect("the place of the table");
    let (old, after) = rest.split_once(end).expect("the end of the table");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{start}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(old, table, "ARCHITECTURE.md has another table: UPDATE_GOLDEN=1 writes this one");
    }
}
