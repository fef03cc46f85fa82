//! What the command `ops` says, and advises: each test has its folder, and runs the program.

mod folder;

use axum::Router;
use axum::http::StatusCode;
use folder::{Folder, SHOP};

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
    for options in [&["--mock"][..], &["--mcp", "stdio"], &["--print-config"]] {
        let serve = [&["serve", "ops.toml"], options].concat();
        folder.fails(2, &serve, &["`ops.toml` is no document: pass the file of a gateway by `--config`"]);
    }
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
    // Files of servers alone ask for it, and they take no `--bearer-env`.
    folder.write("mcp.json", r#"{ "mcpServers": { "o": { "url": "http://127.0.0.1:9/mcp", "auth": "oauth" } } }"#);
    let says = ["it asks for OAuth: write a token into the file, as `\"auth\": \"${TOKEN}\"`"];
    for (status, arguments) in
        [(1, &["call", "--config", "mcp.json", "--server", "o", "x"][..]), (3, &["serve", "mcp.json"])]
    {
        let told = folder.fails(status, arguments, &says);
        assert!(!told.contains("--bearer-env") && !told.contains("with_"), "{told}");
    }
    folder.write("loop.js", "while (true) {}");
    // Which limit ended it, the message says. A command without `--timeout` takes a minute.
    let start = std::time::Instant::now();
    let run = ["run", "loop.js", "--spec", "shop.yaml", "--timeout", "1"];
    let told = folder.fails(1, &run, &["more than 1s", "(`--timeout`)"]);
    assert!(!told.contains("Limits") && start.elapsed().as_secs() < 40, "{told}");
    for command in [
        &["call", "shop.yaml", "ping"][..],
        &["run", "loop.js", "--spec", "shop.yaml"],
        &["snapshot"],
        &["jobs", "queues"],
    ] {
        folder.fails(2, &[command, &["--timeout", "0"]].concat(), &["0 is not in 1.."]);
    }
}

/// A server that refuses each request for want of credentials.
fn refusing() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = Router::new().fallback(|| async { StatusCode::UNAUTHORIZED });
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await })
    });
    url
}

