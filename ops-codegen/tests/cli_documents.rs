//! The command `ops` about documents: what changed between two versions, one operation in full, and documents that are
//! kept beside `ops.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::{Value, json};

const SHOP: &str = r##"openapi: 3.1.0
info: { title: Pet shop, version: 1.0.0 }
servers: [{ url: "https://shop.example.com/v1" }]
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      summary: Shows a pet
      description: |-
        Shows a pet
        by its number.
      security: [{ shopKey: [] }, {}]
      parameters:
        - { name: petId, in: path, required: true, description: The number of the pet, schema: { type: integer } }
        - { name: sort, in: query, schema: { type: string, enum: [up, down], default: up } }
      responses:
        200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
        404: { description: No such pet, content: { application/json: { schema: { $ref: "#/components/schemas/Fault" } } } }
  /orders:
    post:
      operationId: order
      deprecated: true
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } } }
components:
  securitySchemes: { shopKey: { type: apiKey, in: header, name: X-Shop-Key } }
  schemas:
    Pet: { type: object, required: [id, name], properties: { id: { type: integer }, name: { type: string } } }
    Order:
      type: object
      required: [petId, to]
      properties: { petId: { type: integer }, to: { type: string, description: The receiver }, note: { type: string } }
    Fault: { type: object, properties: { code: { type: string } } }
"##;

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-documents-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.yaml"), SHOP).unwrap();
    folder
}

struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

