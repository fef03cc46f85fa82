//! What the command `ops` says no to, and what it says: each test has its folder, and runs the program.

mod folder;

use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use serde_json::{Value, json};

use folder::{Folder, SHOP};

#[test]
fn arguments_that_an_operation_does_not_have() {
    let folder = Folder::new("arguments");
    folder.write("shop.yaml", SHOP);
    // Nothing listens there: all of them are refused before that is noticed.
    let base = ["--base-url", "http://127.0.0.1:9"];
    let fails = |arguments: &[&str], says: &[&str]| {
        folder.fails(2, &[&["call", "shop.yaml"], arguments, &base].concat(), says);
    };
    fails(&["showPet", "petid=7"], &["unknown argument `petid`: did you mean `petId`?"]);
    fails(&["showPet", "petId=7", "PETID=7"], &["unknown argument `PETID`: did you mean `petId`?"]);
    fails(&["showPet", "petId=7", "colour=red"], &["unknown argument `colour`", "`petId`, `limit`"]);
    fails(&["ping", "x=1"], &["unknown argument `x`: the operation has none"]);
    fails(&["addPet", "body.id=1", "body.nmae=Rex"], &["unknown argument `body.nmae`: did you mean `body.name`?"]);
    fails(&["addPet", "name=Rex"], &["unknown argument `name`: did you mean `body.name`?"]);
    fails(&["addPet", "body.owner.nam=Ann"], &["did you mean `body.owner.name`?"]);
    fails(&["addPet", "--input", r#"{"body":{"id":1,"nam":"x"}}"#], &["unknown argument `body.nam`"]);
    // Two at once are both told.
    fails(&["showPet", "petid=7", "limt=1"], &["did you mean `petId`?", "did you mean `limit`?"]);
    // What the schema leaves open is sent.
    let open = ["call", "shop.yaml", "addPet", "body.id=1", "body.name=x", "body.tags.any=y"];
    folder.fails(1, &[&open[..], &base].concat(), &["shop.addPet"]);
}

#[test]
fn a_tool_hides_no_operation() {
    let folder = Folder::new("hidden");
    // Nothing listens there.
    let shop = SHOP.replacen("paths:", "servers: [{ url: 'http://127.0.0.1:9' }]\npaths:", 1);
    folder.write("apis/shop.yaml", &shop);
    let tools = ["ping", "search"].map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    folder.write("apis/docs.json", &json!({ "tools": tools }).to_string());
    let told = folder.fails(1, &["call", "apis", "ping"], &["shop.ping"]);
    assert!(!told.contains("docs.ping"), "{told}");
    for (name, tool) in [("docs.ping", "docs.ping"), ("search", "docs.search")] {
        let says = format!("`{tool}` is a tool of an MCP server, not of an HTTP API: name its server");
        folder.fails(2, &["call", "apis", name], &[&says]);
    }
    folder.write("apis/till.yaml", &shop);
    let several = "several operations are called `ping`: did you mean `shop.ping` or `till.ping`?";
    folder.fails(2, &["call", "apis", "ping"], &[several]);
}

#[test]
fn values_that_would_be_lost_or_rounded() {
    let folder = Folder::new("lost");
    folder.write("shop.yaml", SHOP);
    let fails = |arguments: &[&str], says: &[&str]| {
        // Nothing listens there: all of them are refused before that is noticed.
        folder.fails(2, &[&["call", "shop.yaml", "--base-url", "http://127.0.0.1:9"], arguments].concat(), says);
    };
    let would_replace = "`body`: it is given already, as an object with `name`, which this value would replace";
    fails(&["addPet", "body.name=Rex", r#"body={"id":3}"#], &[would_replace]);
    fails(&["addPet", "--input", r#"{"body":{"name":"Rex"}}"#, r#"body={"id":3}"#], &[would_replace]);
    let rounded = "`petId`: `123456789012345678901` has more than 64 bits, so it would be rounded";
    fails(&["showPet", "petId=123456789012345678901"], &[rounded]);
    let rounded = "the input: `123456789012345678901` has more than 64 bits, so it would be rounded";
    fails(&["showPet", "--input", r#"{"petId":123456789012345678901}"#], &[rounded]);
    // Two faults at once are both told.
    let long = "body.id=123456789012345678901";
    fails(&["addPet", long, r#"body={"id":1}"#, "body.name=Rex", "nmae=x"], &["`body.id`: ", "argument `nmae`"]);
}

#[test]
fn a_module_in_two_files_is_not_printed() {
    let folder = Folder::new("two-files");
    folder.write("shop.yaml", SHOP);
    folder.write("src/main.rs", "fn main() { shop::ShowPet; }");
    folder.write("ops.toml", "[generate]\nonly_used = true\n[documents.shop]\npath = \"shop.yaml\"\n");
    let says = ["includes `shop.others.json`", "name a file or a folder by `--output`", "`only_used`"];
    folder.fails(2, &["generate", "ops.toml", "-o", "-"], &says);
    folder.good(&["generate", "ops.toml", "-o", "out/shop.rs"]);
    assert!(folder.read("out/shop.rs").contains("shop.others.json") && folder.0.join("out/shop.others.json").exists());
    // All of it is one text.
    folder.write("ops.toml", "[documents.shop]\npath = \"shop.yaml\"\n");
    assert!(!folder.good(&["generate", "ops.toml", "-o", "-"]).0.contains("include_str!"));
}

#[test]
fn credentials_that_a_file_is_read_without() {
    let folder = Folder::new("credentials");
    folder.write("from/shop.yaml", SHOP);
    let refused = "have no use here: `from/shop.yaml` is a file, which is read without them";
    for option in [["--header", "X-Key: k"], ["--bearer-env", "NOT_SET"], ["--bearer-file", "from/shop.yaml"]] {
        folder.fails(2, &[&["add", "from/shop.yaml"][..], &option].concat(), &[refused]);
        assert!(!folder.0.join("ops.toml").exists());
    }
    folder.good(&["add", "from/shop.yaml"]);
    for arguments in [&["update"][..], &["update", "shop"], &["update", "--check"]] {
        folder.fails(2, &[arguments, &["--bearer-env", "NOT_SET"]].concat(), &[refused]);
    }
}

#[test]
fn snapshots_of_two_servers_in_one_file() {
    let folder = Folder::new("one-file");
    let servers = |one: &str, other: &str| {
        let servers = json!({ one: { "command": "/no/such/program" }, other: { "command": "/no/such/program" } });
        folder.write("mcp.json", &json!({ "mcpServers": servers }).to_string());
    };
    let snapshot = ["snapshot", "--config", "mcp.json", "-o", "tools"];
    for (one, other) in [("my server", "my_server"), ("shop", "Shop")] {
        servers(one, other);
        let says = [&format!("`{one}`")[..], &format!("`{other}`"), "would both be `tools", "`--server NAME`"];
        for more in [&[][..], &["--check"], &["--force"]] {
            folder.fails(2, &[&snapshot, more].concat(), &says);
        }
        // Of one, there is one file.
        folder.fails(1, &[&snapshot[..], &["--server", one]].concat(), &["/no/such/program"]);
    }
    servers("my server", "my-server");
    folder.fails(1, &snapshot, &["`my server`: ", "`my-server`: "]);
}

#[test]
fn operations_that_are_not_there() {
    let folder = Folder::new("operations");
    folder.write("shop.yaml", SHOP);
    let fails = |operation: &str, says: &[&str]| {
        folder.fails(2, &["call", "shop.yaml", operation, "petid=7"], says);
    };
    fails("shwPet", &["has no operation `shwPet`: did you mean `showPet`?"]);
    fails("showpet", &["did you mean `showPet`?"]);
    fails("shop.showPets", &["did you mean `shop.showPet`?"]);
    fails("GET /pets/{id}", &["did you mean `GET /pets/{petId}`?"]);
    fails("zzzzzz", &["`ops inspect` shows all"]);
    fails("GET", &["has no operation `GET`: write a request as one word, in quotes: 'METHOD /path'"]);
    fails("/ping", &["has no operation `/ping`: did you mean `GET /ping`?"]);
    let choose = |pattern: &str, says: &[&str]| {
        folder.fails(2, &["generate", "shop.yaml", "-o", "-", "--include", pattern], says);
    };
    choose("showpet", &["no operation matches `showpet` (there is `showPet`)"]);
    choose("shop.shoPet", &["(there is `showPet`)"]);
}

#[test]
fn documents_of_one_namespace_are_both_there() {
    let folder = Folder::new("namespaces");
    folder.write("apis/shop.v1.yaml", SHOP);
    folder.write("apis/shop.v2.yaml", SHOP);
    folder.write("apis/manifest.tsv", "no document");
    folder.write("apis/package.json", "{}");
    let (stdout, stderr) = folder.good(&["inspect", "apis"]);
    assert!(stdout.contains("shop_v1.showPet") && stdout.contains("shop_v2.showPet"), "{stdout}");
    for file in ["apis/shop.v1.yaml", "apis/shop.v2.yaml"] {
        assert!(stderr.contains(&format!("of this document and of `{file}`")), "{stderr}");
        assert!(stderr.contains(&format!("--> {file}\n")), "{stderr}");
    }
    assert!(!stderr.contains("manifest.tsv"), "{stderr}");
    folder.good(&["generate", "apis", "-o", "out"]);
    assert!(folder.read("out/shop_v1.rs").contains("shop_v1.") && folder.read("out/shop_v2.rs").contains("shop_v2."));

    // Two that nothing tells apart, and one beside them that can be had.
    folder.write("same/a b.yaml", SHOP);
    folder.write("same/a_b.yaml", SHOP);
    folder.write("same/shop.yaml", SHOP);
    let (status, stdout, stderr) = folder.ops(&["inspect", "same"]);
    assert_eq!(status, 3, "{stderr}");
    assert!(stdout.contains("shop.showPet") && !stdout.contains("a_b"), "{stdout}");
    for file in ["same/a b.yaml", "same/a_b.yaml"] {
        assert!(stderr.contains(&format!("--> {file}\n")) && stderr.contains(&format!("`{file}` have the namespace")));
    }
    assert!(stderr.contains("rename a file"), "{stderr}");
    folder.fails(
        2,
        &["generate", "apis/shop.v1.yaml", "same/shop.yaml", "-o", "x"],
        &["shop.v1.yaml", "same/shop.yaml"],
    );
}

#[test]
fn a_check_fails_for_what_cannot_be_read_and_for_what_is_gone() {
    let folder = Folder::new("check");
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/other.yaml", SHOP);
    folder.write("apis/third.yaml", SHOP);
    let check = ["generate", "apis", "-o", "out", "--check"];
    folder.good(&["generate", "apis", "-o", "out"]);
    folder.write("out/mod.rs", "pub mod shop;");
    folder.good(&check);
    folder.remove("apis/other.yaml");
    folder.fails(1, &check, &["other.rs is of a document that is gone"]);
    // A document that can't be read, whose module is there, is not gone.
    folder.write("apis/third.yaml", "a: [");
    let stderr = folder.fails(3, &check, &["apis/third.yaml:1:4", "other.rs is of a document that is gone"]);
    assert!(!stderr.contains("third.rs") && !stderr.contains("mod.rs"), "{stderr}");
    folder.remove("out/other.rs");
    folder.fails(3, &check, &["apis/third.yaml"]);
    folder.fails(3, &["inspect", "apis"], &["apis/third.yaml"]);
    // With a pattern that matches nothing both are told.
    folder.fails(3, &["inspect", "apis", "--include", "showpet"], &["apis/third.yaml", "(there is `showPet`)"]);
    folder.remove("apis/third.yaml");
    folder.remove("out/third.rs");
    folder.good(&check);
    // A folder that one document is generated to may hold those of others.
    folder.write("one.yaml", SHOP);
    folder.good(&["generate", "one.yaml", "-o", "out"]);
    folder.good(&["generate", "one.yaml", "-o", "out", "--check"]);
    folder.fails(1, &check, &["one.rs is of a document that is gone"]);
}

#[test]
fn files_of_somebody_else_are_kept() {
    let folder = Folder::new("force");
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/other.yaml", SHOP);
    folder.write("out/shop.rs", "pub fn mine() {}\n");
    let generate = ["generate", "apis", "-o", "out"];
    folder.fails(1, &generate, &["`out/shop.rs` was not written by this command", "--force"]);
    assert_eq!(folder.read("out/shop.rs"), "pub fn mine() {}\n");
    assert!(!folder.0.join("out/other.rs").exists(), "all or nothing");
    folder.good(&[&generate[..], &["--force"]].concat());
    let made = folder.read("out/shop.rs");
    // A module that somebody has changed is still one that this command wrote.
    folder.write("out/shop.rs", &format!("{made}// more"));
    folder.good(&generate);
    assert_eq!(folder.read("out/shop.rs"), made);
    folder.write("one.rs", "// @generated by ops-codegen; changes are lost when it is generated again.? No.\n");
    folder.fails(1, &["generate", "apis/shop.yaml", "-o", "one.rs"], &["one.rs"]);
    folder.fails(2, &["generate", "apis", "-o", "out", "--check", "--force"], &["--force"]);
}

async fn serve() -> String {
    let problem = || async {
        let body = json!({ "title": "Unprocessable Entity", "detail": "the name is taken" });
        (StatusCode::UNPROCESSABLE_ENTITY, [("content-type", "application/problem+json")], body.to_string())
    };
    let pet = |axum::extract::Path(id): axum::extract::Path<u32>| async move {
        match id {
            1 => axum::Json(json!({ "id": 1, "name": "Rex" })).into_response(),
            2 => axum::Json(json!({ "id": "2", "name": "Rex" })).into_response(),
            3 => (StatusCode::BAD_GATEWAY, Html("<html><script>no</script></html>")).into_response(),
            _ => (StatusCode::NOT_FOUND, "no \u{1b}[31msuch pet").into_response(),
        }
    };
    let photo = || async { ([("content-type", "image/png")], &b"\x89PNG\xff\x00"[..]) };
    let count = |bytes: axum::body::Bytes| async move { axum::Json(json!(format!("{:?}", bytes.as_ref()))) };
    let silent = || async {
        let first = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("data: {\"n\":1}\n\n")]);
        let body =
            axum::body::Body::from_stream(futures_util::StreamExt::chain(first, futures_util::stream::pending()));
        ([("content-type", "text/event-stream")], body)
    };
    let router = Router::new()
        .route("/photo", get(photo).put(count).post(count))
        .route("/any", get(photo))
        .route("/silent", get(silent))
        .route("/ping", get(|| async { StatusCode::NO_CONTENT }))
        .route("/pets", post(problem))
        .route("/pets/{id}", get(pet));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_cannot_be_read_has_one_status() {
    let (folder, url) = (Folder::new("one-status"), serve().await);
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/bad.yaml", "a: [");
    // The status does not depend on the body of the response.
    for (pet, url, says) in [
        ("petId=1", url.as_str(), ""),
        ("petId=9", &url, "such pet"),
        ("petId=9", "http://127.0.0.1:9", "shop.showPet"),
    ] {
        let call = ["call", "apis", "showPet", pet, "--base-url", url];
        folder.fails(3, &call, &["apis/bad.yaml:1:4", "nothing was made of a file", says]);
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_not_unset() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new("no-text");
    folder.write("shop.yaml", SHOP);
    folder.write("gateway.toml", "[apis.shop]\nspec = 'shop.yaml'\ntoken = { env = 'SECRET' }\n");
    for (name, arguments) in [
        ("SECRET", &["call", "shop.yaml", "ping", "--base-url", "http://127.0.0.1:9", "--bearer-env", "SECRET"][..]),
        ("SECRET", &["serve", "--config", "gateway.toml"]),
        ("SECRET", &["jobs", "--token-env", "SECRET", "queues"]),
        ("NATS_TOKEN", &["jobs", "queues"]),
        ("NATS_URL", &["jobs", "queues"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(arguments).current_dir(&folder.0).env(name, std::ffi::OsStr::from_bytes(b"\xff"));
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("the environment variable `{name}` is not UTF-8\n");
        assert!(output.status.code() == Some(2) && told.ends_with(&wanted), "{arguments:?}: {told}");
    }
}

#[test]
fn a_name_with_too_many_parts() {
    let folder = Folder::new("deep-name");
    folder.write("shop.yaml", SHOP);
    let deep = format!("{}a=1", "a.".repeat(60_000));
    folder.fails(2, &["call", "shop.yaml", "ping", &deep], &["has 60001 parts between dots: it may have 128"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn errors_and_policies_of_calls() {
    let (folder, url) = (Folder::new("calls"), serve().await);
    folder.write("shop.yaml", SHOP);
    let call = |arguments: &[&str]| {
        [&["call", "shop.yaml"], arguments, &["--base-url", &url]]
            .concat()
            .iter()
            .map(|a| (*a).to_owned())
            .collect::<Vec<_>>()
    };
    let run = |arguments: &[&str]| {
        let arguments = call(arguments);
        folder.ops(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (status, _, stderr) = run(&["addPet", "body.id=1", "body.name=Rex"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.starts_with("error: shop.addPet: HTTP 422: Unprocessable Entity: the name is taken\n"), "{stderr}");
    let (_, _, stderr) = run(&["addPet", "body.id=1", "body.name=Rex", "--header", "Content-Type: text/plain"]);
    assert!(stderr.starts_with("warning: the input decides the header `Content-Type`, not `--header`\n"), "{stderr}");
    let (_, _, stderr) = run(&["showPet", "petId=3"]);
    assert_eq!(stderr, "error: shop.showPet: HTTP 502: Bad Gateway\n<html><script>no</script></html>\n");
    let (_, _, stderr) = run(&["showPet", "petId=4"]);
    assert!(stderr.contains("HTTP 404: Not Found: no \\u{1b}[31msuch pet") && !stderr.contains('\u{1b}'), "{stderr}");

    assert_eq!(run(&["showPet", "petId=1", "--policy", "strict"]).0, 0);
    for (policy, id) in [("repair", 2), ("cast", 0)] {
        let (status, stdout, stderr) = run(&["showPet", "petId=2", "--policy", policy]);
        let envelope: Value = serde_json::from_str(&stdout).unwrap();
        assert!(status == 0 && envelope["data"]["id"] == id, "{policy}: {envelope} {stderr}");
        assert_eq!(envelope["warnings"][0]["pointer"], "/id", "{policy}");
    }
    let (status, stdout, stderr) = run(&["showPet", "petId=2", "--policy", "strict"]);
    assert!(status == 1 && stdout.is_empty(), "a result that does not match is no mistake of the command: {stderr}");
    assert!(stderr.contains("shop.showPet: ") && stderr.contains("/id") && stderr.contains(r#""id": "2""#), "{stderr}");
    assert_eq!(run(&["showPet", "petId=1", "--policy", "lenient"]).0, 2);
    folder.write("marked.json", "\u{feff}{\"petId\":1}");
    let (status, _, stderr) = run(&["showPet", "--input", "@marked.json", "-o", "pet.json"]);
    assert!(status == 0 && stderr.contains("`pet.json` has the answer as JSON, in "), "{stderr}");
    let (status, _, stderr) = run(&["ping", "-o", "ping.json"]);
    assert_eq!((status, &*stderr), (0, "note: `ping.json` has `null`, because the answer has no data\n"));
    assert_eq!(run(&["showPet", "petId=x"]).0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_silent_ends() {
    let (folder, url) = (Folder::new("silent"), serve().await);
    let content = "{ text/event-stream: { schema: { type: object, properties: { n: { type: integer } } } } }";
    let operation =
        format!("{{ operationId: events, responses: {{ 200: {{ description: x, content: {content} }} }} }}");
    let info = "openapi: 3.1.0\ninfo: { title: x, version: '1' }\n";
    folder.write("x.yaml", &format!("{info}paths:\n  /silent:\n    get: {operation}\n"));
    let begun = std::time::Instant::now();
    let line = ["call", "x.yaml", "events", "--raw", "--base-url", &url, "--timeout", "1"];
    let (status, stdout, stderr) = folder.ops(&line);
    assert_eq!((status, stdout.as_str()), (1, "{\"n\":1}\n"), "{stderr}");
    assert!(stderr.contains("the subscription stayed silent for 1s: raise `--timeout`\n"), "{stderr}");
    assert!(stderr.contains("an item of the stream was an error"), "{stderr}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
}

const PHOTOS: &str = r##"openapi: 3.1.0
info: { title: Photos, version: 1.0.0 }
paths:
  /photo:
    get:
      operationId: show
      responses: { 200: { description: x, content: { image/png: { schema: { type: string, format: binary } } } } }
    put:
      operationId: put
      requestBody: { required: true, content: { image/png: { schema: { type: string, format: binary } } } }
      responses: { 200: { description: x, content: { application/json: { schema: { type: string } } } } }
    post:
      operationId: post
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema: { type: object, properties: { name: { type: string }, photo: { type: string, format: binary } } }
      responses: { 200: { description: x, content: { application/json: { schema: { type: string } } } } }
  /any:
    get:
      operationId: showAny
      responses: { 200: { description: x, content: { '*/*': {} } } }
"##;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_are_sent_and_written() {
    let (folder, url) = (Folder::new("files"), serve().await);
    folder.write("photos.yaml", PHOTOS);
    let bytes = b"\x89PNG\xff\x00";
    std::fs::write(folder.0.join("cat.png"), bytes).unwrap();
    let call = |arguments: &[&str]| {
        let line = [&["call", "photos.yaml"], arguments, &["--base-url", &url]].concat();
        let (status, stdout, stderr) = folder.ops(&line);
        assert!(status == 0, "{arguments:?}: {stdout}{stderr}");
        (stdout, stderr)
    };
    assert_eq!(call(&["put", "body=@cat.png", "--text"]).0, format!("{:?}\n", &bytes[..]));
    let (sent, _) = call(&["post", "body.photo=@cat.png", "body.name=@cat.png", "--text"]);
    let (name, photo) = (format!("{:?}", b"@cat.png"), format!("{:?}", &bytes[..]));
    for part in [name, photo] {
        assert!(sent.contains(part.trim_matches(['[', ']'])), "{part}: {sent}");
    }
    let (stdout, stderr) = call(&["show", "--output", "copy.png"]);
    assert!(stdout.is_empty() && stderr.contains("`copy.png` has the 6 bytes"), "{stdout}{stderr}");
    assert_eq!(std::fs::read(folder.0.join("copy.png")).unwrap(), bytes);
    call(&["showAny", "--output", "any.png"]);
    assert_eq!(std::fs::read(folder.0.join("any.png")).unwrap(), bytes);
    call(&["put", "body=@cat.png", "-o", "text"]);
    assert_eq!(folder.read("text"), format!("{:?}", &bytes[..]));
    let line = ["call", "photos.yaml", "show", "-o", "-", "--base-url", &url];
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).args(line).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.stdout, bytes);
    folder.fails(2, &["call", "photos.yaml", "put", "body=@none.png"], &["`none.png` cannot be read"]);
    // A body that is not described is not read: the file of an earlier call is not replaced by nothing.
    folder.write("nothing.yaml", &PHOTOS.replace(", content: { '*/*': {} }", ""));
    folder.write("earlier", "kept");
    let skipped = "the document describes no body, and the answer has a body of type `image/png`, which was skipped";
    for file in ["earlier", "-"] {
        let line = ["call", "nothing.yaml", "showAny", "-o", file, "--base-url", &url];
        let told = folder.fails(1, &line, &[&format!("error: `{file}` is not written: {skipped}")]);
        assert!(!told.contains("no data"), "{told}");
    }
    assert_eq!(folder.read("earlier"), "kept");
    folder.fails(2, &["call", "photos.yaml", "show", "-o", "x", "--raw"], &["--raw"]);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_fails_leaves_its_file_alone() {
    use std::os::unix::fs::symlink;
    let (folder, url) = (Folder::new("output"), serve().await);
    folder.write("photos.yaml", PHOTOS);
    folder.write("kept.png", "kept");
    let at = |name: &str| folder.0.join(name);
    // Where they lead is not there yet.
    symlink("target.png", at("link.png")).unwrap();
    symlink("link.png", at("far.png")).unwrap();
    symlink("round.png", at("round.png")).unwrap();
    symlink("none/target.png", at("lost.png")).unwrap();
    for file in ["kept.png", "new.png", "link.png", "far.png"] {
        // Nobody listens there.
        let (status, stdout, stderr) =
            folder.ops(&["call", "photos.yaml", "show", "-o", file, "--base-url", "http://127.0.0.1:1"]);
        assert!(status == 1 && stdout.is_empty(), "{file}: {status} {stderr}");
        assert_eq!(folder.read("kept.png"), "kept", "{file}");
        assert!(!at("new.png").exists() && !at("target.png").exists(), "{file}");
        assert!(at("link.png").is_symlink() && at("far.png").is_symlink(), "{file}");
    }
    for file in ["round.png", "lost.png", "none/x.png", "."] {
        let line = ["call", "photos.yaml", "show", "-o", file, "--base-url", &url];
        folder.fails(1, &line, &[&format!("`{file}` cannot be written")]);
    }
    let (status, _, stderr) = folder.ops(&["call", "photos.yaml", "show", "-o", "far.png", "--base-url", &url]);
    assert!(status == 0 && at("far.png").is_symlink() && at("link.png").is_symlink(), "{stderr}");
    assert_eq!(std::fs::read(at("target.png")).unwrap(), b"\x89PNG\xff\x00");

    // Who reads a pipe gets the answer, and no end before it.
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let line = ["call", "photos.yaml", "show", "-o", "pipe", "--base-url", &url];
    let mut child = Command::new(env!("CARGO_BIN_EXE_ops")).args(line).current_dir(&folder.0).spawn().unwrap();
    let pipe = at("pipe");
    let reading = tokio::task::spawn_blocking(move || std::fs::read(pipe).unwrap());
    let read = tokio::time::timeout(std::time::Duration::from_secs(30), reading).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(read.unwrap().unwrap(), b"\x89PNG\xff\x00");
}
