//! `ops.toml`, as a build script and the command read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ops_codegen::Builder;

const SHOP: &str = r##"openapi: 3.1.0
info: { title: Pet shop, version: 1.0.0 }
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /orders:
    post:
      operationId: order
      tags: [orders]
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } } } }
components:
  schemas:
    Pet: { type: object, required: [id, born], properties: { id: { type: integer }, type: { type: string }, born: { type: string, format: date } } }
    Order: { type: object, properties: { to: { type: string } } }
    WebhookPing: { type: object, properties: { at: { type: string } } }
"##;

const OVERLAY: &str = "overlay: 1.1.0
actions:
  - target: $.paths['/pets/{petId}'].get
    update: { operationId: findPet }
  - target: $.paths['/toys']
    remove: true
";

const TOOLS: &str = r#"{ "tools": [{ "name": "add", "inputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } } }] }"#;

const CONFIG: &str = r#"[generate]
out = "src/api"
formats = true
methods = false

[documents.shop]
path = "specs/shop.yaml"
overlays = ["specs/shop.overlay.yaml"]
exclude = ["tag:orders"]
schemas = ["Webhook*"]
rename = { Pet = "Animal" }
rename_fields = { Pet.type = "species" }

[documents.more]
path = "more"
methods = true
"#;

/// A folder of its own for a test, with a configuration.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-config-{name}-{}", std::process::id()));
    for (name, text) in [
        ("ops.toml", CONFIG),
        ("specs/shop.yaml", SHOP),
        ("specs/shop.overlay.yaml", OVERLAY),
        ("more/till.json", TOOLS),
        ("more/v2/store.yaml", SHOP),
    ] {
        write(&folder, name, text);
    }
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs the command; returns its status, and what it prints.
fn ops(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text.concat())
}

/// Runs a build script with the configuration of a folder; returns what it tells cargo.
fn build_script(folder: &Path) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.args(["as_a_build_script", "--exact", "--nocapture"]).current_dir(folder);
    let command = command.env("OPS_BUILD", "1").env("OUT_DIR", folder.join("out")).env("CARGO_MANIFEST_DIR", folder);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().filter(|line| line.starts_with("cargo:")).map(str::to_owned).collect()
}

#[test]
fn as_a_build_script() {
    if std::env::var_os("OPS_BUILD").is_some() {
        println!();
        Builder::from_config("ops.toml").unwrap().build().unwrap();
    }
}

/// The files of a folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), text(&entry.path()))).collect()
}

