//! The examples that `ops inspect` shows of an operation are good as they stand, for every operation of some documents: the
//! one in Rust compiles, and the command takes the one for a shell.

#[path = "../../tests/src/folder.rs"]
pub mod folder;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use folder::{Folder, target};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn ops(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).args(arguments).output().unwrap();
    serde_json::from_slice(&succeeded(output).stdout).unwrap()
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_example_of_every_operation_compiles() {
    let package = Folder::new(&root(), "examples").unwrap();
    std::fs::create_dir_all(package.join("src")).unwrap();
    let mut lib = String::from("#![allow(deprecated, unused)]\n");
    let mut count = 0;
    for (namespace, file) in [
        ("petshop", "tests/fixtures/openapi/petshop.yaml"),
        ("styles", "tests/fixtures/openapi/styles.yaml"),
        ("requests", "ops-codegen/tests/golden/requests.json"),
        ("unions", "ops-codegen/tests/golden/unions.json"),
        ("type", "tests/fixtures/openapi/swagger_forms.yaml"),
    ] {
        let document = root().join(file);
        let document = document.to_str().unwrap();
        let modules = ops_codegen::Builder::new().openapi(document).with_namespace(namespace).generate().unwrap();
        let module = if namespace == "type" { "type_" } else { namespace };
        lib.push_str(&format!("pub mod {module} {{\n{}\n}}\n", modules[0].generated.source));
        for spec in &modules[0].operations {
            let shown = ops(&["inspect", "--namespace", namespace, document, &spec.id, "--json"]);
            let example = shown["example"]["rust"].as_str().unwrap();
            assert!(!example.contains("todo!"), "{}: {example}", spec.id);
            let (import, call) = example.split_once('\n').unwrap();
            lib.push_str(&format!(
                "async fn call_{count}(client: &impl ops_runtime::Caller) -> Result<(), ops_runtime::CallError> {{\n    \
                 use crate::{};\n    {call};\n    Ok(())\n}}\n",
                import.strip_prefix("use ").unwrap().trim_end_matches(';')
            ));
            count += 1;
        }
    }
    assert!(count > 20, "{count} examples");
    println!("{count} examples");
    std::fs::write(package.join("src/lib.rs"), lib).unwrap();
    let runtime = root().join("ops-runtime");
    let manifest = format!(
        "[package]\nname = \"examples\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         ops-runtime = {{ path = {runtime:?}, default-features = false, features = [\"registry\"] }}\n\
         serde_json = \"1\"\n\n[workspace]\n"
    );
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let check = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cargo"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(target(&root()))
        .current_dir(&*package)
        .output();
    succeeded(check.unwrap());
}

/// Two documents, and what names them; one server has credentials of each kind.
const NET: &str = r##"openapi: 3.1.0
info: { title: Net shop, version: 1.0.0 }
servers: [{ url: "https://net.example.com/v1" }]
paths:
  /products/{productId}:
    get:
      operationId: getProduct
      security: [{ token: [] }]
      parameters: [{ name: productId, in: path, required: true, schema: { type: string, minLength: 6 } }]
      responses: { 200: { description: x } }
  /orders:
    post:
      operationId: order
      security: [{ key: [] }]
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } }
      responses: { 200: { description: x } }
  /tags:
    post:
      operationId: tags
      security: [{ query: [] }, { basic: [] }]
      requestBody: { required: true, content: { application/json: { schema: { type: array, minItems: 1, items: { type: string } } } } }
      responses: { 200: { description: x } }
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
    key: { type: apiKey, in: header, name: X-Key }
    query: { type: apiKey, in: query, name: k }
    basic: { type: http, scheme: basic }
  schemas:
    Order:
      type: object
      required: [lines, to, at, id]
      properties:
        id: { type: integer, readOnly: true }
        at: { type: string, format: date-time }
        to: { type: object, required: [city], properties: { city: { type: string }, zip: { type: string } } }
        lines: { type: array, minItems: 1, items: { $ref: "#/components/schemas/Line" } }
    Line: { type: object, required: [sku, count], properties: { sku: { type: string }, count: { type: integer, minimum: 2 } } }
"##;

