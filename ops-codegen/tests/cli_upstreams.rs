//! What `ops serve` reads, and what it refuses to read: each test has its folder, and runs the program.

mod folder;

use std::net::TcpListener;

use folder::{Folder, SHOP};

#[test]
fn options_for_a_document_need_one() {
    let folder = Folder::new("for-one");
    folder.write("shop.yaml", SHOP);
    folder.write("mcp.json", r#"{ "mcpServers": { "x": { "command": "true" } } }"#);
    folder.write("gateway.toml", "[apis.shop]\nspec = 'shop.yaml'\nbase-url = 'http://x.test'\n");
    let options = [
        ["--base-url", "http://127.0.0.1:9"],
        ["--header", "X-Key: k"],
        ["--bearer-env", "NOT_SET"],
        ["--bearer-file", "shop.yaml"],
        ["--namespace", "till"],
    ];
    for option in options {
        for (sources, says) in [
            (&["--config", "gateway.toml"][..], "the command line names none: a file for `--config` has those"),
            (&["mcp.json"], "the command line names none"),
            (&["mcp.json", "--config", "gateway.toml", "--print-config"], "the command line names none"),
            (&["shop.yaml", "more/shop.yaml"], "there are several"),
        ] {
            folder.fails(2, &[&["serve"], sources, &option].concat(), &["are for one document, and", says]);
        }
    }
    // One document beside others that are none.
    let (_, told) = folder.good(&["serve", "shop.yaml", "--config", "gateway.toml", "--namespace", "till"]);
    assert!(told.contains("6 operations"), "{told}");
}

/// Serves a host that goes away at once, without calling anything; gives the status, and what was told.
fn served(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let (status, _, told) = folder.ops(&[&["serve"], arguments, &["--mock", "--mcp", "stdio"]].concat());
    (status, told)
}

#[test]
fn folders_below_are_served_as_well() {
    let folder = Folder::new("below");
    let tools = r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#;
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/v1/shop.yaml", SHOP);
    folder.write("apis/v2/more/maths.json", tools);
    folder.write("apis/.hidden/x.yaml", SHOP);
    let (status, told) = served(&folder, &["apis"]);
    assert_eq!((status, told.as_str()), (0, "7 operations, answered with examples; 0 diagnostics\n"));
    // By the names that `ops inspect` shows.
    let (shown, _) = folder.good(&["inspect", "apis"]);
    for id in ["shop.showPet", "v1_shop.showPet", "v2_more_maths.double"] {
        assert!(shown.contains(id), "{shown}");
        let (status, told) = served(&folder, &["apis", "--include", id]);
        assert!(status == 0 && told.starts_with("1 operation, "), "{id}: {told}");
    }
    // A document that cannot be read is one that is missing, as in the folder itself.
    folder.write("apis/v1/bad.yaml", "a: [");
    let (status, told) = served(&folder, &["apis"]);
    assert!(status == 3 && told.contains("error: apis/v1/bad.yaml: ") && told.contains("7 operations"), "{told}");
}

#[test]
fn namespaces_of_folders_do_not_collide_in_silence() {
    let folder = Folder::new("collide");
    for file in ["a/v1/shop.yaml", "b/v1/shop.yaml", "c/v1/shop.json", "c/v1/shop.yaml", "c/v1_x.yaml", "c/v1/x.yaml"] {
        folder.write(file, SHOP);
    }
    for (arguments, longer, operations) in [
        (&["a", "b"][..], &[("b/v1/shop.yaml", "v1_shop_2")][..], 6),
        (&["c"], &[("c/v1/shop.json", "v1_shop_json"), ("c/v1/shop.yaml", "v1_shop_yaml")], 12),
        (&["a", "--config", "gateway.toml"], &[("a/v1/shop.yaml", "v1_shop_2")], 6),
        (&["a", "servers.json"], &[("a/v1/shop.yaml", "v1_shop_2")], 3),
    ] {
        folder.write("gateway.toml", "[apis.V1_Shop]\nspec = 'a/v1/shop.yaml'\n");
        folder.write("servers.json", r#"{ "mcpServers": { "v1 shop": { "command": "/no/such/program" } } }"#);
        let (_, told) = served(&folder, arguments);
        for (file, namespace) in longer {
            assert!(told.contains(&format!("--> {file}\n")), "{arguments:?}: {told}");
            assert!(told.contains(&format!("this one has the namespace `{namespace}`")), "{arguments:?}: {told}");
            let (_, only) = served(&folder, &[arguments, &["--include", &format!("{namespace}.*")]].concat());
            assert!(only.contains("3 operations"), "{namespace}: {only}");
        }
        assert!(told.contains(&format!("{operations} operations")), "{arguments:?}: {told}");
    }
}

#[test]
fn what_is_no_document_is_told_and_left_out() {
    let folder = Folder::new("others");
    let shop = SHOP.replace("\"#/components/schemas/Pet\"", "\"parts/pet.yaml\"");
    folder.write("apis/shop.yaml", &shop);
    folder.write("apis/parts/pet.yaml", "type: object\nproperties: { owner: { $ref: owner.yaml } }\n");
    folder.write("apis/parts/owner.yaml", "type: object\nproperties: { name: { $ref: '../common.yaml#/x' } }\n");
    // A document of nothing but parts.
    folder.write(
        "apis/common.yaml",
        "openapi: 3.1.0\ninfo: { title: x, version: '1' }\npaths: {}\nx: { type: string }\n",
    );
    folder.write("apis/package.json", r#"{ "name": "x", "keywords": ["openapi"] }"#);
    folder.write("apis/spec.json", r#"{ "namespace": "a", "name": "b", "kind": "query", "inputSchema": {} }"#);
    let servers = |name: &str| {
        let own = serde_json::json!({ "command": "sh", "args": ["-c", format!("echo started > {name}")] });
        serde_json::json!({ "mcpServers": { name: own } }).to_string()
    };
    folder.write("apis/tool/mcp.json", &servers("below"));
    let (status, told) = served(&folder, &["apis"]);
    assert!(status == 0 && told.ends_with("3 operations, answered with examples; 0 diagnostics\n"), "{told}");
    for (file, says) in [
        ("apis/package.json", "neither an OpenAPI document nor a list of tools nor a configuration of MCP servers"),
        ("apis/spec.json", "an operation of a program"),
        ("apis/tool/mcp.json", "name the file itself to start them"),
    ] {
        assert!(told.contains(&format!("--> {file}\n")) && told.contains(says), "{file}: {told}");
    }
    // What a document refers to is its part.
    assert!(!told.contains("pet.yaml") && !told.contains("owner.yaml"), "{told}");
    assert!(!folder.0.join("below").exists(), "{told}");
    // Those in the folder itself are started, and those that are named.
    folder.write("apis/mcp.json", &servers("beside"));
    let (status, told) = served(&folder, &["apis", "apis/tool/mcp.json"]);
    assert!(status == 3 && told.contains("error: below: ") && told.contains("error: beside: "), "{status}: {told}");
    assert!(folder.0.join("below").exists() && folder.0.join("beside").exists(), "{told}");
    // What cannot be read may be a document.
    std::fs::write(folder.0.join("apis/latin.yaml"), b"openapi: 3.1.0\ninfo: { title: caf\xe9 }\n").unwrap();
    let (status, told) = served(&folder, &["apis", "--exclude", "nothing"]);
    assert!(status == 3 && told.contains("error: apis/latin.yaml: "), "{status}: {told}");
    // Packages bring documents of their own.
    std::fs::remove_file(folder.0.join("apis/latin.yaml")).unwrap();
    std::fs::remove_file(folder.0.join("apis/mcp.json")).unwrap();
    folder.write("apis/node_modules/x/openapi.yaml", "openapi: 3.1.0\ninfo: [");
    // Nobody can read a folder whose path is too long.
    if cfg!(target_os = "linux") {
        let long = |from: &str| (0..9).fold(folder.0.join(from), |path, _| path.join("x".repeat(250)));
        std::fs::create_dir_all(long("apis/far")).unwrap();
        std::fs::create_dir_all(long("farther")).unwrap();
        std::fs::rename(folder.0.join("farther"), long("apis/far").join("farther")).unwrap();
    }
    let (status, told) = served(&folder, &["apis"]);
    assert!(status == 0 && told.contains("3 operations") && !told.contains("node_modules"), "{status}: {told}");
    assert_eq!(told.matches("the folder cannot be read").count(), usize::from(cfg!(target_os = "linux")), "{told}");
    // A folder without documents.
    folder.write("none/package.json", "{}");
    folder.fails(2, &["serve", "none"], &["none/package.json", "there are no operations to serve"]);
}

#[test]
fn documents_without_a_server_are_told() {
    let folder = Folder::new("no-server");
    folder.write("shop.yaml", SHOP);
    folder.write("till.yaml", &SHOP.replacen("paths:", "servers: [{ url: /api/v3 }]\npaths:", 1));
    folder.write("gateway.toml", "[apis.Shop]\nspec = 'shop.yaml'\nbase-url = 'http://x.test'\n");
    let none = "warning: `shop`: the document names no server, for 3 operations, and calls of them fail";
    let relative = "warning: `till`: the document names the server `/api/v3`, which has no host, for 3 operations";
    let base = ["--base-url", "http://x.test"];
    for (arguments, says) in [
        (&["shop.yaml", "till.yaml"][..], &[none, relative, "by `--base-url`, or by `base-url` in a file"][..]),
        (&["shop.yaml", "--print-config"], &[none]),
        (&["till.yaml", "--config", "gateway.toml"], &[relative]),
        (&["till.yaml", "--config", "gateway.toml", base[0], base[1]], &[]),
        (&["till.yaml", base[0], base[1], "--print-config"], &[]),
        (&["shop.yaml", "--mock", "--mcp", "stdio"], &[]),
    ] {
        let (status, _, told) = folder.ops(&[&["serve"], arguments].concat());
        assert!(status == 0 && says.iter().all(|says| told.contains(says)), "{arguments:?}: {told}");
        assert_eq!(told.matches("and calls of them fail").count(), says.len().min(2), "{arguments:?}: {told}");
    }
}

#[test]
fn a_document_of_asyncapi_is_no_configuration() {
    let folder = Folder::new("asyncapi");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let servers = serde_json::json!({ "prod": { "url": url, "protocol": "http" } });
    folder.write("apis/shop.yaml", SHOP);
    let first = serde_json::json!({ "asyncapi": "2.6.0", "servers": servers, "channels": {} });
    let last = serde_json::json!({ "servers": servers, "channels": {}, "asyncapi": "2.6.0" });
    for document in [first, last] {
        folder.write("apis/events.json", &document.to_string());
        let (status, _, told) = folder.ops(&["serve", "apis"]);
        assert!(status == 0 && told.contains("3 operations") && told.contains("it is not served"), "{status}: {told}");
        for arguments in [&["serve", "apis/events.json"][..], &["call", "apis/events.json", "prod.x"]] {
            folder.fails(3, arguments, &["not an OpenAPI document"]);
        }
    }
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody asked for a request");
}

#[test]
fn callers_have_tokens_of_their_own() {
    let folder = Folder::new("one-token");
    folder.write("shop.yaml", SHOP);
    folder.write("ann", "t0ken");
    folder.write("bob", "t0ken\n");
    let callers =
        "[callers.ann]\ntoken = { file = 'ann' }\nscopes = ['admin']\n[callers.bob]\ntoken = { file = 'bob' }\n";
    folder.write("gateway.toml", &format!("[apis.shop]\nspec = 'shop.yaml'\n{callers}"));
    // At this address nobody can listen.
    let serve = ["serve", "--config", "gateway.toml", "--http", "256.0.0.1:1"];
    let told = folder.fails(2, &serve, &["`[callers.ann]` and `[callers.bob]` have one token"]);
    assert!(!told.contains("t0ken"), "{told}");
    folder.write("bob", "another");
    folder.fails(1, &serve, &["`256.0.0.1:1` cannot be listened at"]);
}
