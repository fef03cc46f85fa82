//! `ops generate --lang ts`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DOCUMENT: &str = r##"{
    "openapi": "3.1.0", "info": { "title": "shop", "version": "1" },
    "paths": { "/pets/{id}": { "get": { "operationId": "pets/show",
        "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
        "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } } } } } },
    "components": { "schemas": { "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } } }
}"##;
const TOOLS: &str = r#"{ "tools": [{ "name": "add", "inputSchema": { "type": "object", "required": ["a"], "properties": { "a": { "type": "number" } } } }] }"#;

/// A folder with a document and a snapshot.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("typescript-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.json"), DOCUMENT).unwrap();
    std::fs::write(folder.join("math.json"), TOOLS).unwrap();
    folder
}

fn ops(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("generate").args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn all_documents_are_one_file_that_is_checked_to_the_byte() {
    let folder = folder("file");
    let arguments = ["--lang", "ts", "shop.json", "math.json", "-o", "ops.d.ts"];
    let check = [&arguments[..], &["--check"]].concat();
    let missing = ops(&folder, &check);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("ops.d.ts is not there"));

    let output = ops(&folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.join("ops.d.ts")).unwrap();
    assert!(ops_codegen::is_generated(text.as_bytes()));
    for wanted in [
        "    namespace math {\n      /** Gives content blocks, ",
        "function add(input: { a: number }): Promise<",
        "function pets_show(input: { id: number }): Promise<Pet>;",
        "\"math.add\": Call<typeof ops.math.add>;\n  \"shop.pets/show\": Call<typeof ops.shop.pets_show>;",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(ops(&folder, &check).status.success());

    // The same on standard output.
    let printed = ops(&folder, &["--lang", "ts", "shop.json", "math.json", "-o", "-"]);
    assert_eq!(String::from_utf8_lossy(&printed.stdout), text);

    // Another layout is a difference, and the file is written anew.
    std::fs::write(folder.join("ops.d.ts"), text.replace("{ a: number }", "{ a:number }")).unwrap();
    let changed = ops(&folder, &check);
    assert_eq!(changed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&changed.stderr).contains("ops.d.ts differs"));
    assert!(ops(&folder, &arguments).status.success());
    assert_eq!(std::fs::read_to_string(folder.join("ops.d.ts")).unwrap(), text);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn only_chosen_operations_are_written_and_foreign_files_stay() {
    let folder = folder("choice");
    let output = ops(&folder, &["--lang", "ts", "shop.json", "math.json", "--include", "math.*", "-o", "-"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("ops.math.add") && !text.contains("pets_show"), "{text}");

    std::fs::write(folder.join("own.ts"), "export const own = 1;").unwrap();
    let refused = ops(&folder, &["--lang", "ts", "shop.json", "-o", "own.ts"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("was not written by this command"));
    assert_eq!(std::fs::read_to_string(folder.join("own.ts")).unwrap(), "export const own = 1;");
    assert!(ops(&folder, &["--lang", "ts", "shop.json", "-o", "own.ts", "--force"]).status.success());

    for output in [&["-o", "."][..], &["-o", "ops.rs"], &[]] {
        let usage = ops(&folder, &[&["--lang", "ts", "shop.json"][..], output].concat());
        assert_eq!(usage.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&usage.stderr).contains("declarations are one file"), "{output:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A program of `ops run` has all operations, and calls them by these names.
#[test]
fn a_choice_changes_no_names() {
    let folder = folder("names");
    let get = |id: &str| {
        format!(r#"{{ "get": {{ "operationId": "{id}", "responses": {{ "204": {{ "description": "x" }} }} }} }}"#)
    };
    let paths = format!(r#"{{ "/a": {}, "/b": {} }}"#, get("user-keys"), get("user/keys"));
    let document = format!(r#"{{ "openapi": "3.1.0", "info": {{ "title": "x", "version": "1" }}, "paths": {paths} }}"#);
    std::fs::write(folder.join("admin.json"), document).unwrap();
    let config = "[documents.admin]\npath = 'admin.json'\ninclude = ['user/keys']\n";
    std::fs::write(folder.join("ops.toml"), config).unwrap();
    let name = |arguments: &[&str]| {
        let output = ops(&folder, &[&["--lang", "ts", "-o", "-"], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, rest) = text.split_once(r#""admin.user/keys": Call<typeof "#).unwrap_or_else(|| panic!("{text}"));
        rest.split_once('>').unwrap().0.to_owned()
    };
    let own = name(&["admin.json"]);
    assert!(own.starts_with("ops.admin.user_keys_"), "{own}");
    for arguments in [&["admin.json", "--include", "admin.user/keys"][..], &["ops.toml"]] {
        assert_eq!(name(arguments), own, "{arguments:?}");
    }
    for (name, is_there) in [(&*own, true), ("ops.admin.user_keys", false)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        std::fs::write(folder.join("script.js"), format!("await {name}()")).unwrap();
        let output = command.args(["run", "script.js", "--spec", "ops.toml"]).current_dir(&folder).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        // The document names no server, so no call succeeds.
        assert_eq!((output.status.code(), told.contains("there is no ")), (Some(1), !is_there), "{name}: {told}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Without its types, the client of the documentation is a program of JavaScript.
#[test]
fn the_client_reads_what_servers_answer() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops-runtime/src/typescript/client.ts");
    let client = std::fs::read_to_string(client).unwrap();
    let (_, body) = client.split_once("> {\n").unwrap();
    let answers = r#"
        const answers = [
            [200, '{"a":1}'], [202, ""], [204, ""], [502, "<html></html>"], [401, ""],
            [404, '{"title":"Not Found","detail":"no pet 7"}'], [400, '{"title":"Bad Request"}'],
        ];
        for (const [status, text] of answers) {
            globalThis.fetch = async () => new Response(text || null, { status });
            const told = call("shop.delete", { petId: 7 }).then(answer => JSON.stringify(answer), error => error.message);
            console.log(await told);
        }"#;
    let script = ["async function call(id, input) {\n", body, answers].concat();
    let output = Command::new("node").args(["--input-type=module", "-e", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wanted = "{\"a\":1}\nnull\nnull\nHTTP 502\nHTTP 401\nno pet 7\nBad Request\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
}

#[test]
fn the_file_stays_if_a_document_cannot_be_read() {
    let folder = folder("partial");
    let arguments = ["--lang", "ts", ".", "-o", "../partial.d.ts"];
    let from = folder.join("documents");
    std::fs::create_dir_all(&from).unwrap();
    for name in ["shop.json", "math.json"] {
        std::fs::rename(folder.join(name), from.join(name)).unwrap();
    }
    assert!(ops(&from, &arguments).status.success());
    let text = std::fs::read_to_string(folder.join("partial.d.ts")).unwrap();
    assert!(text.contains("namespace math") && text.contains("namespace shop"), "{text}");

    std::fs::write(from.join("shop.json"), "{ \"openapi\": \"3.1.0\", ").unwrap();
    for (more, told) in [(&[][..], "partial.d.ts was not written"), (&["--check"], "partial.d.ts was not compared")] {
        let output = ops(&from, &[&arguments[..], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains(told) && stderr.contains("shop.json") && !stderr.contains("differs"), "{stderr}");
        assert_eq!(std::fs::read_to_string(folder.join("partial.d.ts")).unwrap(), text);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