#[test]
fn a_server_without_credentials_says_what_to_set() {
    let folder = Folder::new("lack");
    let url = refusing();
    let option = "no credentials are set: pass `--bearer-env VAR`, with the token in that variable\n";
    for command in [&["call", "x"][..], &["inspect"], &["snapshot"]] {
        folder.fails(1, &[command, &["--url", &url]].concat(), &["HTTP 401: Unauthorized\n", option]);
        // With credentials that the server refuses, there is no such advice.
        let refused = folder.fails(1, &[command, &["--url", &url, "--header", "X-Key: k"]].concat(), &["HTTP 401"]);
        assert!(!refused.contains("no credentials"), "{refused}");
    }
    let servers = format!(r#"{{ "none": {{ "url": "{url}" }}, "wrong": {{ "url": "{url}", "auth": "t0ken" }} }}"#);
    folder.write("mcp.json", &format!(r#"{{ "mcpServers": {servers} }}"#));
    let call = |server: &str, says: &[&str]| folder.fails(1, &["call", "mcp.json", "x", "--server", server], says);
    let advice = "no credentials are set: write a token into the file, as `\"auth\": \"${TOKEN}\"`\n";
    call("none", &["`none`: ", "HTTP 401: Unauthorized\n", advice]);
    let refused = call("wrong", &["`wrong`: ", "HTTP 401"]);
    assert!(!refused.contains("no credentials"), "{refused}");
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
    // Of several patterns, each.
    folder.write("ops.toml", &format!("{list}include = [\"pong\"]\nexclude = [\"show\"]\n"));
    let told = folder.fails(2, &["generate"], &["matches `pong` (there is `ping`)", "matches `show`"]);
    assert!(told.contains("--> ops.toml:5:13\n") && told.contains("--> ops.toml:6:13\n"), "{told}");
    folder.write("ops.toml", &format!("{list}explicit_null = [\"adPet\"]\n"));
    folder.fails(2, &["generate"], &["no operation matches `adPet` (there is `addPet`)", "--> ops.toml:5:19\n"]);
    // An overlay that changes nothing is why there is nothing to rename.
    let overlay = "overlay: 1.1.0\nactions:\n  - target: $.components.shemas\n    update: { Toy: { type: object } }\n";
    folder.write("shop.overlay.yaml", overlay);
    let settings = "overlays = [\"shop.overlay.yaml\"]\nrename = { Toy = \"Plaything\" }\n";
    folder.write("ops.toml", &format!("{list}{settings}"));
    folder.fails(
        2,
        &["generate"],
        &[
            "error: `documents.shop`: the name `Plaything`: there is no type `Toy`",
            "--> ops.toml:6:19\n",
            "warning: the target matches nothing",
            "--> shop.overlay.yaml:3:5\n",
        ],
    );
}

#[test]
fn documents_that_cannot_be_read_are_all_told() {
    let folder = Folder::new("unread");
    folder.write("shop.yaml", SHOP);
    folder.write("bad.yaml", "a: [");
    let says = ["cannot read `none.yaml`", "--> bad.yaml:1:4"];
    folder.fails(3, &["generate", "none.yaml", "shop.yaml", "bad.yaml", "-o", "out"], &says);
    assert!(!folder.0.join("out").exists());
}

#[test]
fn a_check_of_several_snapshots_tells_of_all() {
    let folder = Folder::new("check-all");
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    folder.write("tools/a.json", r#"{"tools":[{"name":"treble","inputSchema":{"type":"object"}}]}"#);
    let tools = folder.0.join("maths.json");
    let server = serde_json::json!({
        "command": env!("CARGO_BIN_EXE_ops"),
        "args": ["serve", tools, "--mock", "--mcp", "stdio", "--tools", "all"],
    });
    folder
        .write("mcp.json", &serde_json::json!({ "mcpServers": { "a": server, "b": server, "c": server } }).to_string());
    let check = ["snapshot", "--config", "mcp.json", "-o", "tools", "--check"];
    folder.fails(3, &check, &["break callers", "tools/b.json", "tools/c.json"]);
    // Of one, there is no more to tell than that.
    let one = folder.fails(3, &[&check[..], &["--server", "b"]].concat(), &["the snapshot cannot be read"]);
    assert!(!one.contains("see above"), "{one}");
}

#[test]
fn an_update_of_several_documents_tells_of_all() {
    let folder = Folder::new("update-all");
    folder.write("from/shop.yaml", SHOP);
    folder.write("ops.toml", "[documents.list]\npath = \"list.yaml\"\nsource = \"from/list.toml\"\n");
    folder.fails(2, &["update"], &["`from/list.toml` names documents, and is none"]);
    folder.good(&["add", "from/shop.yaml"]);
    folder.write("from/shop.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    let says = ["`from/list.toml` names documents, and is none", "1 break", "run the command without `--check`"];
    folder.fails(1, &["update", "--check"], &says);
    folder.fails(1, &["update"], &says[..2]);
    assert_eq!(folder.read("shop.yaml"), folder.read("from/shop.yaml"));
}

#[test]
fn properties_are_no_options() {
    let folder = Folder::new("no-options");
    folder.write("shop.yaml", SHOP);
    let call = ["call", "shop.yaml", "showPet"];
    let tip = "tip: to give a property of the input, write `petId=VALUE`";
    let told = folder.fails(2, &[&call[..], &["--petId", "7"]].concat(), &["unexpected argument '--petId'", tip]);
    // What is behind `--` is the command of a server.
    assert!(!told.contains("-- --petId"), "{told}");
    let told = folder.fails(2, &["inspect", "shop.yaml", "-o", "x"], &["unexpected argument '-o'"]);
    assert!(!told.contains("tip:"), "{told}");
    for more in [&["--", "petId=7"][..], &["--", "--petId", "7"]] {
        folder.fails(2, &[&call[..], more].concat(), &["`shop.yaml` is a document", "`NAME=VALUE`"]);
    }
}

#[test]
fn documents_that_are_meant_are_named() {
    let folder = Folder::new("meant");
    folder.write("shop.yaml", SHOP);
    folder.fails(3, &["inspect", "shop.yml"], &["cannot read `shop.yml`", "did you mean `shop.yaml`?"]);
    folder.fails(3, &["call", "shop.yml", "ping"], &["did you mean `shop.yaml`?"]);
    folder.fails(3, &["inspect", "example.com/x.json"], &["did you mean `https://example.com/x.json`?"]);
    for page in ["<!doctype html>\n<title>Pets</title>", "<html><p>a: b\nc: {</p></html>"] {
        folder.write("page.json", page);
        folder.fails(3, &["inspect", "page.json"], &["it is a page of HTML", "name the document that the page shows"]);
    }
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    for versions in [["shop.yaml", "maths.json"], ["maths.json", "shop.yaml"]] {
        folder.fails(2, &[&["diff"][..], &versions].concat(), &["so they cannot be compared"]);
    }
}

#[test]
fn a_namespace_of_tools_and_other_operations_is_compared() {
    let folder = Folder::new("mixed");
    for (name, binding) in
        [("tool", r#"{ "type": "mcp", "tool": "tool", "output": "structured" }"#), ("other", r#"{ "type": "local" }"#)]
    {
        let spec = format!(
            r#"{{ "namespace": "shop", "name": "{name}", "version": "1", "type": "query", "description": "x",
                "inputSchema": {{ "type": "object" }}, "outputSchema": {{ "type": "object" }},
                "accessControl": {{ "requiredScopes": [] }}, "binding": {binding} }}"#
        );
        folder.write(&format!("specs/{name}.json"), &spec);
    }
    let (status, stdout, stderr) = folder.ops(&["diff", "specs", "specs"]);
    assert!(status == 0 && stderr.contains("no operation changed"), "{status}: {stdout}{stderr}");
}

#[test]
fn a_program_beside_a_document_that_cannot_be_read() {
    let folder = Folder::new("beside");
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/bad.yaml", "a: [");
    folder.write("program.js", "return 7");
    let (status, stdout, stderr) = folder.ops(&["run", "program.js", "--spec", "apis"]);
    assert_eq!((status, stdout.as_str()), (3, "7\n"), "{stderr}");
    assert!(stderr.contains("apis/bad.yaml:1:4") && stderr.contains("nothing was made of a file"), "{stderr}");
    folder.fails(3, &["call", "apis", "shwPet"], &["apis/bad.yaml:1:4", "did you mean `showPet`?"]);
}

#[test]
fn names_that_differ_in_case_are_one() {
    let folder = Folder::new("case");
    folder.write("from/s.yaml", SHOP);
    folder.good(&["add", "from/s.yaml"]);
    folder.fails(2, &["add", "from/s.yaml", "--name", "S"], &["has a document `s` already, at `s.yaml`"]);
    let document = |name: &str, file: &str| format!("[documents.{name}]\npath = \"{file}\"\n");
    let list = document("s", "s.yaml") + &document("S", "from/s.yaml");
    folder.write("ops.toml", &format!("[generate]\nout = \"out\"\n{list}"));
    let told = folder.fails(2, &["generate"], &["have the namespace", "rename one of the documents in `ops.toml`"]);
    assert!(!told.contains("--namespace"), "{told}");
}

#[test]
fn a_text_of_which_no_digest_is_known_is_kept() {
    let folder = Folder::new("no-digest");
    let entry = "[documents.shop]\npath = \"shop.yaml\"\nsource = \"from.yaml\"\n";
    let mine = format!("{SHOP}# mine\n");
    for (file, text) in [("from.yaml", SHOP), ("shop.yaml", &mine), ("ops.toml", entry)] {
        folder.write(file, text);
    }
    let what = "`shop.yaml` may have been changed since it was fetched, for it has no `sha256` in `ops.toml`";
    let told = folder.fails(1, &["update"], &[]);
    assert_eq!(told, format!("error: {what}: pass `--force` to overwrite it\n"));
    folder.fails(1, &["update", "--check"], &[what, "with `--force` to overwrite what was changed here"]);
    assert_eq!((folder.read("shop.yaml"), folder.read("ops.toml")), (mine, entry.to_owned()));
    folder.good(&["update", "--force"]);
    assert_eq!(folder.read("shop.yaml"), SHOP);
    assert!(folder.read("ops.toml").starts_with(&format!("{entry}sha256 = \"")), "{}", folder.read("ops.toml"));
}
