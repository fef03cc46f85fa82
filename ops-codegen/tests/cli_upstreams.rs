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
    // Alone, it is shown with its line, as other commands show it.
    for more in [&["--print-config"][..], &[]] {
        let told = folder.fails(3, &[&["serve", "apis/v1/bad.yaml"], more].concat(), &["--> apis/v1/bad.yaml:1:4\n"]);
        assert!(told.contains("1 | a: [") && told.matches("bad.yaml").count() == 1, "{told}");
    }
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
fn references_lead_through_the_whole_folder() {
    let folder = Folder::new("through");
    let content = "{ application/json: { schema: { type: object, properties: { name: { type: string } } } } }";
    folder.write("apis/common/bodies.yaml", &format!("Pet: {{ required: true, content: {content} }}\n"));
    let tenant = "Tenant: { name: tenant, in: header, required: true, schema: { type: string } }\n";
    folder.write("apis/common/params.yaml", tenant);
    folder.write(
        "apis/v1/shop.yaml",
        "openapi: 3.1.0\ninfo: { title: x, version: '1' }\npaths:\n  /pets:\n    post:\n      operationId: addPet\n      \
         requestBody: { $ref: '../common/bodies.yaml#/Pet' }\n      \
         parameters: [{ $ref: '../common/params.yaml#/Tenant' }]\n      responses: { 204: { description: x } }\n",
    );
    let (status, told) = served(&folder, &["apis"]);
    assert_eq!((status, told.as_str()), (0, "1 operation, answered with examples; 0 diagnostics\n"));
    let (status, _, told) = folder.ops(&["serve", "apis", "--base-url", "http://x.test"]);
    assert_eq!((status, told.as_str()), (0, "1 operation; 0 diagnostics\n"));
    // A document that is named itself stays in its own folder, and what it lacks is told.
    let (status, told) = served(&folder, &["apis/v1/shop.yaml"]);
    let lacking = " diagnostics: `ops inspect` shows them\n";
    assert!(status == 0 && told.starts_with("1 operation, ") && told.ends_with(lacking), "{told}");
}

