//! What the command `ops` says, and advises: each test has its folder, and runs the program.

use std::path::{Path, PathBuf};
use std::process::Command;

const SHOP: &str = r##"openapi: 3.1.0
info: { title: Pet shop, version: 1.0.0 }
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      parameters:
        - { name: petId, in: path, required: true, schema: { type: integer } }
        - { name: limit, in: query, schema: { type: integer } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /pets:
    post:
      operationId: addPet
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /ping:
    get: { operationId: ping, responses: { 204: { description: x } } }
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: integer }
        name: { type: string }
        tags: { type: object, additionalProperties: { type: string } }
        owner: { type: object, properties: { name: { type: string } } }
"##;

/// A folder of its own for a test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("messages-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The exit status and what was printed to standard output and standard error.
    fn ops(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        let output = command.args(arguments).current_dir(&self.0).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Runs a command that fails with this status and says all of this.
    #[track_caller]
    fn fails(&self, status: i32, arguments: &[&str], says: &[&str]) -> String {
        let (found, stdout, stderr) = self.ops(arguments);
        assert_eq!(found, status, "{arguments:?}: {stdout}{stderr}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} does not say `{part}`: {stderr}");
        }
        stderr
    }

    #[track_caller]
    fn good(&self, arguments: &[&str]) -> (String, String) {
        let (status, stdout, stderr) = self.ops(arguments);
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        (stdout, stderr)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_list_of_documents_is_as_good_as_a_document() {
    let folder = Folder::new("lists");
    folder.write("shop.yaml", SHOP);
    folder.write("bank.yaml", SHOP);
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    let named = |name: &str, file: &str| format!("[documents.{name}]\npath = \"{file}\"\n");
    let list = named("shop", "shop.yaml") + &named("bank", "bank.yaml") + &named("maths", "maths.json");
    folder.write("ops.toml", &list);
    let base = ["--base-url", "http://127.0.0.1:9"];
    let call = |status: i32, operation: &str, says: &[&str]| {
        folder.fails(status, &[&["call", "ops.toml", operation, "petId=1"][..], &base].concat(), says);
    };
    call(1, "bank.showPet", &["bank.showPet", "127.0.0.1:9"]);
    call(2, "showPet", &["several operations are called `showPet`: did you mean `shop.showPet` or `bank.showPet`?"]);
    call(2, "shwPet", &["`ops.toml` has no operation `shwPet`", "`showPet`"]);
    call(2, "double", &["`maths.double` is a tool of an MCP server"]);
    folder.fails(2, &["inspect", "ops.toml", "showPet"], &["several operations are called `showPet`"]);
    folder.write("apis/shop.yaml", SHOP);
    folder.fails(1, &[&["call", "apis", "showPet", "petId=1"][..], &base].concat(), &["shop.showPet", "127.0.0.1:9"]);
    folder.write("program.js", "return await ops.bank.showPet({ petId: 1 })");
    let run = ["run", "program.js", "--spec", "ops.toml"];
    folder.fails(2, &[&run[..], &base].concat(), &["name one document with them"]);
    let url = "servers: [{ url: \"http://127.0.0.1:9\" }]\npaths:";
    folder.write("bank.yaml", &SHOP.replacen("paths:", url, 1));
    folder.fails(1, &run, &["warning: `ops.toml`: of its operations, 1 are of no HTTP API", "127.0.0.1:9"]);
    folder.fails(2, &["add", "ops.toml", "--name", "x"], &["`ops.toml` names documents, and is none"]);
}

#[test]
fn advice_is_about_options_that_there_are() {
    let folder = Folder::new("advice");
    folder.write("shop.yaml", SHOP);
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let call = ["call", "shop.yaml", "ping", "--base-url", &url, "--timeout", "1"];
    let told = folder.fails(1, &call, &["within 1s: raise `--timeout`"]);
    assert!(!told.contains("with_"), "{told}");
    let told = folder.fails(1, &["snapshot", "--url", &url, "--timeout", "1"], &["`--timeout`"]);
    assert!(!told.contains("with_"), "{told}");
    let told = folder.fails(1, &["call", "shop.yaml", "ping"], &["no base URL is set", "pass `--base-url`"]);
    assert!(!told.contains("with_"), "{told}");
    folder.write("loop.js", "while (true) {}");
    let start = std::time::Instant::now();
    let run = ["run", "loop.js", "--spec", "shop.yaml", "--timeout", "1"];
    let told = folder.fails(1, &run, &["more than 1s", "(`--timeout`)"]);
    assert!(!told.contains("Limits") && start.elapsed().as_secs() < 8, "{told}");
    for command in [
        &["call", "shop.yaml", "ping"][..],
        &["run", "loop.js", "--spec", "shop.yaml"],
        &["snapshot"],
        &["jobs", "queues"],
    ] {
        folder.fails(2, &[command, &["--timeout", "0"]].concat(), &["0 is not in 1.."]);
    }
}

#[test]
fn a_check_advises_what_the_command_does() {
    let folder = Folder::new("check-advice");
    folder.write("shop.yaml", SHOP);
    folder.write("mine.rs", "pub fn mine() {}\n");
    folder.fails(1, &["generate", "shop.yaml", "-o", "mine.rs", "--check"], &["mine.rs differs", "with `--force`"]);
    folder.write("old.rs", "// @generated by ops-codegen; changes are lost when it is generated again.\n");
    let told = folder.fails(1, &["generate", "shop.yaml", "-o", "old.rs", "--check"], &["without `--check` to write"]);
    assert!(!told.contains("--force"), "{told}");
    for lang in ["rust", "ts"] {
        let (status, stdout, stderr) = folder.ops(&["generate", "shop.yaml", "-o", "-", "--check", "--lang", lang]);
        assert!(status == 2 && stdout.is_empty() && stderr.contains("`--check` needs a file"), "{stdout}{stderr}");
    }
    folder.write("source.yaml", SHOP);
    folder.good(&["add", "source.yaml", "--name", "pets"]);
    folder.write("pets.yaml", &SHOP.replace("Pet shop", "My shop"));
    folder.fails(1, &["update", "--check"], &["`pets.yaml` was changed since it was fetched", "with `--force`"]);
    folder.good(&["update", "--force"]);
    folder.write("source.yaml", &SHOP.replace("Pet shop", "New shop"));
    let told = folder.fails(1, &["update", "--check"], &["without `--check` to write what is new"]);
    assert!(!told.contains("--force"), "{told}");
}

#[test]
fn a_file_that_is_none_of_rust_is_no_folder() {
    let folder = Folder::new("endings");
    folder.write("shop.yaml", SHOP);
    folder.fails(2, &["generate", "shop.yaml", "-o", "out.ts"], &["did you mean `--lang ts`?"]);
    folder.fails(
        2,
        &["generate", "shop.yaml", "-o", "out.txt"],
        &["`out.txt` is no name of a module of Rust", "`/` for a folder"],
    );
    assert!(!folder.0.join("out.ts").exists() && !folder.0.join("out.txt").exists());
    folder.good(&["generate", "shop.yaml", "-o", "out.v1/"]);
    folder.good(&["generate", "shop.yaml", "-o", "out.v1"]);
    assert!(folder.0.join("out.v1/shop.rs").exists());
    folder.good(&["generate", "shop.yaml", "-o", "out.d.ts", "--lang", "ts"]);
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let folder = Folder::new("options");
    folder.write("shop.yaml", SHOP);
    folder.write("servers.json", r#"{ "mcpServers": { "a": { "command": "none" } } }"#);
    let none = "have no use here";
    for credentials in [["--bearer-env", "UNSET"], ["--bearer-file", "none"], ["--header", "bad"]] {
        for (words, says) in [
            (&["inspect", "shop.yaml"][..], "`ops add`"),
            (&["inspect", "shop.yaml", "ping"], "`ops add`"),
            (&["inspect", "servers.json"], "the file has those of its servers"),
            (&["inspect", "--config", "servers.json"], "the file has those of its servers"),
            (&["call", "servers.json", "a.b"], "the file has those of its servers"),
        ] {
            folder.fails(2, &[words, &credentials].concat(), &[none, says]);
        }
        folder.fails(
            2,
            &[&["snapshot"], &credentials[..], &["--", "none"]].concat(),
            &[none, "a program takes its own"],
        );
        // They are of the call that is not made.
        folder.good(&[&["call", "shop.yaml", "ping"], &credentials[..], &["--help"]].concat());
    }
    for words in [&["inspect", "shop.yaml"][..], &["call", "shop.yaml", "ping"]] {
        folder.fails(2, &[words, &["--server", "a"]].concat(), &["`--server` names a server", "`shop.yaml` is none"]);
    }
}

#[test]
fn messages_say_it_once_and_name_what_is_meant() {
    let folder = Folder::new("messages");
    folder.write("shop.yaml", SHOP);
    folder.write("empty.yaml", "");
    folder.write("bad.yaml", "a: [");
    folder.write("nothing/readme.md", "no document");
    for command in [&["inspect"][..], &["call"], &["run", "x.js", "--spec"], &["diff", "shop.yaml"]] {
        folder.write("x.js", "return 1");
        let line =
            |file: &'static str| [command, &[file], if command[0] == "call" { &["x"][..] } else { &[] }].concat();
        let status = if command[0] == "diff" { 2 } else { 3 };
        let told = folder.fails(status, &line("none.yaml"), &["cannot read `none.yaml`"]);
        assert_eq!(told.matches("none.yaml").count(), 1, "{command:?}: {told}");
        let told = folder.fails(status, &line("empty.yaml"), &["not an OpenAPI document: it is empty\n"]);
        assert_eq!(told.matches("empty.yaml").count(), 1, "{command:?}: {told}");
        let told = folder.fails(status, &line("bad.yaml"), &["--> bad.yaml:1:"]);
        assert_eq!(told.matches("bad.yaml").count(), 1, "{command:?}: {told}");
    }
    folder.write("old.yaml", "swagger: '1.2'");
    let told = folder.ops(&["inspect", "old.yaml"]).2;
    assert_eq!(folder.fails(3, &["call", "old.yaml", "x"], &["= at /swagger", "= convert the document"]), told);
    folder.fails(2, &["inspect", "nothing"], &["there is no document to generate from in `nothing`"]);
    let base = ["--base-url", "http://127.0.0.1:9"];
    folder.fails(2, &[&["call", "shop.yaml", "showPet"][..], &base].concat(), &["is invalid: `petId` is missing\n"]);
    let told = folder.fails(
        2,
        &[&["call", "shop.yaml", "addPet", "body.id=1"][..], &base].concat(),
        &["`body.name` is missing"],
    );
    assert!(!told.contains("expected required"), "{told}");
    folder.fails(2, &["inspect", "shop.yaml", "ping", "--include", "showPet"], &["`ping` is left out by `--include`"]);
    folder.fails(2, &["inspect", "shop.yaml", "pong", "--include", "showPet"], &["has no operation `pong`"]);
    folder.fails(2, &["generate", "shop.yaml", "shop.yaml", "-o", "x"], &["`shop.yaml` is named twice"]);
    folder.write("apis/shop.yaml", SHOP);
    let told =
        folder.fails(2, &["generate", "shop.yaml", "apis/shop.yaml", "-o", "x"], &["one by one with `--namespace`"]);
    assert!(!told.contains("of its own"), "{told}");
    // What was done is said.
    let generate = ["generate", "shop.yaml", "-o", "out"];
    assert_eq!(folder.good(&generate).1, "wrote out/shop.rs\n3 operations\n");
    assert_eq!(folder.good(&generate).1, "all files are up to date\n3 operations\n");
    let check = [&generate[..], &["--check"]].concat();
    assert_eq!(folder.good(&check).1, "all files are up to date\n3 operations\n");
    assert_eq!(folder.good(&["inspect", "shop.yaml"]).1, "3 operations\n");
}

#[test]
fn settings_that_fit_nothing_have_places() {
    let folder = Folder::new("settings");
    folder.write("shop.yaml", SHOP);
    let list = "[generate]\nout = \"out\"\n[documents.shop]\npath = \"shop.yaml\"\n";
    folder.write("ops.toml", &format!("{list}include = [\"ping\", \"pong\"]\n"));
    folder.fails(2, &["generate"], &["error: `documents.shop`: no operation matches `pong`", "--> ops.toml:5:21\n"]);
    folder.write("ops.toml", &format!("{list}rename = {{ Nope = \"X\" }}\ntypes = {{ Nix = \"crate::Y\" }}\n"));
    let told = folder.fails(2, &["generate"], &["there is no type `Nope`", "there is no schema `Nix`"]);
    for place in ["--> ops.toml:5:20\n", "--> ops.toml:6:18\n"] {
        assert!(told.contains(place), "{place}: {told}");
    }
    assert_eq!(told.matches("error: ").count(), 2, "{told}");
}
