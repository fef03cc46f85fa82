//! The command `ops`, as a shell runs it, against documents in a folder and a server of our own.

use std::convert::Infallible;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use axum::Router;
use axum::extract::{Path as Segment, Query};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use serde_json::{Value, json};

const SHOP: &str = r##"openapi: 3.1.0
info: { title: Pet shop, version: 1.0.0 }
servers: [{ url: /v1 }]
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      tags: [pets]
      parameters:
        - { name: petId, in: path, required: true, schema: { type: integer } }
        - { name: limit, in: query, schema: { type: integer, default: many } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /orders:
    post:
      operationId: order
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } } }
  /sales:
    get:
      operationId: sales
      parameters: [{ name: bad, in: query, schema: { type: boolean } }]
      responses: { 200: { description: x, content: { text/event-stream: { schema: { type: object, required: [n], properties: { n: { type: integer } } } } } } }
components:
  schemas:
    Pet: { type: object, required: [id, name], properties: { id: { type: integer }, name: { type: string } } }
    Order: { type: object, properties: { petIds: { type: array, items: { type: integer } }, to: { type: string } } }
"##;

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.yaml"), SHOP).unwrap();
    folder
}

struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "colours only on a terminal");
    assert!(!ran.stderr.contains("s3cr3t") && !ran.stdout.contains("s3cr3t"), "no secret shows");
    ran
}

fn ops(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    ran(command.args(arguments).current_dir(folder).env("SHOP_TOKEN", "s3cr3t").output().unwrap())
}

fn ops_with_stdin(folder: &Path, arguments: &[&str], stdin: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    let command = command.args(arguments).current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    ran(child.wait_with_output().unwrap())
}

#[test]
fn generate_writes_what_a_build_script_does() {
    let folder = folder("generate");
    let built = ops_codegen::Builder::new().openapi(folder.join("shop.yaml")).with_out_dir(folder.join("built"));
    built.build().unwrap();
    let built = std::fs::read_to_string(folder.join("built/shop.rs")).unwrap();

    let told = ops(&folder, &["generate", "shop.yaml", "-o", "out"]);
    assert_eq!(told.status, 0, "{}", told.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("out/shop.rs")).unwrap(), built);
    assert!(told.stderr.contains("3 operations, 1 warning"), "{}", told.stderr);
    assert_eq!(ops(&folder, &["generate", "shop.yaml", "-o", "one.rs"]).status, 0);
    assert_eq!(std::fs::read_to_string(folder.join("one.rs")).unwrap(), built);
    assert_eq!(ops(&folder, &["generate", "shop.yaml", "-o", "-"]).stdout, built);
    let stdin = ops_with_stdin(&folder, &["generate", "-", "--namespace", "shop", "-o", "-"], SHOP);
    assert_eq!(stdin.stdout, built);
    assert!(stdin.stderr.contains("<stdin>"), "{}", stdin.stderr);

    assert_eq!(ops(&folder, &["generate", "shop.yaml", "-o", "out", "--check"]).status, 0);
    std::fs::write(folder.join("out/shop.rs"), "old").unwrap();
    let differs = ops(&folder, &["generate", "shop.yaml", "-o", "out", "--check"]);
    assert!(differs.status == 1 && differs.stderr.contains("shop.rs differs"), "{}", differs.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("out/shop.rs")).unwrap(), "old", "a check writes nothing");
    let absent = ops(&folder, &["generate", "shop.yaml", "-o", "none.rs", "--check"]);
    assert!(absent.status == 1 && absent.stderr.contains("none.rs is not there"), "{}", absent.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn webhooks_are_there_wherever_the_document_comes_from() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let document = std::fs::read_to_string(golden.join("webhooks.json")).unwrap();
    let stdin = ops_with_stdin(&golden, &["generate", "-", "--namespace", "webhooks", "-o", "-"], &document);
    assert_eq!(stdin.stdout, std::fs::read_to_string(golden.join("webhooks.rs")).unwrap());
    // A document of nothing else.
    let document = r##"{ "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "webhooks": { "ping": { "post": {
        "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Ping" } } } } } } },
        "components": { "schemas": { "Ping": { "type": "object", "required": ["at"], "properties": { "at": { "type": "string" } } } } } }"##;
    let only = ops_with_stdin(&golden, &["generate", "-", "-o", "-"], document);
    assert!(only.stdout.contains("pub struct Ping {") && only.stdout.contains("pub struct Ping;"), "{}", only.stdout);
    assert!(only.stdout.contains("ops::json_schemas!(\"shop\""), "{}", only.stdout);
}