#[test]
fn documents_without_a_server_are_told() {
    let folder = Folder::new("no-server");
    folder.write("shop.yaml", SHOP);
    folder.write("till.yaml", &SHOP.replacen("paths:", "servers: [{ url: /api/v3 }]\npaths:", 1));
    folder.write("gateway.toml", "[apis.Shop]\nspec = 'shop.yaml'\nbase-url = 'http://x.test'\n");
    let none = "warning: `shop`: the document names no server, for 3 operations, and calls of them fail";
    let relative = "warning: `till`: the document names the server `/api/v3`, which has no host, for 3 operations";
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    let snapshot =
        "warning: `maths`: a snapshot has no server, for 1 operation, and calls of it fail: serve a configuration";
    let base = ["--base-url", "http://x.test"];
    let (_, _, told) = folder.ops(&["serve", "maths.json"]);
    assert!(told.starts_with(snapshot) && told.ends_with("1 operation; 0 diagnostics\n"), "{told}");
    assert!(folder.good(&["serve", "maths.json", "--print-config"]).1.starts_with(snapshot));
    assert!(!folder.good(&["serve", "maths.json", "--mock", "--mcp", "stdio"]).1.contains(snapshot));
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
fn wrong_options_are_no_unreadable_documents() {
    let folder = Folder::new("options");
    folder.write("shop.yaml", SHOP);
    folder.write("other.yaml", SHOP);
    let apis = |own: &str| format!("[apis.other]\nspec = 'other.yaml'\n[apis.shop]\nspec = 'shop.yaml'\n{own}\n");
    let base_url = "the base URL is not an absolute URL, such as `https://api.example.com/v1`: ";
    let namespace = "`a.b` is no namespace: use letters, digits, `_` and `-`";
    for (arguments, file, says) in [
        (&["shop.yaml", "--base-url", "zzz"][..], String::new(), format!("error: {base_url}")),
        (&["shop.yaml", "--base-url", "zzz", "--print-config"], String::new(), format!("error: {base_url}")),
        (&["shop.yaml", "--header", "Content-Length: 1"], String::new(), "error: ".to_owned()),
        (&["shop.yaml", "--namespace", "a.b"], String::new(), format!("error: {namespace}")),
        (&["shop.yaml", "--namespace", "a.b", "--mock"], String::new(), format!("error: {namespace}")),
        (&["shop.yaml", "--namespace", ""], String::new(), "error: `` is no namespace".to_owned()),
        // Another API is good.
        (&["--config", "x.toml"], apis("base-url = 'zzz'"), format!("error: `x.toml`, `apis.shop`: {base_url}")),
        (
            &["--config", "x.toml", "--print-config"],
            apis("[apis.\"a.b\"]\nspec = 'shop.yaml'"),
            format!("error: `x.toml`, `apis.a.b`: {namespace}"),
        ),
    ] {
        folder.write("x.toml", &file);
        let told = folder.fails(2, &[&["serve"], arguments].concat(), &[&says]);
        assert!(told.starts_with("error: ") && !told.contains("-->"), "{arguments:?}: {told}");
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
fn a_document_starts_no_program() {
    let folder = Folder::new("evil");
    let touch = serde_json::json!({ "x": { "command": "touch", "args": ["started"] } });
    let paths = serde_json::json!({ "/a": { "get": { "operationId": "a", "responses": {} } } });
    let info = serde_json::json!({ "title": "Pets", "version": "1" });
    let first = serde_json::json!({ "openapi": "3.1.0", "info": info, "paths": paths, "servers": touch });
    let later = serde_json::json!({ "info": info, "openapi": "3.1.0", "paths": paths, "servers": touch });
    let unversioned = serde_json::json!({ "servers": touch, "info": info, "paths": paths });
    let events = serde_json::json!({ "asyncapi": "3.0.0", "info": info, "channels": {}, "mcpServers": touch });
    let tools = serde_json::json!({ "tools": [{ "name": "a", "inputSchema": {} }], "mcpServers": touch });
    for (text, key, list) in [
        (first.to_string(), "openapi", "servers"),
        (later.to_string(), "openapi", "servers"),
        (format!("\u{feff}{first}"), "openapi", "servers"),
        (format!("// Pets\n{later}"), "openapi", "servers"),
        // With a comment, too, its members count, in whichever way their names are written.
        (format!("// Pets\n{unversioned}"), "info", "servers"),
        (format!("// Pets\n{}", later.to_string().replace("openapi", r"open\u0061pi")), "openapi", "servers"),
        (unversioned.to_string(), "info", "servers"),
        (events.to_string(), "asyncapi", "mcpServers"),
        (tools.to_string(), "tools", "mcpServers"),
    ] {
        folder.write("apis/evil.json", &text);
        let says = format!(
            "may be a document, by its `{key}`, and a configuration of MCP servers, by its `{list}`, whose commands would run"
        );
        for arguments in [
            &["inspect", "apis/evil.json"][..],
            &["inspect", "apis/evil.json", "a"],
            &["call", "apis/evil.json", "a"],
            &["call", "apis/evil.json", "a", "--help"],
            &["serve", "apis/evil.json"],
            &["serve", "apis/evil.json", "--mock", "--mcp", "stdio"],
            &["serve", "apis/evil.json", "--print-config"],
        ] {
            folder.fails(2, arguments, &[&format!("`apis/evil.json` {says}")]);
        }
        served(&folder, &["apis"]);
        folder.ops(&["generate", "apis/evil.json", "-o", "-"]);
        assert!(!folder.0.join("started").exists(), "{text}");
    }
    // Without what is of a document, its commands run, wherever else its words are.
    let comment = "// As in `\"openapi\": {}`.";
    let env = serde_json::json!({ "openapi": { "command": "touch", "args": ["started"], "env": { "paths": "x" } } });
    let commented = format!("{comment}\n{}", serde_json::json!({ "servers": env }));
    let server = r#"{ "command": "touch", "args": ["started"], "env": { "openapi": "https://x" } }"#;
    let of_editors = format!("{{ \"servers\": {{ \"openapi-mcp\": {server}, // As editors write it.\n}},\n}}");
    for (text, name) in [(commented, "openapi"), (of_editors, "openapi-mcp")] {
        folder.write("mcp.json", &text);
        folder.fails(1, &["inspect", "mcp.json"], &[&format!("`{name}`: ")]);
        std::fs::remove_file(folder.0.join("started")).unwrap();
    }
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