#[test]
fn a_build_script_and_the_command_write_the_same() {
    let folder = folder("same");
    let lines = build_script(&folder);
    let rerun: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("cargo:rerun-if-changed=")).collect();
    let wanted =
        ["more", "more/till.json", "more/v2/store.yaml", "ops.toml", "specs/shop.overlay.yaml", "specs/shop.yaml"];
    assert_eq!(rerun, wanted);
    // What else there is, is what `include_operations!` reads, and the one warning.
    let included = lines.iter().filter(|line| line.starts_with("cargo:rustc-")).count();
    assert_eq!((included, lines.len()), (7, wanted.len() + 8), "{lines:?}");
    let warning = lines.last().unwrap();
    assert!(warning.contains("matches nothing") && warning.contains("specs/shop.overlay.yaml:5:5"), "{warning}");
    let built = files(&folder.join("out"));
    assert_eq!(built.keys().collect::<Vec<_>>(), ["shop.rs", "till.rs", "v2_store.rs"]);
    let shop = &built["shop.rs"];
    for part in [
        "pub struct FindPet;",
        "pub struct Animal {",
        "pub species: ",
        "ops::formats::Date",
        "pub struct WebhookPing {",
    ] {
        assert!(shop.contains(part), "{part}\n{shop}");
    }
    for part in ["showPet", "shop.order", "trait Methods"] {
        assert!(!shop.contains(part), "{part}\n{shop}");
    }
    assert!(built["till.rs"].contains("trait Methods") && built["v2_store.rs"].contains("ops::formats::Date"));

    let (status, told) = ops(&folder, &["generate", "--check"]);
    assert!(status == 1 && told.contains("src/api/shop.rs is not there"), "{told}");
    let (status, told) = ops(&folder, &["generate"]);
    assert!(status == 0 && told.contains("specs/shop.overlay.yaml:5:5"), "{told}");
    assert_eq!(files(&folder.join("src/api")), built);
    // From another folder, and to another place.
    let (status, told) =
        ops(folder.parent().unwrap(), &["generate", folder.join("ops.toml").to_str().unwrap(), "--check"]);
    assert_eq!(status, 0, "{told}");
    assert_eq!(ops(&folder, &["generate", "-o", "elsewhere"]).0, 0);
    assert_eq!(files(&folder.join("elsewhere")), built);
    assert_eq!(ops(&folder, &["generate", "--check"]).0, 0);
    // A document that is gone.
    let fewer = CONFIG.split("\n[documents.more]").next().unwrap();
    write(&folder, "ops.toml", fewer);
    let (status, told) = ops(&folder, &["generate", "--check"]);
    assert!(status == 1 && told.contains("src/api/till.rs is of a document that is gone"), "{told}");
    // The other commands take the file as a document.
    let (status, told) = ops(&folder, &["inspect", "ops.toml", "findPet"]);
    assert!(status == 0 && told.contains("shop.findPet: query  GET /pets/{petId}"), "{told}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn patterns_of_the_line_and_of_the_file_are_for_all_operations() {
    let folder = folder("patterns");
    // What one leaves out, the other may name: no pattern is idle for it.
    for (option, pattern) in [("--include", "findPet"), ("--exclude", "order"), ("--include", "*et")] {
        let (status, told) = ops(&folder, &["inspect", "ops.toml", option, pattern]);
        assert_eq!(status, 0, "{option} {pattern}: {told}");
        assert!(told.contains("shop.findPet") && !told.contains("shop.order"), "{told}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn only_what_is_used() {
    let folder = folder("used");
    write(
        &folder,
        "ops.toml",
        "[generate]\nout = 'src/api'\nonly_used = true\n[documents.shop]\npath = 'specs/shop.yaml'\n",
    );
    write(&folder, "src/main.rs", "fn main() { let _ = api::shop::ShowPet; }");
    let lines = build_script(&folder);
    assert!(lines.contains(&format!("cargo:rerun-if-changed={}", folder.join("src").display())), "{lines:?}");
    assert!(lines.contains(&"cargo:rerun-if-changed=ops.toml".to_owned()), "{lines:?}");
    let mut built = files(&folder.join("out"));
    built.retain(|name, _| !name.starts_with("ops-only-used-"));
    assert_eq!(built.keys().collect::<Vec<_>>(), ["shop.others.json", "shop.rs"]);
    assert!(built["shop.rs"].contains("pub struct ShowPet;") && !built["shop.rs"].contains("pub struct Order;"));
    // What is written among the sources does not count as use.
    for _ in 0..2 {
        assert_eq!(ops(&folder, &["generate"]).0, 0);
        assert_eq!(files(&folder.join("src/api")), built);
    }
    assert_eq!(ops(&folder, &["generate", "--check"]).0, 0);
    write(&folder, "src/api/shop.others.json", "{}");
    let (status, told) = ops(&folder, &["generate", "--check"]);
    assert!(status == 1 && told.contains("src/api/shop.others.json differs"), "{told}");
    // That nothing is found is told, by each build.
    write(&folder, "src/main.rs", "fn main() {}");
    for _ in 0..2 {
        let lines = build_script(&folder);
        let told = |line: &String| line.starts_with("cargo:warning=the crate's sources name nothing of this document");
        assert!(lines.iter().any(told), "{lines:?}");
    }
    // Who calls them by id names none.
    write(&folder, "src/main.rs", "fn main() { let _ = api::shop::other_operations(); }");
    let lines = build_script(&folder);
    assert!(!lines.iter().any(|line| line.starts_with("cargo:warning=")), "{lines:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn mistakes_say_what_to_do() {
    let folder = folder("mistakes");
    let other = "[documents.more]\npath = 'more'\n";
    for (config, arguments, wanted) in [
        // Two faults at once, with their lines.
        (
            "[generate]\nout = 1\n[documents.shop]\npath = 'specs/shop.yaml'\nincludes = []\n",
            &["generate"][..],
            &["ops.toml:2:7", "`generate.out` is a text, not a number", "ops.toml:5:1", "did you mean `include`?"][..],
        ),
        ("", &["generate"], &["`ops.toml` names no documents: `ops add` fetches one"]),
        (
            other,
            &["generate"],
            &["it is not said where to write: pass `--output`, or `out` below `[generate]` in `ops.toml`"],
        ),
        (other, &["generate", "specs/shop.yaml"], &["it is not said where to write: pass `--output`"]),
        (
            other,
            &["generate", "ops.toml", "specs/shop.yaml", "-o", "x"],
            &["`ops.toml` names its documents: name it alone"],
        ),
        (other, &["generate", "-o", "x", "--namespace", "y"], &["`--namespace` is for a document on the command line"]),
        (
            "[documents.shop]\npath = 'specs/shop.yaml'\ninclude = ['showPets']\n[documents.more]\npath = 'more'\nexclude = ['none']\n",
            &["generate", "-o", "x"],
            &[
                "error: `documents.shop`: no operation matches `showPets` (there is `showPet`)",
                "--> ops.toml:3:13",
                "error: `documents.more`: no operation matches `none`",
                "--> ops.toml:6:13",
            ],
        ),
        (
            // `Order` is in the document, and no operation that is included has it.
            "[documents.shop]\npath = 'specs/shop.yaml'\ninclude = ['showPet']\nrename = { Ordr = 'X' }\n",
            &["generate", "-o", "x"],
            &[
                "error: `documents.shop`: the name `X`: there is no type `Ordr` (there is `Order`): ",
                "--> ops.toml:4:20",
            ],
        ),
        (
            "[documents.more]\noverlays = ['specs/shop.overlay.yaml']\npath = 'more'\n",
            &["generate", "-o", "x"],
            &["ops.toml:2:12", "`documents.more.overlays` change one document, not a folder"],
        ),
        (
            "[documents.x]\nsource = 'https://x/y'\n",
            &["update", "--check"],
            &["ops.toml:1:1", "`documents.x` has no `path`"],
        ),
        ("[documents.x]\npath = 'x.yaml'\nsha = ''\n", &["add", "specs/shop.yaml"], &["did you mean `sha256`?"]),
    ] {
        write(&folder, "ops.toml", config);
        let (status, told) = ops(&folder, arguments);
        assert_eq!(status, 2, "{arguments:?}: {told}");
        for part in wanted {
            assert!(told.contains(part), "{part}\n{told}");
        }
    }
    // A build script has no lines of the file to show, but names it.
    let settings = "[documents.shop]\npath = 'specs/shop.yaml'\nrename = { Pte = 'X' }\nexclude = ['none']\n";
    write(&folder, "ops.toml", settings);
    let path = folder.join("ops.toml");
    let error = Builder::from_config(&path).unwrap().generate().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    for part in ["no operation matches `none`", "the name `X`: there is no type `Pte` (there is `Pet`): "] {
        let begin = format!("{}: `documents.shop`: {part}", path.display());
        assert!(lines.iter().any(|line| line.starts_with(&begin)), "{begin}\n{error}");
    }
    std::fs::remove_file(folder.join("ops.toml")).unwrap();
    let (status, told) = ops(&folder, &["generate"]);
    assert!(status == 2 && told.contains("there is no `ops.toml` here"), "{told}");
    std::fs::remove_dir_all(folder).unwrap();
}