#[test]
fn patterns_choose_operations_and_what_they_reach() {
    let folder = folder("choose");
    let pets = ops(&folder, &["generate", "shop.yaml", "-o", "-", "--include", "tag:pets"]).stdout;
    assert!(pets.contains("pub struct Pet ") && !pets.contains("Order") && !pets.contains("sales"), "{pets}");
    let rest = ops(&folder, &["generate", "shop.yaml", "-o", "-", "--exclude", "GET /pets/*"]);
    assert!(!rest.stdout.contains("Pet ") && rest.stdout.contains("pub struct Order"), "{}", rest.stdout);
    assert!(!rest.stderr.contains("warning"), "nothing is said about what was left out: {}", rest.stderr);
    let none = ops(&folder, &["generate", "shop.yaml", "-o", "-", "--include", "nothing"]);
    assert!(none.status == 2 && none.stderr.contains("no operation matches `nothing`"), "{}", none.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_directory_gives_all_that_can_be_read() {
    let folder = folder("directory");
    let spec = json!({
        "namespace": "zoo", "name": "show", "version": "1.0.0", "type": "query", "description": "", "accessControl": {
            "requiredScopes": [] },
        "inputSchema": { "type": "object", "properties": { "id": { "type": "integer" } } },
        "outputSchema": { "$ref": "#/$defs/Animal", "$defs": { "Animal": { "type": "object", "properties": {} } } },
    });
    std::fs::create_dir_all(folder.join("apis/v1/.git")).unwrap();
    let shop = SHOP.replace("#/components/schemas/Pet", "../parts/types.yaml#/Pet");
    std::fs::create_dir_all(folder.join("apis/parts")).unwrap();
    for (name, text) in [
        ("v1/shop.yaml", shop.as_str()),
        ("v1/.git/hidden.json", "{"),
        ("parts/types.yaml", "Pet: { type: object, properties: { id: { type: integer } } }"),
        ("zoo.json", &spec.to_string()),
        ("zoo-wrong.json", r#"{ "namespace": "zoo", "name": "other", "inputSchema": {} }"#),
        ("broken.json", "{"),
        ("other.json", "[1]"),
        ("readme.txt", "no"),
    ] {
        std::fs::write(folder.join("apis").join(name), text).unwrap();
    }
    let told = ops(&folder, &["generate", "apis", "-o", "out"]);
    assert_eq!(told.status, 3, "some could not be read: {}", told.stderr);
    assert!(told.stderr.contains("nothing was made of 2 files"), "{}", told.stderr);
    assert!(std::fs::read_to_string(folder.join("out/v1_shop.rs")).unwrap().contains("pub struct ShowPet;"));
    let zoo = std::fs::read_to_string(folder.join("out/zoo.rs")).unwrap();
    assert!(zoo.contains("pub struct Show;") && zoo.contains("Animal"), "{zoo}");
    for skipped in ["broken.json", "other.json", "zoo-wrong.json"] {
        assert!(told.stderr.contains(skipped), "{skipped}: {}", told.stderr);
    }
    for (quiet, why) in [("types.yaml", "a part of a document"), ("hidden.json", "hidden")] {
        assert!(!told.stderr.contains(quiet), "{quiet} is {why}: {}", told.stderr);
    }
    let one = ops(&folder, &["generate", "apis", "-o", "one.rs"]);
    assert!(one.status == 2 && one.stderr.contains("2 modules"), "{}", one.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn inspect_shows_operations_and_diagnostics() {
    let folder = folder("inspect");
    let told = ops(&folder, &["inspect", "shop.yaml"]);
    assert_eq!(told.status, 0);
    let rows: Vec<Vec<&str>> = told.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "KIND", "METHOD", "PATH", "INPUT", "OUTPUT"]);
    assert_eq!(rows[2], ["shop.order", "mutation", "POST", "/orders", "body?:", "Order", "Order"]);
    assert!(told.stderr.contains("\"many\"") && told.stderr.contains("shop.yaml"), "{}", told.stderr);
    let json: Value = serde_json::from_str(&ops(&folder, &["inspect", "shop.yaml", "--json"]).stdout).unwrap();
    assert_eq!(json["modules"][0]["operations"][0]["id"], "shop.showPet");
    assert_eq!(json["modules"][0]["diagnostics"][0]["severity"], "warning");
    std::fs::write(folder.join("bad.yaml"), SHOP.replace("tags: [pets]", "parameters: 7")).unwrap();
    std::fs::write(folder.join("not.yaml"), "a: [").unwrap();
    let place = ops(&folder, &["inspect", "not.yaml"]);
    assert!(place.status == 3 && place.stderr.contains("--> not.yaml:1:4"), "{}", place.stderr);
    assert!(place.stderr.contains("1 | a: [\n"), "{}", place.stderr);
    let none = ops(&folder, &["inspect", "none.yaml"]);
    assert!(none.status == 3 && none.stderr.contains("none.yaml"), "{}", none.stderr);
    assert_eq!(ops(&folder, &["inspect"]).status, 2);
    assert!(ops(&folder, &["completions", "bash"]).stdout.contains("_ops"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Serves the shop, and its document.
async fn serve() -> String {
    let show = |Segment(id): Segment<u64>, headers: HeaderMap| async move {
        if headers.get("authorization").is_none_or(|token| token != "Bearer s3cr3t") {
            return (StatusCode::UNAUTHORIZED, axum::Json(json!({ "why": "no token" }))).into_response();
        }
        match id {
            8 => axum::Json(json!({ "id": id, "name": "\u{9b}2J\u{202e}" })).into_response(),
            _ => axum::Json(json!({ "id": id })).into_response(),
        }
    };
    let sales = |Query(query): Query<std::collections::BTreeMap<String, String>>| async move {
        let mut events = vec![r#"{"n":1}"#, r#"{"n":2}"#];
        if query.contains_key("bad") {
            events.insert(1, "{");
        }
        Sse::new(futures_util::stream::iter(
            events.into_iter().map(|data| Ok::<_, Infallible>(Event::default().data(data))),
        ))
    };
    let router = Router::new()
        .route("/openapi.yaml", get(|| async { SHOP }))
        .route("/away.yaml", get(|| async { SHOP.replace("url: /v1", "url: http://127.0.0.2:9/") }))
        .route("/v1/pets/{id}", get(show))
        .route("/v1/orders", post(|axum::Json(order): axum::Json<Value>| async { axum::Json(order) }))
        .route("/v1/sales", get(sales));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn call_prints_envelopes() {
    let (folder, url) = (folder("call"), serve().await);
    let base = format!("{url}/v1");
    let call = |arguments: &[&str]| ops(&folder, &[&["call"], arguments].concat());

    let pet = call(&["shop.yaml", "showPet", "petId=7", "--base-url", &base, "--bearer-env", "SHOP_TOKEN"]);
    assert_eq!(pet.status, 0, "{}", pet.stderr);
    let pet: Value = serde_json::from_str(&pet.stdout).unwrap();
    assert_eq!((&pet["data"]["id"], &pet["meta"]["statusCode"]), (&json!(7), &json!(200)));
    assert_eq!(pet["warnings"][0]["found"], "absent", "the name was made up, and the envelope says so");

    let odd = call(&["shop.yaml", "showPet", "petId=8", "--base-url", &base, "--bearer-env", "SHOP_TOKEN"]);
    assert!(!odd.stdout.contains(is_command) && odd.stdout.contains("\\u009b"), "{}", odd.stdout);
    let odd: Value = serde_json::from_str(&odd.stdout).unwrap();
    assert_eq!(odd["data"]["name"], "\u{9b}2J\u{202e}", "what is printed is the same JSON");

    let denied = call(&["shop.yaml", "GET /pets/{petId}", "petId=7", "--base-url", &base]);
    assert!(
        denied.status == 1 && denied.stderr.contains("401") && denied.stderr.contains("no token"),
        "{}",
        denied.stderr
    );

    std::fs::write(folder.join("input.json"), r#"{"body":{"to":"ann"}}"#).unwrap();
    let pairs = ["body.petIds=1", "body.petIds=2", "--input", "@input.json", "--raw", "--base-url", &base];
    let order = call(&[&["shop.yaml", "shop.order"], &pairs[..]].concat());
    let order: Value = serde_json::from_str(&order.stdout).unwrap();
    assert_eq!(order, json!({ "to": "ann", "petIds": [1, 2] }));

    let at = format!("{url}/openapi.yaml");
    let sales = call(&[&at, "sales"]);
    let lines: Vec<Value> = sales.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["data"], sales.status), (2, &json!({ "n": 2 }), 0));
    let bad = call(&[&at, "sales", "bad=true", "--raw"]);
    assert_eq!((bad.status, bad.stdout.as_str()), (1, "{\"n\":1}\n{\"n\":2}\n"), "{}", bad.stderr);

    std::fs::write(folder.join("token"), "s3cr3t\n").unwrap();
    let pet = call(&[&at, "showPet", "petId=7", "--raw", "--bearer-file", "token"]);
    assert!(pet.status == 0 && pet.stderr.contains("/name was absent"), "{}", pet.stderr);
    let away = call(&[&format!("{url}/away.yaml"), "showPet", "petId=7", "--bearer-file", "token"]);
    assert!(away.status == 2 && away.stderr.contains("--base-url"), "{}", away.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

/// An operation for each way to authenticate that no header of the command can say.
const KEYED: &str = r##"{
  "openapi": "3.1.0", "info": { "title": "Keyed", "version": "1" },
  "components": { "securitySchemes": {
    "key": { "type": "apiKey", "in": "query", "name": "api key" },
    "login": { "type": "http", "scheme": "basic" },
    "token": { "type": "http", "scheme": "bearer" } } },
  "paths": {
    "/key": { "get": { "operationId": "byKey", "security": [{ "key": [] }], "responses": { "200": { "description": "x" } } } },
    "/user": { "get": { "operationId": "byUser", "security": [{ "login": [] }], "responses": { "200": { "description": "x" } } } },
    "/either": { "get": { "operationId": "byEither", "security": [{ "token": [] }, { "key": [] }], "responses": { "200": { "description": "x" } } } },
    "/open": { "get": { "operationId": "byKeyOrNone", "security": [{ "key": [] }, {}], "responses": { "200": { "description": "x" } } } },
    "/token": { "get": { "operationId": "byToken", "security": [{ "token": [] }], "responses": { "200": { "description": "x" } } } }
  }
}"##;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_an_operation_asks_for_is_in_the_environment() {
    let folder = folder("keyed");
    std::fs::write(folder.join("keyed.json"), KEYED).unwrap();
    // It takes what it is sent for `s3cr3t`, wherever that is.
    let answer = |uri: Uri, headers: HeaderMap| async move {
        let header = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("none").to_owned();
        let asked = match uri.path() {
            "/key" => uri.query() == Some("api%20key=s3cr3t"),
            // `ann:s3cr3t`
            "/user" => header == "Basic YW5uOnMzY3IzdA==",
            "/either" => uri.query() == Some("api%20key=s3cr3t") && header == "Basic eA==",
            "/open" => uri.query().is_none() && header == "none",
            _ => header == "Bearer s3cr3t",
        };
        if asked { StatusCode::NO_CONTENT } else { StatusCode::UNAUTHORIZED }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    let call = |operation: &str, options: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        let command = command.current_dir(&folder).args(["call", "keyed.json", operation, "--base-url", &base]);
        ran(command.args(options).envs(variables.iter().copied()).output().unwrap())
    };
    let prefix = ["--credentials-env", "KEYED"];
    for (operation, variables) in [
        ("byKey", &[("KEYED_API_KEY", "s3cr3t")][..]),
        ("byKey", &[("KEYED_KEY", "s3cr3t"), ("KEYED_API_KEY", "other")]),
        ("byUser", &[("KEYED_USER", "ann"), ("KEYED_PASSWORD", "s3cr3t")]),
        ("byToken", &[("KEYED_TOKEN", "s3cr3t")]),
    ] {
        let told = call(operation, &prefix, variables);
        assert_eq!(told.status, 0, "{operation}: {}", told.stderr);
        // What is missing is told before anything is sent; two faults at once are a fault.
        let none = call(operation, &prefix, &[("KEYED_API_KEYS", "s3cr3t"), ("KEYED_USER", " ")]);
        assert_eq!(none.status, 2, "{operation}: {}", none.stderr);
        assert!(none.stderr.contains("they are not set: set `KEYED_"), "{operation}: {}", none.stderr);
    }
    for (operation, options, told) in [
        ("byKey", &[][..], "pass `--credentials-env PREFIX`, with the key in `PREFIX_API_KEY`"),
        ("byUser", &[], "pass `--credentials-env PREFIX`, with `PREFIX_USER` and `PREFIX_PASSWORD`"),
        ("byToken", &[], "pass `--bearer-env VAR`, with the token in that variable"),
    ] {
        let refused = call(operation, options, &[("KEYED_API_KEY", "s3cr3t")]);
        assert!(refused.status == 1 && refused.stderr.contains(told), "{operation}: {}", refused.stderr);
    }
    // A credential replaces a header of the same name, which is told.
    for (options, is_replaced) in [
        (["--bearer-env", "KEYED_TOKEN", "--header", "Authorization: Basic eA=="], true),
        (["--credentials-env", "KEYED", "--header", "Authorization: Basic eA=="], true),
        (["--credentials-env", "KEYED", "--header", "X-Other: x"], false),
    ] {
        let called = call("byToken", &options, &[("KEYED_TOKEN", "s3cr3t")]);
        assert_eq!(called.status, 0, "{options:?}: {}", called.stderr);
        let told = "warning: a credential in the header `Authorization` replaces the one of `--header`";
        assert_eq!(called.stderr.contains(told), is_replaced, "{options:?}: {}", called.stderr);
    }
    // The environment has only the key, so no credential replaces the header.
    let header = ["--credentials-env", "KEYED", "--header", "Authorization: Basic eA=="];
    let called = call("byEither", &header, &[("KEYED_API_KEY", "s3cr3t")]);
    assert_eq!((called.status, called.stderr.as_str()), (0, ""));
    // So is a token that is not sent. One that the operation takes comes before those of the environment.
    let options = ["--bearer-env", "SAID", "--credentials-env", "KEYED"];
    for (operation, said, is_unsent) in [("byKey", "other", true), ("byToken", "s3cr3t", false)] {
        let variables = [("SAID", said), ("KEYED_API_KEY", "s3cr3t"), ("KEYED_TOKEN", "other")];
        let called = call(operation, &options, &variables);
        assert_eq!(called.status, 0, "{operation}: {}", called.stderr);
        let told =
            "warning: the token is not sent: what is called takes none, and `--credentials-env` has what it asks for\n";
        assert_eq!(called.stderr.contains(told), is_unsent, "{operation}: {}", called.stderr);
    }
    let called = call("byKeyOrNone", &["--bearer-env", "SAID"], &[("SAID", "s3cr3t")]);
    let told = "warning: the token is not sent: what is called takes none, and needs no credentials\n";
    assert_eq!((called.status, called.stderr.as_str()), (0, told));
    // Credentials that the server does not take are another matter.
    let wrong = call("byKey", &prefix, &[("KEYED_API_KEY", "wrong")]);
    assert!(wrong.status == 1 && !wrong.stderr.contains("--credentials-env"), "{}", wrong.stderr);
    let tool = ops(&folder, &["call", "x", "--url", "http://127.0.0.1:9", "--credentials-env", "KEYED"]);
    assert!(tool.status == 2 && tool.stderr.contains("is for documents"), "{}", tool.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whether a terminal would obey a character.
fn is_command(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
}

#[test]
fn what_a_document_says_commands_no_terminal() {
    let folder = folder("commands");
    let bad = r"\u001b[2J\ncargo:rustc-env=A=B\r\u202e\u009b\u2028\u0085";
    let answers = format!(
        r#"{{"200":{{"description":"{bad}","content":{{"application/json":{{"schema":{{"type":"{bad}"}}}}}}}}}}"#
    );
    let operation = format!(
        r#"{{"operationId":"o{bad}","summary":"{bad}","tags":["{bad}"],"parameters":[{{"name":"{bad}","in":"query","schema":{{"type":"integer","default":"{bad}"}}}}],"responses":{answers}}}"#
    );
    let document = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"{bad}","version":"{bad}"}},"servers":[{{"url":"http://{bad}"}}],"paths":{{"/{bad}":{{"{bad}":1,"get":{operation}}}}}}}"#
    );
    std::fs::write(folder.join("bad.json"), &document).unwrap();
    std::fs::write(folder.join("none.json"), document.replace("3.1.0", bad)).unwrap();
    for arguments in [
        &["inspect", "bad.json"][..],
        &["inspect", "--json", "bad.json"],
        &["generate", "bad.json"],
        &["generate", "bad.json", "-o", "bad.rs"],
        &["call", "bad.json", "nothing"],
        &["call", "bad.json", "o", "x=1"],
        &["call", "bad.json", "GET /nothing"],
        &["inspect", "none.json"],
    ] {
        let told = ops(&folder, arguments);
        let shown = told.stdout + &told.stderr;
        assert!(!shown.contains(is_command), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("cargo:")), "{arguments:?}: {shown}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn mistakes_in_a_call_say_what_to_do() {
    let folder = folder("mistakes");
    for (arguments, status, message) in [
        (&["shop.yaml", "sale"][..], 2, "did you mean `sales`?"),
        (&["shop.yaml", "xyz"], 2, "ops inspect"),
        (&["shop.yaml", "showPet", "petId=x"], 2, "integer"),
        (&["shop.yaml", "showPet"], 2, "petId"),
        (&["shop.yaml", "showPet", "petId=1"], 1, "--base-url"),
        (&["shop.yaml", "showPet", "petId=1", "--base-url", "shop"], 2, "absolute"),
        (&["shop.yaml", "showPet", "--header", "s3cr3t"], 2, "Name: value"),
        (&["shop.yaml", "showPet", "--bearer-env", "NOT_SET"], 2, "`NOT_SET` is not set"),
        (&["shop.yaml", "showPet", "--input", "{"], 2, "not JSON"),
        (&["-", "showPet", "--input", "-"], 2, "standard input"),
        (&["none.yaml", "showPet"], 3, "none.yaml"),
        (&["http://127.0.0.1:9/openapi.yaml", "showPet"], 3, "127.0.0.1:9"),
    ] {
        let told = ops(&folder, &[&["call"], arguments].concat());
        assert_eq!(told.status, status, "{arguments:?}: {}", told.stderr);
        assert!(told.stderr.contains(message), "{arguments:?}: {}", told.stderr);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
