//! The builder as a build script meets it.

use std::path::{Path, PathBuf};
use std::process::Command;

use ops_codegen::{Builder, Error, Generator};
use ops_runtime::spec::Severity;

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Shop, version: 1.0.0 }
paths:
  /pets:
    get:
      operationId: listPets
      parameters: [{ name: limit, in: query, schema: { type: integer, default: many } }]
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "types.yaml#/Pets" } } } } }
"##;

const TYPES: &str = "Pets: { type: array, items: { type: string } }";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.v1.yaml"), DOCUMENT).unwrap();
    std::fs::write(folder.join("types.yaml"), TYPES).unwrap();
    folder
}

/// What tells `include_operations!` that there is this module.
fn included(module: &str) -> [String; 5] {
    [
        "cargo:rustc-check-cfg=cfg(ops_modules)".to_owned(),
        "cargo:rustc-check-cfg=cfg(ops_module, values(any()))".to_owned(),
        "cargo:rustc-cfg=ops_modules".to_owned(),
        format!("cargo:rustc-cfg=ops_module=\"{module}\""),
        format!("cargo:rustc-env=OPS_MODULES=`{module}`"),
    ]
}

#[test]
fn a_build_script_prints_what_cargo_needs_and_nothing_else() {
    if let Some(folder) = std::env::var_os("OPS_BUILD") {
        println!("<<");
        Builder::new().openapi(Path::new(&folder).join("shop.v1.yaml")).build().unwrap();
        println!(">>");
        return;
    }
    let folder = folder("script");
    let out = folder.join("out");
    let build = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "a_build_script_prints_what_cargo_needs_and_nothing_else";
        let command = command.args([name, "--exact", "--nocapture"]).env("OPS_BUILD", &folder).env("OUT_DIR", &out);
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines = output.lines().skip_while(|line| !line.ends_with("<<")).skip(1).take_while(|line| *line != ">>");
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let lines = build();
    let rerun = |name: &str| format!("cargo:rerun-if-changed={}", folder.join(name).display());
    assert_eq!(lines[..2], [rerun("shop.v1.yaml"), rerun("types.yaml")]);
    assert_eq!(lines[2..7], included("shop"));
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert!(lines[7].starts_with("cargo:warning=") && lines[7].contains("\"many\""), "{lines:?}");

    let file = out.join("shop.rs");
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(build(), lines);
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), written, "unchanged output is not touched");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_document_tells_cargo_nothing() {
    if let Some(folder) = std::env::var_os("OPS_BUILD") {
        println!("<<");
        let _ = Builder::new().openapi(Path::new(&folder).join("bad.json")).build();
        println!(">>");
        return;
    }
    let folder = folder("told");
    let bad = r"\ncargo:rustc-env=A=B\r\ncargo::error=x\u001b[2J\u202e\u2028";
    let document = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"t","version":"1"}},"paths":{{"/{bad}":{{"{bad}":1,"get":{{"responses":{{"{bad}":{{}}}}}}}}}}}}"#
    );
    std::fs::write(folder.join("bad.json"), document).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.args(["a_document_tells_cargo_nothing", "--exact", "--nocapture"]);
    let output = command.env("OPS_BUILD", &folder).env("OUT_DIR", folder.join("out")).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (_, printed) = output.split_once("<<\n").unwrap();
    let (printed, _) = printed.split_once(">>\n").unwrap();
    let included = included("bad");
    let is_ours = |line: &str| {
        let is_told = line.starts_with("cargo:warning=") || line.starts_with("cargo:rerun-if-changed=");
        is_told || included.iter().any(|ours| ours == line)
    };
    assert!(printed.lines().count() > 2 && printed.lines().all(is_ours), "{printed}");
    let is_bad = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{2028}' | '\u{202e}');
    assert!(!printed.contains(is_bad), "{printed:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_documents_have_their_own_namespaces() {
    let folder = folder("several");
    let shop = folder.join("shop.v1.yaml");
    let both = Builder::new().openapi(&shop).openapi(&shop).with_namespace("other").with_out_dir(folder.join("out"));
    both.build().unwrap();
    let other = std::fs::read_to_string(folder.join("out/other.rs")).unwrap();
    assert!(other.contains("\"other.listPets\"") && folder.join("out/shop.rs").exists());
    let error = Builder::new().openapi(&shop).openapi(&shop).generate().unwrap_err();
    assert!(matches!(error, Error::Settings(_)) && error.to_string().contains("`shop`"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn errors_say_where() {
    let error = Builder::new().openapi("no/such.yaml").generate().unwrap_err();
    assert!(error.to_string().contains("no/such.yaml"), "{error}");
    let error = Builder::new().openapi("https://shop.test/api.yaml").generate().unwrap_err();
    assert!(error.to_string().contains("is no file: `ops add https://shop.test/api.yaml` fetches it"), "{error}");
    for namespace in ["", "a.b", "../x", "a b"] {
        let error = Builder::new().openapi("x.yaml").with_namespace(namespace).generate().unwrap_err();
        assert!(matches!(error, Error::Settings(_)), "{namespace}: {error}");
    }
}

#[test]
fn what_is_said_of_no_document_is_told() {
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/quickstart/shop.yaml");
    let early = Builder::new().with_namespace("other").with_server().openapi(&shop);
    let error = early.generate().unwrap_err();
    assert!(matches!(error, Error::Settings(_)), "{error}");
    assert!(
        error.to_string().starts_with("before any document, there is nothing for `with_namespace`, `with_server`:"),
        "{error}"
    );
    for early in [Builder::new().with_partial_server(), Builder::new().with_document_generator(Generator::new())] {
        let error = early.openapi(&shop).generate().unwrap_err();
        assert!(error.to_string().contains("behind the document that it is about"), "{error}");
    }
}

#[test]
fn documents_that_cannot_be_read_are_all_told() {
    let folder = folder("unread");
    let bad = folder.join("bad.yaml");
    std::fs::write(&bad, "a: [").unwrap();
    let builder = Builder::new().openapi("no/such.yaml").openapi(folder.join("shop.v1.yaml")).openapi(&bad);
    // A setting that names nothing may be meant for them; one that cannot be applied is told.
    let builder = builder.include("listPests");
    let error = builder.generate().unwrap_err();
    let Error::Document { diagnostics } = &error else { panic!("{error}") };
    assert_eq!(diagnostics.len(), 2, "{error}");
    assert!(error.to_string().contains("no/such.yaml") && error.to_string().contains("bad.yaml"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_the_generator_says_has_a_place_in_the_document() {
    let text = "openapi: 3.0.3\ninfo: { title: Pets, version: '1' }\npaths:\n  /pets:\n    get:\n      operationId: pets\n\
                \x20     responses:\n        '200':\n          description: Fine\n          content:\n            application/json:\n\
                \x20             schema: { $ref: '#/components/schemas/Pet' }\n\
                components:\n  schemas:\n    Pet:\n      type: object\n      properties:\n        legs:\n          type: integer\n          default: four\n";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("placed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pets.yaml"), text).unwrap();
    let modules = Builder::new().openapi(folder.join("pets.yaml")).generate().unwrap();
    let told = modules[0].generated.diagnostics.iter().find(|told| told.message.contains("default")).unwrap();
    assert_eq!(told.pointer, "/components/schemas/Pet/properties/legs");
    assert_eq!(told.position, Some((18, 9)));
    assert!(told.document.as_ref().unwrap().ends_with("pets.yaml"));
    std::fs::remove_dir_all(folder).unwrap();
}

const TOOLS: &str = r##"{
  "serverInfo": { "name": "till", "version": "7" },
  "tools": [
    { "name": "add", "inputSchema": {
      "type": "object", "properties": { "n": { "$ref": "#/$defs/N" }, "m": { "type": "integer", "default": "many" } },
      "$defs": { "N": { "type": "object", "properties": {
        "deep": { "type": "integer", "default": "few" }
      } } } } },
    { "inputSchema": {} }
  ]
}"##;

#[test]
fn tools_are_read_like_documents() {
    let folder = folder("tools");
    std::fs::write(folder.join("till.v2.json"), TOOLS).unwrap();
    let path = folder.join("till.v2.json");
    let modules = Builder::new().mcp(&path).generate().unwrap();
    let [module] = modules.as_slice() else { panic!("one module") };
    assert_eq!((module.namespace.as_str(), module.operations[0].id.as_ref()), ("till", "till.add"));
    assert_eq!(module.files, std::slice::from_ref(&path));
    let document = path.display().to_string();
    let told: Vec<_> = module
        .generated
        .diagnostics
        .iter()
        .map(|told| (told.pointer.as_str(), told.position.unwrap(), told.document.as_deref()))
        .collect();
    // What the reader says, and what the generator says of a property and of one in a definition.
    let place = |pointer, position| (pointer, position, Some(document.as_str()));
    assert_eq!(
        told,
        [
            place("/tools/1", (9, 5)),
            place("/tools/0/inputSchema/properties/m", (5, 71)),
            place("/tools/0/inputSchema/$defs/N/properties/deep", (7, 9)),
        ]
    );
    // By what they are, and not by what somebody says that they are.
    let both = Builder::new().document(&path).document(folder.join("shop.v1.yaml")).generate().unwrap();
    assert_eq!((both[0].generated.source == module.generated.source, both[1].namespace.as_str()), (true, "shop"));
    for wrong in [Builder::new().openapi(&path).generate(), Builder::new().mcp(folder.join("shop.v1.yaml")).generate()]
    {
        assert!(matches!(wrong, Err(Error::Document { .. })));
    }
    let all: Vec<String> =
        Builder::new().dir(&folder).generate().unwrap().into_iter().map(|module| module.namespace).collect();
    assert_eq!(all, ["shop", "till"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn lists_of_tools_in_any_form_are_documents() {
    let folder = folder("lists");
    for (file, text) in [
        ("bare.json", r#"[{ "name": "add", "inputSchema": { "type": "object" } }]"#),
        ("till.yaml", "tools:\n  - name: add\n    inputSchema: { type: object }\n"),
        ("empty.yaml", "serverInfo: { name: till, version: '7' }\ntools: []\n"),
    ] {
        let path = folder.join(file);
        std::fs::write(&path, text).unwrap();
        let source = |builder: Builder| builder.generate().unwrap().remove(0).generated.source;
        let source = (source(Builder::new().document(&path)), source(Builder::new().mcp(&path)));
        assert!(source.0 == source.1, "{file}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_value_that_serialises_to_a_document_is_one() {
    let text = r##"{
      "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" },
      "paths": {
        "/z": { "get": { "operationId": "zebras", "responses": { "200": { "description": "x", "content": {
          "application/json": { "schema": { "$ref": "#/components/schemas/Zebra" } } } } } } },
        "/a": { "get": { "operationId": "apes", "responses": { "200": { "description": "x", "content": {
          "application/json": { "schema": { "$ref": "apes.json#/Ape" } } } } } } }
      },
      "components": { "schemas": { "Zebra": { "type": "object", "properties": {
        "stripes": { "type": "integer", "default": "many" }, "age": { "type": "integer" } } } } }
    }"##;
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    let folder = folder("value");
    std::fs::write(folder.join("shop.json"), text).unwrap();
    let of_file = Builder::new().openapi(folder.join("shop.json")).generate().unwrap().remove(0);
    let of_value = Builder::new().openapi_value("shop", &document).unwrap().generate().unwrap().remove(0);
    assert_eq!(of_value.generated.source, of_file.generated.source);
    let (zebras, apes) = (of_value.generated.source.find("Zebras;"), of_value.generated.source.find("Apes;"));
    assert!(zebras < apes && zebras.is_some(), "in the order of the document");
    assert_eq!(of_value.files, Vec::<PathBuf>::new());
    // Pointers into the document, and no file.
    let told: Vec<_> = of_value.generated.diagnostics.iter().map(|told| (&*told.pointer, &told.document)).collect();
    let ape = "/paths/~1a/get/responses/200/content/application~1json/schema";
    assert_eq!(told, [(ape, &None), ("/components/schemas/Zebra/properties/stripes", &None)]);
    let told = of_value.generated.diagnostics[0].to_string();
    assert!(told.contains("`apes.json` is another document, and there is no source to read it from"), "{told}");

    // What is no document, no JSON, and no namespace.
    let error = Builder::new().openapi_value("shop", &serde_json::json!([1])).unwrap().generate().unwrap_err();
    assert!(matches!(&error, Error::Document { diagnostics } if diagnostics.len() == 1), "{error}");
    let unwritable = std::collections::BTreeMap::from([((1, 2), "a pair is no key of an object")]);
    let error = Builder::new().openapi_value("shop", &unwritable).unwrap_err();
    assert!(error.to_string().starts_with("the document for `shop` can't be written as JSON: "), "{error}");
    let error = Builder::new().openapi_value("a.b", &document).unwrap().generate().unwrap_err();
    assert_eq!(error.to_string(), "`a.b` is no namespace: use letters, digits, `_` and `-`");
    let twice = Builder::new().openapi_value("shop", &document).unwrap().openapi_value("Shop", &document).unwrap();
    assert!(twice.generate().unwrap_err().to_string().contains("have the namespace `Shop`"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn webhooks_are_chosen_as_operations_are() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/webhooks.json");
    let source = |builder: Builder| builder.generate().unwrap().remove(0).generated.source;
    let all = source(Builder::new().openapi(&document));
    for name in ["NewOrder", "OrderGone", "Vec", "Delivered"] {
        assert!(all.contains(&format!("impl ops::Webhook for super::webhooks::{name} ")), "{name}");
    }
    // What is chosen brings what it reaches, and no more.
    let one = source(Builder::new().openapi(&document).include("*.delivered"));
    assert!(one.contains("super::webhooks::Delivered") && one.contains("pub struct DeliveredPayload {"));
    assert!(!one.contains("pub struct NewOrder;") && !one.contains("pub struct Order {") && !one.contains("Subscribe"));
    let others = source(Builder::new().openapi(&document).exclude("newOrder").exclude("delivered"));
    assert!(others.contains("super::webhooks::OrderGone") && !others.contains("super::webhooks::NewOrder"));
    // None, and no trace of them.
    let none = source(Builder::new().openapi(&document).include("subscribe"));
    assert!(none.contains("pub struct Subscribe;") && !none.to_lowercase().contains("mod webhooks"));
    let error = Builder::new().openapi(&document).include("newOrdre").generate().unwrap_err();
    assert!(error.to_string().contains("no operation matches `newOrdre`"), "{error}");
    // What is left out is told.
    let told = Builder::new().openapi(&document).generate().unwrap().remove(0).generated.diagnostics;
    let told = told.iter().find(|told| told.pointer == "/webhooks/form/post/requestBody").unwrap();
    assert_eq!(told.message, "the webhook `form` does not send JSON");
}

#[test]
fn a_generator_for_no_document_is_told() {
    let folder = folder("unused");
    let (shop, generator) = (folder.join("shop.v1.yaml"), || Generator::new().with_typed_formats());
    let own = || Builder::new().openapi(&shop).with_document_generator(Generator::new());
    let error = own().with_generator(generator()).generate().unwrap_err().to_string();
    assert!(error.starts_with("`with_generator` is for documents without a generator of their own"), "{error}");
    own().openapi(&shop).with_namespace("other").with_generator(generator()).generate().unwrap();
    #[cfg(feature = "config")]
    {
        let config = folder.join("ops.toml");
        std::fs::write(&config, "[documents.shop]\npath = \"shop.v1.yaml\"\n").unwrap();
        let builder = Builder::from_config(&config).unwrap();
        let error = builder.with_generator(generator()).generate().unwrap_err().to_string();
        assert!(error.contains("write its settings in `") && error.contains("ops.toml`"), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_of_somebody_else_are_kept() {
    let folder = folder("foreign");
    let (out, file) = (folder.join("out"), folder.join("out/shop.rs"));
    std::fs::create_dir_all(&out).unwrap();
    let shop = folder.join("shop.v1.yaml");
    let build = || Builder::new().openapi(&shop).with_namespace("other").openapi(&shop).with_out_dir(&out).build();
    std::fs::write(&file, "pub mod own;\n").unwrap();
    let error = build().unwrap_err().to_string();
    assert!(error.contains("does not overwrite what it did not write: `") && error.contains("shop.rs`"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "pub mod own;\n");
    assert!(!out.join("other.rs").exists(), "nothing is written beside it");
    // An empty file, and what an earlier build wrote.
    std::fs::write(&file, "").unwrap();
    build().unwrap();
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{written}// more\n")).unwrap();
    build().unwrap();
    assert!(std::fs::read_to_string(&file).unwrap() == written);
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(feature = "overlays")]
#[test]
fn an_overlay_changes_a_document() {
    const OVERLAY: &str = "\
overlay: 1.1.0
info: { title: Fewer, version: 1.0.0 }
actions:
  - target: $.paths['/pets'].get
    update:
      operationId: allPets
      parameters:
        - { name: page, in: query, schema: { $ref: '#/components/schemas/None' } }
  - target: $.paths['/pets'].get.parameters[?@.name == 'limit']
    remove: true
  - target: $.paths['/toys']
    remove: true
";
    let folder = folder("overlay");
    let (document, overlay) = (folder.join("shop.v1.yaml"), folder.join("shop.overlay.yaml"));
    std::fs::write(&overlay, OVERLAY).unwrap();
    let modules = Builder::new().openapi(&document).with_overlay(&overlay).generate().unwrap();
    let [module] = &modules[..] else { panic!("one module") };
    assert_eq!(module.files, [document.clone(), overlay.clone(), folder.join("types.yaml")]);
    assert!(module.generated.source.contains("\"shop.allPets\""), "{}", module.generated.source);
    assert!(!module.generated.source.contains("limit"), "{}", module.generated.source);
    // One of the overlay, and one of the reader about a part that comes from it.
    let told: Vec<_> = module
        .generated
        .diagnostics
        .iter()
        .map(|told| (told.pointer.as_str(), told.position.unwrap(), PathBuf::from(told.document.as_ref().unwrap())))
        .collect();
    let wanted = [
        ("/actions/2/target", (11, 5), overlay.clone()),
        ("/actions/0/update/parameters/0/schema", (8, 36), overlay.clone()),
    ];
    assert_eq!(told, wanted, "{:?}", module.generated.diagnostics);
    // A setting for what the overlay should have added is told with why it is not there.
    let rename = Generator::new().with_renamed_type("Toy", "Plaything").unwrap();
    let builder = Builder::new().openapi(&document).with_overlay(&overlay).with_generator(rename);
    let error = builder.include("listToys").generate().unwrap_err();
    let Error::Document { diagnostics } = &error else { panic!("{error}") };
    let told: Vec<_> = diagnostics.iter().map(|told| (told.severity, told.document.is_some())).collect();
    assert_eq!(told, [(Severity::Error, false), (Severity::Error, false), (Severity::Warning, true)], "{error}");
    let text = error.to_string();
    for part in
        ["no operation matches `listToys`", "no type `Toy`", "matches nothing, so that the action changes nothing"]
    {
        assert!(text.contains(part), "{text} / {part}");
    }
    // What the reader refuses has a place, too.
    std::fs::write(&overlay, "overlay: 1.1.0\nactions:\n  - target: $.paths\n    remove: true\n").unwrap();
    let error = Builder::new().openapi(&document).with_overlay(&overlay).generate().unwrap_err();
    assert!(error.to_string().contains("has no `paths`"), "{error}");
    let error = Builder::new().dir(&folder).with_overlay(&overlay).generate().unwrap_err();
    assert!(matches!(error, Error::Settings(_)), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(feature = "overlays")]
#[test]
fn an_overlay_of_tools() {
    let folder = folder("overlay-tools");
    std::fs::write(folder.join("till.json"), TOOLS).unwrap();
    let overlay = "overlay: 1.0.0\nactions:\n  - target: $.tools[?@.name == 'add']\n    update: { name: sum }\n";
    std::fs::write(folder.join("till.overlay.yaml"), overlay).unwrap();
    let builder = Builder::new().document(folder.join("till.json")).with_overlay(folder.join("till.overlay.yaml"));
    let modules = builder.generate().unwrap();
    assert_eq!(modules[0].operations[0].id, "till.sum");
    let told = modules[0].generated.diagnostics.iter().find(|told| told.message.contains("many")).unwrap();
    assert_eq!((told.pointer.as_str(), told.position), ("/tools/0/inputSchema/properties/m", Some((5, 71))));
    std::fs::remove_dir_all(folder).unwrap();
}
