//! Functions that `#[operation(http = "..")]` binds: called in process, by our client, and byte by byte.

use futures_util::{Stream, StreamExt};
use ops_runtime::adapter::Registration;
use ops_runtime::registry::OutputPolicy;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::OperationKind;
use ops_runtime::{Body, Call, CallError, HttpClient, HttpConfig, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::{Server, serve};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Pet {
    name: String,
    #[schemars(range(min = 1))]
    age: u32,
    #[serde(default)]
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Kind(u8);

/// What a function has been given.
type Given = Value;

#[operation(namespace = "shop", http = "GET /pets/{id}", errors(GONE = 410))]
async fn show(
    id: u64,
    tags: &[String],
    kinds: Vec<Kind>,
    limit: Option<u32>,
    #[input(default = "en")] language: &str,
    #[input(header = "If-None-Match")] etag: Option<String>,
    #[input(cookie)] session: Option<u64>,
) -> Result<Given, CallError> {
    match id {
        0 => Err(CallError::new("GONE", "it is gone").with_details(json!({ "since": 1 }))),
        id => Ok(json!([id, tags, kinds, limit, language, etag, session])),
    }
}

#[operation(namespace = "shop", http = "PUT /pets/{pet-id}")]
async fn put(
    #[serde(rename = "pet-id")] id: String,
    pet: Pet,
    #[input(query = "dry-run", default)] dry: bool,
) -> Given {
    json!([id, pet, dry])
}

#[operation(namespace = "shop", http = "POST /pets/{id}/offers")]
async fn offer(id: u64, price: f64, pets: &[Pet], note: Option<String>) -> Given {
    json!([id, price, pets, note])
}

#[operation(namespace = "shop", http = "PATCH /pets/{id}")]
async fn patch(id: u64, body: Value, force: Option<bool>) -> Given {
    json!([id, body, force])
}

#[operation(namespace = "shop", http = "POST /names")]
async fn name(name: &str) -> String {
    name.to_owned()
}

#[operation(namespace = "shop", http = "POST /whole")]
async fn whole(#[input] pet: &Pet) -> Pet {
    pet.clone()
}

#[operation(namespace = "shop", http = "DELETE /pets/{id}")]
async fn delete(id: u64, why: Option<String>) {
    let _ = (id, why);
}

#[operation(namespace = "shop", http = "POST /photos/{id}")]
async fn photo(id: u64, photo: Body) -> Body {
    let mut bytes = photo.bytes(1 << 20).await.unwrap_or_default().to_vec();
    bytes.extend(id.to_string().bytes());
    Body::from(bytes).with_content_type("image/png")
}

#[operation(namespace = "shop", http = "POST /albums")]
async fn album(title: &str, cover: Option<Body>, photos: &[Body], year: Option<u16>) -> Given {
    let told = |body: &Body| json!([body.as_bytes().map(<[u8]>::len), body.file_name(), body.content_type()]);
    json!([title, cover.as_ref().map(told), photos.iter().map(told).collect::<Vec<_>>(), year])
}

#[operation(namespace = "shop", http = "GET /pets/{id}/events")]
async fn watch(id: u64, to: u64) -> impl Stream<Item = u64> {
    futures_util::stream::iter((0..to).map(move |n| n + id))
}

fn registry() -> Registry {
    let registry = Registry::new();
    let all: [Registration; 10] = [
        Show.into(),
        Put.into(),
        Offer.into(),
        Patch.into(),
        Name.into(),
        Whole.into(),
        Delete.into(),
        Photo.into(),
        Album.into(),
        Watch.into(),
    ];
    registry.register_all(all).unwrap();
    registry
}

async fn both() -> (Registry, Server, HttpClient) {
    let server = serve(HttpServer::new(registry())).await;
    let config = HttpConfig::new().with_base_url(format!("http://{}", server.address));
    (registry(), server, HttpClient::new(config).unwrap())
}

/// Runs an operation in this process and over HTTP, by its type and by its id: all give the same.
async fn same<Op: Call>(registry: &Registry, client: &HttpClient, input: Op::Input) -> Op::Output
where
    Op::Input: Clone + Serialize,
    Op::Output: PartialEq + std::fmt::Debug + Serialize,
{
    let json = serde_json::to_value(&input).unwrap();
    let here = registry.execute::<Op>(input.clone()).await.unwrap().into_data();
    let there = client.execute::<Op>(input).await.unwrap_or_else(|error| panic!("{error} {}", error.details()));
    assert_eq!(there.warnings, []);
    assert_eq!(there.into_data(), here);
    let by_id = client.call(&Op::SPEC.id, json).await.unwrap().into_data();
    assert_eq!(by_id, serde_json::to_value(&here).unwrap());
    here
}

#[tokio::test]
async fn what_is_called_in_process_is_called_over_http() {
    let (registry, _server, client) = both().await;
    client.add([Show::SPEC, Put::SPEC, Offer::SPEC, Patch::SPEC, Name::SPEC, Whole::SPEC, Delete::SPEC]).unwrap();
    let texts = ["", "a b", "a,b&c=d", "ü/..%2F?#", "\"7\"", "true"].map(str::to_owned);
    for text in &texts {
        let input = ShowInput {
            id: u64::MAX,
            tags: vec![text.clone(), "x".to_owned()],
            kinds: vec![Kind(7), Kind(8)],
            limit: Some(3),
            language: text.clone(),
            etag: Some("\"7\"".to_owned()),
            session: Some(9),
        };
        same::<Show>(&registry, &client, input).await;
        let pet = Pet { name: text.clone(), age: 1, kind: Some(Kind(2)) };
        // No path has an empty segment.
        let id = if text.is_empty() { ".a.".to_owned() } else { text.clone() };
        same::<Put>(&registry, &client, PutInput { id, pet: pet.clone(), dry: true }).await;
        let offer = OfferInput { id: 1, price: 0.1, pets: vec![pet.clone(), pet.clone()], note: Some(text.clone()) };
        same::<Offer>(&registry, &client, offer).await;
        same::<Name>(&registry, &client, NameInput { name: text.clone() }).await;
        assert_eq!(same::<Whole>(&registry, &client, pet.clone()).await, pet);
    }
    let nothing = ShowInput {
        id: 1,
        tags: Vec::new(),
        kinds: Vec::new(),
        limit: None,
        language: "en".to_owned(),
        etag: None,
        session: None,
    };
    let given = same::<Show>(&registry, &client, nothing).await;
    assert_eq!(given, json!([1, [], [], null, "en", null, null]));
    same::<Offer>(&registry, &client, OfferInput { id: 1, price: -1.5, pets: Vec::new(), note: None }).await;
    for body in [json!(null), json!([]), json!({ "id": 2 }), json!("x"), json!(7)] {
        same::<Patch>(&registry, &client, PatchInput { id: 1, body, force: Some(false) }).await;
    }
    same::<Delete>(&registry, &client, DeleteInput { id: 1, why: Some("old".to_owned()) }).await;
}

#[tokio::test]
async fn bytes_and_streams() {
    let (registry, _server, client) = both().await;
    let input = PhotoInput { id: 7, photo: Body::from(vec![0_u8, 255, 10]) };
    let here = registry.execute::<Photo>(input.clone()).await.unwrap().into_data();
    let there = client.execute::<Photo>(input).await.unwrap().into_data();
    assert_eq!(there.content_type(), Some("image/png"));
    assert_eq!(there.bytes(100).await.unwrap(), here.bytes(100).await.unwrap());
    let album = AlbumInput {
        title: "ü".to_owned(),
        cover: Some(Body::from("cover").with_file_name("a.png")),
        photos: vec![
            Body::from("a").with_file_name("b/ü \"c\".jpg").with_content_type("image/jpeg"),
            Body::from(vec![255_u8]),
        ],
        year: Some(1999),
    };
    let given = client.execute::<Album>(album).await.unwrap().into_data();
    let octets = "application/octet-stream";
    let (cover, photos) =
        (json!([5, "a.png", octets]), json!([[1, "ü \"c\".jpg", "image/jpeg"], [1, "photos", octets]]));
    assert_eq!(given, json!(["ü", cover, photos, 1999]));
    let items = client.subscribe::<Watch>(WatchInput { id: 5, to: 3 }).await.unwrap();
    let items: Vec<u64> = items.map(|item| item.unwrap().into_data()).collect().await;
    assert_eq!(items, [5, 6, 7]);
}

#[tokio::test]
async fn requests_byte_by_byte() {
    let (_, server, _) = both().await;
    let json = "content-type: application/json";
    let table: [(&str, &[&str], &str, u16, Value); 13] = [
        ("GET /pets/1", &[], "", 200, json!([1, [], [], null, "en", null, null])),
        (
            "GET /pets/1?tags=a&limit=2&tags=b&kinds=7&language=de",
            &["if-none-match: \"x\"", "cookie: a=b; session=7"],
            "",
            200,
            json!([1, ["a", "b"], [7], 2, "de", "\"x\"", 7]),
        ),
        // Cookies of other applications may be anything.
        (
            "GET /pets/1",
            &["cookie: name=Jos\u{e9}; %ff=1; session=7"],
            "",
            200,
            json!([1, [], [], null, "en", null, 7]),
        ),
        ("GET /pets/0", &[], "", 410, json!({ "code": "GONE", "details": { "since": 1 } })),
        (
            "PUT /pets/a%2Fb?dry-run=true",
            &[json],
            r#"{"name":"Rex","age":1}"#,
            200,
            json!(["a/b", { "name": "Rex", "age": 1, "kind": null }, true]),
        ),
        ("POST /pets/1/offers", &[json], r#"{"price":2.5,"pets":[]}"#, 200, json!([1, 2.5, [], null])),
        ("PATCH /pets/1?force=true", &[json], "[1]", 200, json!([1, [1], true])),
        ("POST /names", &[json], r#"{"name":"Rex"}"#, 200, json!("Rex")),
        (
            "POST /names",
            &[json],
            "[1]",
            422,
            json!({ "violations": [
            { "pointer": "", "message": "the body is not an object" },
            { "pointer": "/name", "message": "expected required property" } ] }),
        ),
        ("POST /names", &["content-type: text/plain"], "x", 415, json!({})),
        ("POST /whole", &[json], r#"{"name":"Rex","age":1}"#, 200, json!({ "name": "Rex", "age": 1, "kind": null })),
        ("POST /pets/1", &[json], "{}", 405, json!({})),
        ("POST /photos/1", &["content-type: application/octet-stream"], "x", 200, Value::Null),
    ];
    for (line, headers, body, status, expected) in table {
        let answer = server.send(line, headers, body).await;
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        if answer.header("content-type") == Some("application/problem+json") {
            let problem = answer.problem();
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(&problem[name], value, "{line} {name}: {problem}");
            }
        } else if !expected.is_null() {
            assert_eq!(answer.json(), expected, "{line}");
        }
    }
    let deleted = server.send("DELETE /pets/1?why=x", &[], "").await;
    assert_eq!((deleted.status, deleted.body.as_str(), deleted.header("content-type")), (204, "", None));
    let events = server.get("/pets/1/events?to=2").await;
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    assert_eq!(events.body, "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n: [DONE]\n\n");
    let photo = server.send("POST /photos/1", &["content-type: application/octet-stream"], "x").await;
    assert_eq!((photo.body.as_str(), photo.header("content-type")), ("x1", Some("image/png")));
}

#[tokio::test]
async fn a_part_is_text_of_its_charset() {
    let (_, server, _) = both().await;
    let send = async |kind: &str, title: &[u8]| {
        let start = format!("--b\r\ncontent-disposition: form-data; name=\"title\"{kind}\r\n\r\n");
        let end = b"\r\n--b\r\ncontent-disposition: form-data; name=\"photos\"; filename=\"\"\r\n\r\nx\r\n--b--\r\n";
        let body = [start.as_bytes(), title, end].concat();
        let head = format!(
            "POST /albums HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: multipart/form-data; \
             boundary=b\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = server.raw(&[head.as_bytes(), &body].concat()).await;
        if answer.status == 200 {
            answer.json()[0].clone()
        } else {
            answer.problem()["violations"][0]["message"].clone()
        }
    };
    let table: [(&str, &[u8], &str); 6] = [
        ("", "ü".as_bytes(), "ü"),
        ("", b"\xfc", "is not UTF-8"),
        ("\r\ncontent-type: text/plain; charset=ISO-8859-1", b"\xfc", "ü"),
        ("\r\ncontent-type: text/plain; charset=\"iso-2022-jp\"", b"\x1b$B%=\x1b(B", "ソ"),
        ("\r\ncontent-type: text/plain; charset=utf-16le", b"a", "is not UTF-16LE"),
        ("\r\ncontent-type: text/plain; charset=x", b"a", "is of the charset `x`, which is not known"),
    ];
    for (kind, title, expected) in table {
        assert_eq!(send(kind, title).await, expected, "{kind}");
    }
}

#[tokio::test]
async fn all_violations_are_in_one_problem() {
    let (_, server, _) = both().await;
    let json = "content-type: application/json";
    let pointers = async |line: &str, body: &str| {
        let headers: &[&str] = if body.is_empty() { &[] } else { &[json] };
        let answer = server.send(line, headers, body).await;
        assert_eq!(answer.status, 422, "{line}: {answer:?}");
        let violations = answer.problem()["violations"].clone();
        let of = |violation: &Value| violation["pointer"].as_str().unwrap().to_owned();
        violations.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let table = [
        (
            "GET /pets/x?limit=y&kinds=a&kinds=7&language=a&language=b",
            "",
            vec!["/language", "/id", "/kinds/0", "/limit"],
        ),
        ("GET /pets/x?limit=y", "", vec!["/id", "/limit"]),
        // The name of a parameter is no part of the rest.
        (
            "POST /pets/x/offers",
            r#"{"id":7,"price":"a","pets":[{"name":1,"age":0}]}"#,
            vec!["/id", "/price", "/pets/0/name", "/pets/0/age"],
        ),
        ("POST /pets/1/offers", "", vec!["/price", "/pets"]),
        ("PUT /pets/1?dry-run=x", r#"{"age":0}"#, vec!["/pet/name", "/pet/age", "/dry"]),
        ("POST /whole", r#"{"age":0}"#, vec!["/name", "/age"]),
    ];
    for (line, body, mut expected) in table {
        let mut found = pointers(line, body).await;
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{line}");
    }
}

/// A body that goes from its text to the type can say no more than one that is read as a value.
#[tokio::test]
async fn bodies_are_read_alike_from_text() {
    let (_, server, _) = both().await;
    let json = "content-type: application/json";
    let coded = "content-type: application/json; charset=utf-8";
    let table = [
        (r#"{"price":1,"pets":[]}"#, 200),
        (r#" {"price":1,"pets":[]} "#, 200),
        (r#"{"price":1,"pets":[],"other":{"id":1}}"#, 200),
        (r#"{"price":1,"pets":[],"\u006eote":"id"}"#, 200),
        ("{}", 422),
        ("{ }", 422),
        (r#"{"price":1,"pets":[],"id":8}"#, 422),
        (r#"{"price":1,"pets":[],"\u0069d":8}"#, 422),
        (r#"{"price":1,"pets":[]},"id":8}"#, 400),
        (r#"{"price":1,"pets":[]}{}"#, 400),
        (r#"{"price":1,"pets":[]"#, 400),
        (r#"{,"price":1,"pets":[]}"#, 400),
        ("{", 400),
        ("", 400),
    ];
    for (body, status) in table {
        let (one, other) = (
            server.send("POST /pets/7/offers", &[json], body).await,
            server.send("POST /pets/7/offers", &[coded], body).await,
        );
        assert_eq!((one.status, other.status), (status, status), "{body}: {one:?}");
        if status == 200 {
            assert_eq!((one.json()[0].clone(), one.json()), (json!(7), other.json()), "{body}");
        } else {
            assert_eq!(
                (&one.problem()["violations"], &one.problem()["code"]),
                (&other.problem()["violations"], &other.problem()["code"]),
                "{body}"
            );
        }
    }
}

#[operation(namespace = "shop", http = "GET /things/{id}")]
async fn find(
    id: u64,
    text: Option<String>,
    whole: Option<i64>,
    number: Option<f64>,
    truth: Option<bool>,
    #[input(header = "X-Note")] note: Option<String>,
) -> Given {
    json!([id, text, whole, number, truth, note])
}

#[operation(namespace = "shop", http = "POST /things/{id}")]
async fn store(
    id: u64,
    #[input(query = "truth")] truth: Option<bool>,
    #[input(query = "n")] number: Option<f64>,
    name: String,
) -> Given {
    json!([id, truth, number, name])
}

/// Parameters that go from text to text can say no more than those that are read as values: a strict registry does that.
#[tokio::test]
async fn parameters_are_read_alike_from_text() {
    let of = async |policy| {
        let registry = Registry::builder().with_policy(policy).build();
        registry.register(Find).unwrap();
        registry.register(Store).unwrap();
        serve(HttpServer::new(registry)).await
    };
    let (server, strict) = (of(OutputPolicy::Repair).await, of(OutputPolicy::Strict).await);
    let all = json!([7, null, null, null, null, null]);
    let with = |at: usize, value: Value| {
        let mut all = all.clone();
        all[at] = value;
        (200, all)
    };
    let refused = (422, Value::Null);
    let table = [
        ("GET /things/7", with(0, json!(7))),
        ("GET /things/%37", with(0, json!(7))),
        ("GET /things/7?", with(0, json!(7))),
        ("GET /things/07", refused.clone()),
        ("GET /things/-1", refused.clone()),
        ("GET /things/7.0", (200, json!([7, null, null, null, null, null]))),
        ("GET /things/7,8", refused.clone()),
        ("GET /things/%FF", refused.clone()),
        ("GET /things/7?text=a%20b+c%2Bd", with(1, json!("a b c+d"))),
        ("GET /things/7?text=%22%5C%0A%00%C3%BC", with(1, json!("\"\\\n\0ü"))),
        ("GET /things/7?text=7", with(1, json!("7"))),
        ("GET /things/7?text=null", with(1, json!("null"))),
        ("GET /things/7?text=a,b=c", with(1, json!("a,b=c"))),
        ("GET /things/7?text=%22,%22whole%22:%221", with(1, json!("\",\"whole\":\"1"))),
        ("GET /things/7?te%78t=a", with(1, json!("a"))),
        ("GET /things/7?&&text=a&", with(1, json!("a"))),
        ("GET /things/7?text=", with(1, json!(""))),
        ("GET /things/7?text", with(1, json!(""))),
        ("GET /things/7?text=a&other=%FF&text%20=b", with(1, json!("a"))),
        ("GET /things/7?text=a&text=b", refused.clone()),
        ("GET /things/7?text=%FF", refused.clone()),
        ("GET /things/7?text=a&%FF=b", refused.clone()),
        ("GET /things/7?whole=0", with(2, json!(0))),
        ("GET /things/7?whole=-5", with(2, json!(-5))),
        ("GET /things/7?whole=9223372036854775807", with(2, json!(i64::MAX))),
        ("GET /things/7?whole=9223372036854775808", refused.clone()),
        ("GET /things/7?whole=999999999999999999", with(2, json!(999_999_999_999_999_999_i64))),
        ("GET /things/7?whole=+1", refused.clone()),
        ("GET /things/7?whole=%2B1", refused.clone()),
        ("GET /things/7?whole=007", refused.clone()),
        ("GET /things/7?whole=", refused.clone()),
        ("GET /things/7?whole=-", refused.clone()),
        ("GET /things/7?whole=1,%22text%22:2", refused.clone()),
        ("GET /things/7?whole=a&truth=b", refused.clone()),
        ("GET /things/7?number=5", with(3, json!(5.0))),
        ("GET /things/7?number=-0", with(3, json!(-0.0))),
        ("GET /things/7?number=2.2250738585072014e-308", with(3, json!(2.2250738585072014e-308))),
        ("GET /things/7?number=12345678901234567890", with(3, json!(12_345_678_901_234_567_890.0))),
        ("GET /things/7?truth=true", with(4, json!(true))),
        ("GET /things/7?truth=false&unknown=1", with(4, json!(false))),
        ("GET /things/7?truth=True", refused.clone()),
        ("POST /things/7?truth=false&n=1", (200, json!([7, false, 1.0, "a"]))),
        ("POST /things/7?n=0.5", (200, json!([7, null, 0.5, "a"]))),
        ("POST /things/7?truth=1", refused.clone()),
    ];
    for (line, (status, expected)) in table {
        let (body, headers): (_, &[&str]) = match line.starts_with("POST") {
            true => (r#"{"name":"a"}"#, &["content-type: application/json"]),
            false => ("", &[]),
        };
        let (one, other) = (server.send(line, headers, body).await, strict.send(line, headers, body).await);
        assert_eq!((one.status, other.status), (status, status), "{line}: {one:?} {other:?}");
        if status == 200 {
            assert_eq!((one.json(), other.json()), (expected.clone(), expected), "{line}");
        } else {
            assert_eq!(one.problem()["violations"], other.problem()["violations"], "{line}");
            assert_ne!(one.problem()["violations"], json!([]), "{line}");
        }
    }
    for (headers, note) in [
        (vec!["x-note: a \"b\", c"], json!("a \"b\", c")),
        (vec!["x-note: a", "X-Note: b"], json!("a,b")),
        (vec!["x-note:"], json!("")),
        (vec!["x-note: ü"], json!("ü")),
    ] {
        for server in [&server, &strict] {
            let answer = server.send("GET /things/7", &headers, "").await;
            assert_eq!((answer.status, &answer.json()[5]), (200, &note), "{headers:?}");
        }
    }
}

#[tokio::test]
async fn a_content_type_without_content_is_no_body() {
    let (_, server, _) = both().await;
    for kind in ["application/json", "text/plain; charset=utf-8", "", "multipart/form-data"] {
        let kind = format!("content-type: {kind}");
        let empty = format!("{kind}\r\ncontent-length: 0");
        for headers in [kind.as_str(), empty.as_str()] {
            let answer = server.send("GET /pets/1", &[headers], "").await;
            assert_eq!((answer.status, answer.json()), (200, json!([1, [], [], null, "en", null, null])), "{headers}");
            assert_eq!(server.send("DELETE /pets/1", &[headers], "").await.status, 204, "{headers}");
            assert_eq!(server.send("HEAD /pets/1", &[headers], "").await.status, 200, "{headers}");
        }
        // Content is refused as before, and so is a wrong type where a body is described.
        let answer = server.send("GET /pets/1", &[&kind], "{}").await;
        assert_eq!(
            (answer.status, &answer.problem()["detail"]),
            (415, &json!("the operation takes no body")),
            "{kind}"
        );
    }
    assert_eq!(server.send("POST /names", &["content-type: text/plain"], "").await.status, 415);
}

#[test]
fn kinds_by_their_methods() {
    let kinds = [Show::SPEC.kind, Put::SPEC.kind, Delete::SPEC.kind, Watch::SPEC.kind];
    use OperationKind::{Mutation, Query, Subscription};
    assert_eq!(kinds, [Query, Mutation, Mutation, Subscription]);
    // The spec's JSON keeps the binding.
    for spec in [Offer::SPEC, Whole::SPEC, Album::SPEC, Put::SPEC] {
        let json = serde_json::to_value(&spec.binding).unwrap();
        let read: ops_runtime::binding::Binding = serde_json::from_value(json).unwrap();
        assert_eq!(read, spec.binding);
    }
    assert_eq!(
        serde_json::to_value(&Offer::SPEC.binding).unwrap(),
        json!({
            "type": "http", "method": "POST", "path": "/pets/{id}/offers", "parameters": [{ "name": "id", "in": "path" }],
            "bodies": [{ "contentType": "application/json", "property": "" }],
            "responses": [{ "status": "200", "contentType": "application/json" }],
        })
    );
}