fn ops(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    let output = command.args(arguments).current_dir(folder).env("SHOP_TOKEN", "s3cr3t").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ran.stderr.contains("s3cr3t") && !ran.stdout.contains("s3cr3t"), "no secret shows");
    ran
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_diff_says_what_breaks() {
    let folder = folder("diff");
    let same = ops(&folder, &["diff", "shop.yaml", "shop.yaml"]);
    assert_eq!((same.status, same.stdout.as_str()), (0, ""), "{}", same.stderr);
    assert!(same.stderr.contains("no operation changed"), "{}", same.stderr);

    write(
        &folder,
        "more.yaml",
        &SHOP.replace("note: { type: string }", "note: { type: string }, gift: { type: boolean }"),
    );
    let more = ops(&folder, &["diff", "shop.yaml", "more.yaml"]);
    let lines = [
        "change: request of `shop.order`: `Order` /properties/gift: the property is new",
        "change: response of `shop.order`: `Order` /properties/gift: the property is new",
    ];
    assert_eq!((more.status, more.stdout.lines().collect::<Vec<_>>()), (0, lines.to_vec()), "{}", more.stderr);
    assert!(more.stderr.contains("2 changes, none of which breaks callers"), "{}", more.stderr);

    // Two faults at once.
    let new = SHOP
        .replace("required: [id, name]", "required: [id]")
        .replace("in: query, schema", "in: query, required: true, schema");
    write(&folder, "new.yaml", &new);
    let told = ops(&folder, &["diff", "shop.yaml", "new.yaml"]);
    let lines = [
        "breaking: request of `shop.showPet`: query parameter `sort`: it is required now",
        "breaking: response of `shop.showPet`: `Pet` /properties/name: it may be absent now",
    ];
    assert_eq!((told.status, told.stdout.lines().collect::<Vec<_>>()), (1, lines.to_vec()), "{}", told.stderr);
    assert!(told.stderr.contains("2 changes, of which 2 break callers"), "{}", told.stderr);
    let told = ops(&folder, &["diff", "shop.yaml", "new.yaml", "--json"]);
    assert_eq!(told.status, 1);
    let json = told.json();
    assert_eq!(json["breaking"], 2);
    assert_eq!(
        json["changes"][1],
        json!({
            "breaks": true,
            "part": "response",
            "operations": ["shop.showPet"],
            "more": false,
            "subject": "`Pet`",
            "pointer": "/$defs/Pet/properties/name",
            "message": "it may be absent now",
        })
    );
    let sold = "sold: { post: { requestBody: { content: { application/json: { schema: { type: string } } } } } }";
    write(&folder, "hooks.yaml", &format!("{SHOP}\nwebhooks: {{ {sold} }}\n"));
    let told = ops(&folder, &["diff", "hooks.yaml", "shop.yaml"]);
    assert_eq!((told.status, told.stdout.trim()), (1, "breaking: `hooks.sold`: the webhook is gone"));
    for (arguments, message) in [
        (["diff", "shop.yaml", "none.yaml"], "none.yaml"),
        (["diff", "none.yaml", "shop.yaml"], "none.yaml"),
        (["diff", "shop.yaml", "http://127.0.0.1:9/x.yaml"], "127.0.0.1:9"),
    ] {
        let told = ops(&folder, &arguments);
        assert!(told.status == 2 && told.stderr.contains(message), "{}: {}", told.status, told.stderr);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_diff_of_folders_and_of_tools() {
    let folder = folder("folders");
    let tool = |required: Value| {
        json!({ "tools": [{ "name": "double", "inputSchema":
            { "type": "object", "properties": { "a": { "type": "number" } }, "required": required } }] })
    };
    for (name, shop, tools) in [
        ("old", SHOP.to_owned(), tool(json!([]))),
        ("new", SHOP.replace("operationId: order", "operationId: buy"), tool(json!(["a"]))),
    ] {
        write(&folder, &format!("{name}/shop.yaml"), &shop);
        write(&folder, &format!("{name}/math.json"), &tools.to_string());
    }
    let told = ops(&folder, &["diff", "old", "new"]);
    let mut lines: Vec<&str> = told.stdout.lines().collect();
    lines.sort_unstable();
    let wanted = [
        "breaking: `double` /inputSchema/properties/a: it is required now",
        "breaking: `shop.order`: it is called `buy` now",
    ];
    assert_eq!((told.status, lines), (1, wanted.to_vec()), "{}", told.stderr);
    std::fs::remove_file(folder.join("new/math.json")).unwrap();
    let gone = ops(&folder, &["diff", "old", "new"]);
    assert!(gone.status == 1 && gone.stdout.contains("breaking: `double`: the tool is gone"), "{}", gone.stdout);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_diff_names_the_lines_that_use_what_breaks() {
    let folder = folder("crate");
    let new = SHOP
        .replace("required: [id, name]", "required: [id]")
        .replace("operationId: order", "operationId: buy")
        .replace("in: query, schema", "in: query, required: true, schema");
    write(&folder, "new.yaml", &new);
    write(
        &folder,
        "crate/src/main.rs",
        "// shop::Order, pet.name\nmod shop;\nasync fn f() {\n    let pet = call::<shop::ShowPet>(shop::ShowPetInput {\n        \
         pet_id: 7,\n        sort: None,\n    });\n    println!(\"{} order\", pet.data.name);\n    go::<shop::Order>();\n}\n",
    );
    // Who calls by methods names no types.
    let client = "use shop::Methods;\nasync fn f(client: Client) {\n    client.order(()).await;\n    \
                  let pet = client\n        .show_pet(7).await;\n    print(pet.data.name, 0..name);\n}\n";
    write(&folder, "crate/src/client.rs", client);
    write(&folder, "crate/src/other.rs", "fn f(other: Thing) { other.name; other.sort(); other.order(); }\n");
    write(&folder, "crate/src/broken.rs", "fn f( { ShowPet\n");
    write(&folder, "crate/target/x.rs", "fn f() { shop::Order; }\n");
    let generated = ops(&folder, &["generate", "shop.yaml", "-o", "crate/src/shop.rs"]);
    assert_eq!(generated.status, 0, "{}", generated.stderr);
    let told = ops(&folder, &["diff", "shop.yaml", "new.yaml", "--crate", "crate"]);
    let lines = [
        "breaking: request of `shop.showPet`: query parameter `sort`: it is required now",
        "  src/client.rs:5: shop::Methods::show_pet",
        "  src/main.rs:4: shop::ShowPetInput",
        "  src/main.rs:6: shop::ShowPetInput.sort",
        "breaking: `shop.order`: it is called `buy` now",
        "  src/client.rs:3: shop::Methods::order",
        "  src/main.rs:9: shop::Order",
        "breaking: response of `shop.showPet`: `Pet` /properties/name: it may be absent now",
        "  src/client.rs:6: shop::Pet.name",
        "  src/main.rs:8: shop::Pet.name",
    ];
    assert_eq!((told.status, told.stdout.lines().collect::<Vec<_>>()), (1, lines.to_vec()), "{}", told.stderr);
    let json = ops(&folder, &["diff", "shop.yaml", "new.yaml", "--crate", "crate", "--json"]).json();
    let uses = json!([
        { "file": "src/client.rs", "line": 3, "name": "shop::Methods::order" },
        { "file": "src/main.rs", "line": 9, "name": "shop::Order" },
    ]);
    assert_eq!(json["changes"][1]["uses"], uses);
    let none = ops(&folder, &["diff", "shop.yaml", "new.yaml", "--crate", "nowhere"]);
    assert!(none.status == 2 && none.stderr.contains("`nowhere` is no folder"), "{}", none.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_operation_is_shown_in_full() {
    let folder = folder("inspect");
    let shown = ops(&folder, &["inspect", "shop.yaml", "showPet"]);
    let wanted = "\
shop.showPet: query  GET /pets/{petId}
at https://shop.example.com/v1
  Shows a pet
  by its number.
Input: ShowPetInput
  petId in path: integer, `i64` in Rust, required
      The number of the pet
  sort in query: enum, `Option<ShowPetInputSort>` in Rust, optional, default \"up\", one of \"up\" \"down\"
Output: Pet (Pet)
  200: application/json
Errors:
  404: application/json, Fault: No such pet
Security: shopKey (header `X-Shop-Key`) or no credentials
In Rust:
  use shop::Methods;
  client.show_pet(1).await?
In a shell:
  ops call shop.yaml showPet petId=1
";
    assert_eq!((shown.status, shown.stdout.as_str()), (0, wanted), "{}", shown.stderr);
    for arguments in [
        &["inspect", "shop.yaml", "shop.showPet"][..],
        &["inspect", "shop.yaml", "GET /pets/{petId}"],
        &["call", "shop.yaml", "showPet", "--help"],
        &["call", "--help", "shop.yaml", "showPet", "petId=7"],
    ] {
        assert_eq!(ops(&folder, arguments).stdout, wanted, "{arguments:?}");
    }
    let order = ops(&folder, &["inspect", "shop.yaml", "order"]).stdout;
    for line in [
        "shop.order: mutation, deprecated  POST /orders\n",
        "  body in body (application/json): Order, `Order` in Rust, required\n    body.petId: integer, required\n",
        "    body.to: string, required\n        The receiver\n    body.note: string, optional\n",
        "  client.order(shop::Order::new(1, \"text\")).await?\n",
        "  ops call shop.yaml order body.petId=1 body.to=text\n",
    ] {
        let is_there = order.contains(line) || order.replace("Order2", "Order").contains(line);
        assert!(is_there, "{line}\n{order}");
    }
    let json = ops(&folder, &["inspect", "shop.yaml", "showPet", "--json"]).json();
    let sort = json!({
        "name": "sort", "place": "query", "type": "enum", "rust": "Option<ShowPetInputSort>", "required": false,
        "values": ["up", "down"], "default": "up", "description": "",
    });
    assert_eq!(json["input"]["properties"][1], sort);
    assert_eq!(json["example"]["shell"], "ops call shop.yaml showPet petId=1");
    assert_eq!(json["responses"][1]["description"], "No such pet");
    // The help of the command is still there.
    for arguments in [&["call", "--help"][..], &["inspect", "--help"], &["call", "-h"]] {
        let help = ops(&folder, arguments);
        assert!(help.status == 0 && help.stdout.contains("Usage: ops"), "{}", help.stdout);
    }
    let unknown = ops(&folder, &["inspect", "shop.yaml", "showPets"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("did you mean `showPet`?"), "{}", unknown.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_operation_is_shown_without_commands_for_the_terminal() {
    let folder = folder("hostile");
    let bad = r"\u001b[2J\ncargo:rustc-env=A=B\r\u202e\u009b\u2028";
    let schema = format!(r#"{{"type":"string","enum":["{bad}"],"default":"{bad}","description":"{bad}"}}"#);
    let document = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"t","version":"1"}},"servers":[{{"url":"http://{bad}"}}],"paths":{{"/x":{{"get":{{
        "operationId":"o","summary":"{bad}","description":"{bad}","security":[{{"{bad}":["{bad}"]}}],
        "parameters":[{{"name":"{bad}","in":"query","required":true,"schema":{schema}}}],
        "responses":{{"200":{{"description":"{bad}","content":{{"{bad}/x":{{"schema":{schema}}}}}}},
        "404":{{"description":"{bad}","content":{{"application/json":{{"schema":{schema}}}}}}}}}}}}}}},
        "components":{{"securitySchemes":{{"{bad}":{{"type":"http","scheme":"{bad}"}}}}}}}}"#
    );
    write(&folder, "bad.json", &document);
    write(
        &folder,
        "other.json",
        &document
            .replace("\"required\":true", "\"required\":false")
            .replace(r#""type":"string""#, r#""type":"integer""#),
    );
    let is_command =
        |c: char| c.is_control() && c != '\n' || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}');
    for arguments in [
        &["inspect", "bad.json", "o"][..],
        &["inspect", "bad.json", "o", "--json"],
        &["diff", "bad.json", "other.json"],
        &["diff", "bad.json", "other.json", "--json"],
        &["add", "bad.json", "--name", "new"],
    ] {
        let told = ops(&folder, arguments);
        let shown = told.stdout + &told.stderr;
        assert!(!shown.is_empty() && !shown.contains(is_command), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("cargo:")), "{arguments:?}: {shown}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A server of a document that changes; it wants a token below `/private`.
fn serve(text: &Arc<Mutex<String>>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (open, private) = (text.clone(), text.clone());
    let app = Router::new().route("/shop.yaml", get(async move || open.lock().unwrap().clone())).route(
        "/private/shop.yaml",
        get(async move |headers: HeaderMap| match headers.get("authorization") {
            Some(token) if token == "Bearer s3cr3t" => Ok(private.lock().unwrap().clone()),
            _ => Err(StatusCode::UNAUTHORIZED),
        }),
    );
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await })
    });
    url
}

#[test]
fn documents_are_added_and_updated() {
    let folder = folder("add");
    std::fs::remove_file(folder.join("shop.yaml")).unwrap();
    let text = Arc::new(Mutex::new(SHOP.to_owned()));
    let url = serve(&text);
    let source = format!("{url}/shop.yaml");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    write(&folder, "ops.toml", "# Mine\n[generate]\nout = \"src\" # here\n");
    let added = ops(&folder, &["add", &source]);
    assert_eq!(added.status, 0, "{}", added.stderr);
    assert!(added.stderr.contains("shop.yaml: 2 operations, in `ops.toml` as `shop`"), "{}", added.stderr);
    assert_eq!(read("shop.yaml"), SHOP);
    let manifest = read("ops.toml");
    let start = "# Mine\n[generate]\nout = \"src\" # here\n\n[documents.shop]\npath = \"shop.yaml\"\n";
    assert!(manifest.starts_with(&format!("{start}source = \"{source}\"\nsha256 = \"")), "{manifest}");
    let again = ops(&folder, &["add", &source]);
    assert!(again.status == 2 && again.stderr.contains("ops update shop"), "{}", again.stderr);

    // As it was.
    for arguments in [&["update", "--check"][..], &["update"], &["update", "shop"]] {
        let same = ops(&folder, arguments);
        assert!(same.status == 0 && same.stderr.contains("shop: as it was"), "{}: {}", same.status, same.stderr);
        assert_eq!(read("ops.toml"), manifest);
    }
    // A new version.
    *text.lock().unwrap() = SHOP.replace("required: [id, name]", "required: [id]");
    let line = "breaking: response of `shop.showPet`: `Pet` /properties/name: it may be absent now\n";
    let check = ops(&folder, &["update", "--check"]);
    assert_eq!((check.status, check.stdout.as_str()), (1, line), "{}", check.stderr);
    assert_eq!((read("shop.yaml").as_str(), read("ops.toml")), (SHOP, manifest.clone()), "a check writes nothing");
    let updated = ops(&folder, &["update"]);
    assert_eq!((updated.status, updated.stdout.as_str()), (0, line), "{}", updated.stderr);
    assert_eq!(read("shop.yaml"), *text.lock().unwrap());
    assert!(read("ops.toml") != manifest && read("ops.toml").starts_with(start));
    assert_eq!(ops(&folder, &["update", "--check"]).status, 0);
    // A file that somebody changed.
    write(&folder, "shop.yaml", "mine");
    let kept = ops(&folder, &["update"]);
    assert!(
        kept.status == 1 && kept.stderr.contains("`shop.yaml` was changed since it was fetched"),
        "{}",
        kept.stderr
    );
    assert_eq!(read("shop.yaml"), "mine");
    assert_eq!(ops(&folder, &["update", "--force"]).status, 0);
    assert_eq!(read("shop.yaml"), *text.lock().unwrap());
    // The server fails; the others are updated.
    write(&folder, "local.yaml", SHOP);
    assert_eq!(ops(&folder, &["add", "local.yaml", "--name", "copy"]).status, 0);
    *text.lock().unwrap() = "no document".to_owned();
    write(&folder, "local.yaml", &SHOP.replace("operationId: order", "operationId: buy"));
    let some = ops(&folder, &["update"]);
    assert_eq!(
        (some.status, some.stdout.as_str()),
        (3, "breaking: `copy.order`: it is called `buy` now\n"),
        "{}",
        some.stderr
    );
    assert!(read("copy.yaml").contains("operationId: buy"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_text_that_is_the_same_is_no_news() {
    let folder = folder("same");
    write(&folder, "from.yaml", SHOP);
    let entry = "[documents.shop]\npath = \"shop.yaml\"\nsource = \"from.yaml\"\n";
    let read = || std::fs::read_to_string(folder.join("ops.toml")).unwrap();
    // Written by hand, and of a text that came here in another way.
    for digest in ["", "sha256 = \"9f86d0\" # mine\n"] {
        write(&folder, "ops.toml", &format!("{entry}{digest}"));
        let before = read();
        for arguments in [&["update", "--check"][..], &["update", "shop", "--check"]] {
            let told = ops(&folder, arguments);
            assert!(told.status == 0 && told.stderr == "shop: as it was\n", "{}: {}", told.status, told.stderr);
            assert_eq!(read(), before, "a check writes nothing");
        }
        let told = ops(&folder, &["update"]);
        assert!(told.status == 0 && told.stderr == "shop: as it was\n", "{}: {}", told.status, told.stderr);
        assert!(read().starts_with(&format!("{entry}sha256 = \"")) && !read().contains("9f86d0"), "{}", read());
        assert_eq!(read().matches("# mine").count(), before.matches("# mine").count());
        // From now on a change by hand is one.
        write(&folder, "shop.yaml", "mine");
        let told = ops(&folder, &["update"]);
        assert!(told.status == 1 && told.stderr.contains("was changed since it was fetched"), "{}", told.stderr);
        write(&folder, "shop.yaml", SHOP);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_document_that_lies_here_is_kept_by_hand() {
    let folder = folder("here");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let added = ops(&folder, &["add", "./shop.yaml"]);
    assert!(added.status == 0 && added.stderr.contains("in `ops.toml` as `shop`"), "{}", added.stderr);
    let entry = "[documents.shop]\npath = \"shop.yaml\"\n";
    assert_eq!((read("ops.toml").as_str(), read("shop.yaml").as_str()), (entry, SHOP));
    // It may be edited: nothing was fetched that would be lost.
    write(&folder, "shop.yaml", &SHOP.replace("operationId: order", "operationId: buy"));
    let alone = ops(&folder, &["update"]);
    assert!(alone.status == 2 && alone.stderr.contains("no document of `ops.toml` has a `source`"), "{}", alone.stderr);
    write(&folder, "other/bank.yaml", SHOP);
    assert_eq!(ops(&folder, &["add", "other/bank.yaml"]).status, 0);
    let both = ops(&folder, &["update"]);
    assert!(both.status == 0 && both.stderr.contains("bank: as it was"), "{}", both.stderr);
    assert!(read("shop.yaml").contains("operationId: buy"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_added_says_why() {
    let folder = folder("mistakes");
    let text = Arc::new(Mutex::new(SHOP.to_owned()));
    let url = serve(&text);
    let private = format!("{url}/private/shop.yaml");
    write(&folder, "own.yaml", "mine");
    for (arguments, status, message) in [
        (&["add", "none.yaml"][..], 3, "none.yaml"),
        (&["add", "own.yaml", "--name", "x"], 3, "own.yaml"),
        (&["add", "http://127.0.0.1:9/x.yaml"], 3, "127.0.0.1:9"),
        (&["add", &private, "--name", "p"], 3, "401"),
        (&["add", &private, "--name", "p"], 3, "no credentials are set: pass `--bearer-env VAR`, with the token"),
        (&["call", &private, "showPet"], 3, "`ops add` fetches a document with credentials: pass it"),
        (&["inspect", &private], 3, "`ops add` fetches a document with credentials: pass it"),
        (&["add", "shop.yaml", "--name", "own"], 1, "another file `own.yaml`"),
        (&["add", "shop.yaml", "--name", "../x"], 2, "`../x` is no name"),
        (&["add", "./--output.yaml"], 2, "`--output` is no name"),
        (&["add", "-"], 2, "standard input can be read only once"),
        (&["update", "nothing"], 2, "there is no `ops.toml` here"),
        (&["update", "--check"], 2, "there is no `ops.toml` here"),
    ] {
        let told = ops(&folder, arguments);
        assert!(
            told.status == status && told.stderr.contains(message),
            "{arguments:?}: {}: {}",
            told.status,
            told.stderr
        );
        assert!(!folder.join("ops.toml").exists(), "{arguments:?}");
    }
    // Credentials are sent for the document if it has the origin of the base URL.
    write(&folder, "token", "wrong");
    for (base, is_sent) in [(url.as_str(), true), ("http://127.0.0.1:9", false)] {
        let told = ops(&folder, &["call", &private, "showPet", "--base-url", base, "--bearer-file", "token"]);
        assert!(told.status == 3 && told.stderr.contains("401"), "{base}: {}: {}", told.status, told.stderr);
        assert_eq!(told.stderr.contains("`ops add`"), !is_sent, "{base}: {}", told.stderr);
    }
    assert_eq!(std::fs::read_to_string(folder.join("own.yaml")).unwrap(), "mine");
    for (text, message) in [
        ("", "`ops.toml` names no documents"),
        ("[documents.own]\npath = \"own.yaml\"\n", "no document of `ops.toml` has a `source`"),
    ] {
        write(&folder, "ops.toml", text);
        for arguments in [&["update", "--check"][..], &["update"]] {
            let told = ops(&folder, arguments);
            assert!(told.status == 2 && told.stderr.contains(message), "{arguments:?}: {}", told.stderr);
        }
    }
    std::fs::remove_file(folder.join("ops.toml")).unwrap();
    let token = ["--bearer-env", "SHOP_TOKEN"];
    let added = ops(&folder, &[&["add", &private, "--name", "p"][..], &token].concat());
    assert_eq!(added.status, 0, "{}", added.stderr);
    assert!(!std::fs::read_to_string(folder.join("ops.toml")).unwrap().contains("s3cr3t"));
    assert_eq!(ops(&folder, &[&["update", "p", "--check"][..], &token].concat()).status, 0);
    // Relative to its URL, which the file does not tell.
    *text.lock().unwrap() = SHOP.replace("https://shop.example.com/v1", "/v1");
    let told = ops(&folder, &["add", &format!("{url}/shop.yaml"), "--name", "relative"]);
    assert!(told.status == 0 && told.stderr.contains(&format!("with `--base-url {url}/v1`")), "{}", told.stderr);
    write(&folder, "ops.toml", "[documents.shop]\n");
    let told = ops(&folder, &["update"]);
    assert!(told.status == 2 && told.stderr.contains("`documents.shop` has no `path`"), "{}", told.stderr);
    std::fs::remove_dir_all(folder).unwrap();
}
