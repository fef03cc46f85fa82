//! Calls the forty operations by the client that openapi-to-rust makes of our document: `by-openapi-to-rust URL TOKEN`.
//!
//! Each operation that this client can call at all must give back what it got. `UNABLE` names the others, with the reason.
//! A parameter that it takes as text alone is written as its style says.

mod varied;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::process::ExitCode;

use futures_util::TryStreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use varied::{HttpClient, MultipartFile, Person, Point};

const UNABLE: &[(&str, &str)] = &[
    ("path_matrix", "it escapes the signs that the style sets between names and values"),
    ("path_object", "it escapes the commas that the style sets between names and values"),
    ("form", "it has no way to write a list in a form"),
    ("events", "it gives the text of a stream, not its items"),
];

/// An operation, what it is to give, and what it gave.
type Done = (&'static str, Value, Value);

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the type takes what its schema says")
}

fn done<T: Serialize, E: Debug>(name: &'static str, expected: Value, given: Result<T, E>) -> Done {
    let given = given.map_or_else(
        |error| json!(format!("{error:?}").chars().take(600).collect::<String>()),
        |given| serde_json::to_value(given).unwrap_or_else(|error| json!(error.to_string())),
    );
    (name, expected, given)
}

/// Calls operations by their ids, whose input is one value.
macro_rules! by_id {
    ($client:ident, $($name:ident($value:expr)),* $(,)?) => {
        vec![$(done(stringify!($name), $value, $client.$name(of(json!({ "value": $value }))).await)),*]
    };
}

async fn calls(client: &HttpClient) -> Vec<Done> {
    let (ann, at) = (json!({ "name": "Ann", "level": "high", "nick": "A" }), json!({ "x": 1, "y": -2 }));
    let (person, point): (Person, Point) = (of(ann.clone()), of(at.clone()));
    let tree = json!({ "name": "a", "children": [{ "name": "b" }] });
    let mut all = by_id![
        client,
        text(json!("café au lait")),
        whole(json!(-9_007_199_254_740_991_i64)),
        number(json!(2.75)),
        truth(json!(false)),
        nothing(json!("x")),
        choice(json!("in between")),
        list(json!([3, 1, 2])),
        map(json!({ "a/b": [1.5] })),
        record(json!({ "name": "Ann", "level": "low", "nick": "A" })),
        nested(tree.clone()),
        union(json!({ "kind": "square", "side": 2.5 })),
        either(json!(["a", ""])),
        both(json!({ "a": "x", "b": true })),
        moment(json!("2026-11-23T10:00:00Z")),
        anything(json!({ "x": [1, { "y": null }, "z"] })),
    ];
    let tags = vec!["x".to_owned(), "y z".to_owned()];
    let form = json!({ "name": "a&b", "tags": ["x", "y"], "age": 3 });
    let file = MultipartFile::new(vec![0, 255]).with_file_name("f");
    let parts = varied::PartsRequest { name: "a".to_owned(), file, about: person.clone() };
    all.extend([
        done("path_text", json!({ "id": "a b/ü%" }), client.path_text("a b/ü%").await),
        done("path_list", json!({ "ids": [3, 4] }), client.path_list("3,4").await),
        done("path_label", json!({ "ids": [3, 4] }), client.path_label(".3.4").await),
        done("path_matrix", json!({ "point": at }), client.path_matrix(";x=1;y=-2").await),
        done("path_object", json!({ "point": at }), client.path_object("x,1,y,-2").await),
        done(
            "query_form",
            json!({ "q": "a&b=c", "limit": 7, "tags": ["x", "y z"] }),
            client.query_form("a&b=c", 7, tags).await,
        ),
        done("query_comma", json!({ "ids": [1, 2] }), client.query_comma(vec![1, 2]).await),
        done("query_space", json!({ "ids": [1, 2] }), client.query_space("1 2").await),
        done("query_pipe", json!({ "ids": [1, 2] }), client.query_pipe("1|2").await),
        done("query_deep", json!({ "point": at }), client.query_deep(point).await),
        done("query_json", json!({ "point": at }), client.query_json(at.to_string()).await),
        done("headers", json!({ "x-trace": "t-1", "x-ids": [5, 6] }), client.headers("t-1", vec![5, 6]).await),
        done("cookies", json!({ "session": 42 }), client.cookies(42).await),
        done("json", ann.clone(), client.json(person.clone()).await),
        done("patch", json!({ "a": "1", "b": null }), client.patch(of(json!({ "a": "1", "b": null }))).await),
        done("plain", json!("line\nand ü"), client.plain("line\nand ü".to_owned()).await),
        done("form", form.clone(), client.form(of(form)).await),
        done("parts", json!({ "name": "a", "file": "AP8=", "about": ann }), client.parts(parts).await),
        done("put_person", json!({ "id": 7, "body": ann }), client.put_person(7, person.clone()).await),
        done("bytes", json!([0, 255]), client.bytes(vec![0, 255]).await),
        done("said", json!("so"), client.said("so".to_owned()).await),
        done("silence", json!(null), client.silence(person).await),
        done("created", json!(7), client.created_json_status_201(of(json!(7))).await),
        done("rest", json!({ "id": 1, "a": "x", "b": true }), client.rest(1, of(json!({ "a": "x", "b": true }))).await),
    ]);
    let events = match client.events(of(json!({ "items": [tree] }))).await {
        Ok(stream) => stream.try_collect::<Vec<_>>().await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("{error:?}")),
    };
    let text = events.map(|pieces| String::from_utf8_lossy(&pieces.concat()).into_owned());
    all.push(done("events", json!([tree]), text));
    all
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let [url, token]: [String; 2] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("URL TOKEN");
    let client = HttpClient::new().with_base_url(url).with_api_key(token);
    let all = calls(&client).await;
    let mut wrong = 0;
    let mut say = |line: String| {
        println!("{line}");
        wrong += 1;
    };
    for (name, expected, given) in &all {
        match (UNABLE.iter().any(|(own, _)| own == name), given == expected) {
            (true, true) => say(format!("{name}: it works, so it needs no excuse")),
            (false, false) => say(format!("{name}: {given} instead of {expected}")),
            _ => {}
        }
    }
    let document: Value = of(serde_json::from_str(include_str!("../varied.json")).expect("the document is JSON"));
    let operations = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let operations = operations.flat_map(|item| item.as_object().into_iter().flat_map(|item| item.values()));
    let names = operations.filter_map(|operation| operation["operationId"].as_str());
    // This client's names are ours in another case.
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let called: BTreeSet<String> = all.iter().map(|(name, ..)| plain(name)).collect();
    for name in names.filter(|name| !name.ends_with("_by_get") && !called.contains(&plain(name))) {
        say(format!("{name} is not called"));
    }
    let count = all.iter().filter(|(_, expected, given)| given == expected).count();
    println!("{count} of {} operations gave back what they got, {} cannot", all.len(), UNABLE.len());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