/// Runs a command line in a shell, with this command in its path and a token in its environment.
fn shell(folder: &Path, line: &str) -> (i32, String) {
    let bin = Path::new(env!("CARGO_BIN_EXE_ops")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path);
    for namespace in ["NET", "PETSHOP", "REQUESTS", "STYLES", "SWAGGER_FORMS", "UNIONS"] {
        for kind in ["TOKEN", "API_KEY", "USER", "PASSWORD"] {
            command.env(format!("{namespace}_{kind}"), "t0ken");
        }
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_command_takes_the_example_of_every_operation() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let tools = r#"{"tools":[{"name":"double","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}]}"#;
    let list = "[documents.net]\npath = \"net.yaml\"\n[documents.maths]\npath = \"snap.json\"\n";
    for (file, text) in [("net.yaml", NET), ("snap.json", tools), ("ops.toml", list)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let mut count = 0;
    for document in [
        "net.yaml",
        "ops.toml",
        "snap.json",
        "tests/fixtures/openapi/petshop.yaml",
        "tests/fixtures/openapi/styles.yaml",
        "ops-codegen/tests/golden/requests.json",
        "ops-codegen/tests/golden/unions.json",
        "tests/fixtures/openapi/swagger_forms.yaml",
    ] {
        let document = if document.contains('/') { root().join(document) } else { folder.join(document) };
        let document = document.to_str().unwrap();
        let all = ops(&["inspect", document, "--json"]);
        let ids = all["modules"].as_array().unwrap().iter().flat_map(|module| module["operations"].as_array().unwrap());
        for id in ids.map(|operation| operation["id"].as_str().unwrap()) {
            let shown = ops(&["inspect", document, id, "--json"]);
            let example = shown["example"]["shell"].as_str().unwrap();
            let (status, stderr) = if example.ends_with("-- COMMAND") {
                // It is started, and there is none.
                let (status, stderr) = shell(&folder, example);
                assert!(stderr.contains("COMMAND"), "{example}: {stderr}");
                (status, stderr)
            } else {
                // Nothing listens there.
                let example = example.replace(" --base-url https://example.com", "");
                let (status, stderr) = shell(&folder, &format!("{example} --base-url http://127.0.0.1:9"));
                assert!(stderr.contains("127.0.0.1"), "{example}: {stderr}");
                (status, stderr)
            };
            assert_eq!(status, 1, "{example}: {stderr}");
            count += 1;
        }
    }
    assert!(count > 20, "{count} examples");
    let example = |document: &str, id: &str| {
        let shown = ops(&["inspect", folder.join(document).to_str().unwrap(), id, "--json"]);
        let document = folder.join(document).to_str().unwrap().to_owned();
        shown["example"]["shell"].as_str().unwrap().replace(&document, "DOCUMENT")
    };
    assert_eq!(
        example("net.yaml", "order"),
        "ops call DOCUMENT order body.at=2026-01-31T12:00:00Z body.to.city=text \
         'body.lines=[{\"sku\":\"text\",\"count\":2}]' --credentials-env NET"
    );
    assert_eq!(
        example("ops.toml", "getProduct"),
        "ops call DOCUMENT net.getProduct productId=textxx --bearer-env NET_TOKEN"
    );
    assert_eq!(example("net.yaml", "tags"), "ops call DOCUMENT tags body=text --credentials-env NET");
    assert_eq!(example("snap.json", "double"), "ops call DOCUMENT double a=1.5 -- COMMAND");
    let rust = ops(&["inspect", folder.join("net.yaml").to_str().unwrap(), "order", "--json"]);
    assert!(rust["example"]["rust"].as_str().unwrap().contains("vec![net::Line::new(\"text\", 1)]"), "{rust}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A document whose names are options of the command, and one of whose values is `@FILE`.
fn hostile(file: &str) -> String {
    let parameter = |name: &str, value: &str| {
        let schema = serde_json::json!({ "type": "string", "const": value });
        serde_json::json!({ "name": name, "in": "query", "required": true, "schema": schema })
    };
    let photo = serde_json::json!({ "type": "string", "format": "byte", "const": format!("@{file}") });
    let photo = serde_json::json!({ "type": "object", "required": ["photo"], "properties": { "photo": photo } });
    serde_json::json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "servers": [{ "url": "https://net.example.com" }],
        "paths": {
            "/send": { "get": {
                "operationId": "send", "responses": {},
                "parameters": [parameter("--bearer-env", "NET_TOKEN"), parameter("--output", "parameter")]
            } },
            "/short": { "get": { "operationId": "short", "responses": {}, "parameters": [parameter("-oshort", "x")] } },
            "/name": { "get": { "operationId": "--output=name", "responses": {} } },
            "/end": { "get": { "operationId": "--", "responses": {}, "parameters": [parameter("id", "7")] } },
            "/photos": { "post": {
                "operationId": "addPhoto", "responses": {},
                "requestBody": { "required": true, "content": { "application/json": { "schema": photo } } }
            } }
        }
    })
    .to_string()
}

#[test]
fn what_a_document_names_is_no_option() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let document = folder.join("net.json");
    std::fs::write(&document, hostile("photo")).unwrap();
    let document = document.to_str().unwrap();
    for (id, wanted) in [
        ("net.send", r#"send --input '{"--bearer-env":"NET_TOKEN","--output":"parameter"}'"#),
        ("net.short", r#"short --input '{"-oshort":"x"}'"#),
        ("net.--output=name", "net.--output=name"),
        ("net.--", "net.-- id=7"),
        ("net.addPhoto", r#"addPhoto --input '{"body":{"photo":"@photo"}}'"#),
    ] {
        let shown = ops(&["inspect", document, id, "--json"]);
        let example = shown["example"]["shell"].as_str().unwrap();
        assert_eq!(example, format!("ops call {document} {wanted}"));
        // It is a call, of which no option came into force.
        let (status, stderr) = shell(&folder, &format!("{example} --base-url http://127.0.0.1:9"));
        assert!(status == 1 && stderr.contains("127.0.0.1"), "{example}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "a call has written a file");
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn no_file_that_a_document_names_is_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Reading it blocks.
    let (document, pipe) = (folder.join("net.json"), folder.join("pipe"));
    succeeded(Command::new("mkfifo").arg(&pipe).output().unwrap());
    std::fs::write(&document, hostile(pipe.to_str().unwrap())).unwrap();
    let command = Command::new(env!("CARGO_BIN_EXE_ops"))
        .arg("inspect")
        .arg(&document)
        .args(["addPhoto", "--json"])
        .stdout(Stdio::piped())
        .spawn();
    let (mut command, begun) = (command.unwrap(), Instant::now());
    while command.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            command.kill().unwrap();
            panic!("it waits for the pipe");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let shown: Value = serde_json::from_slice(&succeeded(command.wait_with_output().unwrap()).stdout).unwrap();
    let wanted = format!("--input '{{\"body\":{{\"photo\":\"@{}\"}}}}'", pipe.display());
    assert!(shown["example"]["shell"].as_str().unwrap().ends_with(&wanted), "{shown}");
    std::fs::remove_dir_all(folder).unwrap();
}
