//! Directories of documents.
#![cfg(feature = "openapi")]

use std::path::PathBuf;

use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{OperationKind, OperationSpec, Severity};

/// A folder that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("ops-dir-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

const API: &str =
    "openapi: 3.0.0\ninfo: {version: '1'}\npaths:\n  /a: {get: {operationId: a, responses: {'200': {}}}}\n";

#[test]
fn all_that_can_be_read_is() {
    let spec = OperationSpec::new(OperationKind::Query, "own", "find").unwrap();
    let spec = serde_json::to_string(&spec).unwrap();
    let with_part = "openapi: 3.0.0\ninfo: {version: '1'}\npaths: {/b: {$ref: '../parts/path.json'}}\n";
    let folder = Folder::new(
        "all",
        &[
            ("b.yaml", API),
            ("nested/b.yaml", API),
            ("nested/b.yml", API),
            ("users/openapi.yml", with_part),
            ("parts/path.json", r#"{"get": {"operationId": "b", "responses": {"200": {}}}}"#),
            ("own.json", &spec),
            ("own_list.json", &format!("[{spec}, {}]", spec.replace("find", "list"))),
            ("own_bad.json", r#"{"namespace": "own", "inputSchema": {}, "name": 1}"#),
            ("broken.json", "{\"openapi\": "),
            ("old.json", r#"{"swagger": "1.2"}"#),
            ("package.json", "{}"),
            ("notes.txt", "openapi: 3.0.0"),
            (".hidden.yaml", API),
        ],
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&folder.0, folder.0.join("nested/back")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.0.join("out")).unwrap();
    }
    let directory = openapi::load_dir(&folder.0, &ReadOptions::new()).unwrap();
    let found: Vec<_> = directory
        .apis
        .iter()
        .map(|(name, api)| (name.as_str(), api.operations.iter().map(|o| o.id.as_ref()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(
        found,
        [
            ("b", vec!["b.a"]),
            ("nested_b_yaml", vec!["nested_b_yaml.a"]),
            ("nested_b_yml", vec!["nested_b_yml.a"]),
            ("own", vec!["own.find", "own.list"]),
            ("users_openapi", vec!["users_openapi.b"]),
        ]
    );
    let root = folder.0.display().to_string();
    let mut told: Vec<_> = directory
        .diagnostics
        .iter()
        .map(|d| {
            let file = d.document.as_deref().unwrap().strip_prefix(&root).unwrap();
            (file, d.severity, d.message.replace(&root, "ROOT"), d.position.is_some())
        })
        .collect();
    for (_, _, message, _) in &mut told {
        message.truncate(message.find(':').unwrap_or(message.len()));
    }
    told.sort();
    use Severity::{Error, Note, Warning};
    let mut expected = vec![
        ("/broken.json", Error, "not JSON", true),
        (
            "/nested/b.yaml",
            Warning,
            "`nested_b` would be the namespace of this document and of `ROOT/nested/b.yml`",
            false,
        ),
        (
            "/nested/b.yml",
            Warning,
            "`nested_b` would be the namespace of this document and of `ROOT/nested/b.yaml`",
            false,
        ),
        ("/old.json", Error, "OpenAPI `1.2` is not a version that can be read", false),
        ("/own_bad.json", Error, "not the JSON of an operation", false),
        ("/own_list.json", Error, "there is an operation `own.find` already", false),
        ("/package.json", Note, "neither an OpenAPI document nor the JSON of an operation", false),
    ];
    if cfg!(unix) {
        expected.insert(4, ("/out", Warning, "a link that leads nowhere or out of the directory", false));
    }
    let told: Vec<_> =
        told.iter().map(|(file, severity, message, at)| (*file, *severity, message.as_str(), *at)).collect();
    assert_eq!(told, expected);
    assert!(directory.files.iter().any(|file| file.ends_with("parts/path.json")));
}

#[test]
fn webhooks_are_read() {
    let schema = "{type: object, properties: {pet: {$ref: '#/components/schemas/Pet'}}}";
    let hooks = format!(
        "openapi: 3.1.0\ninfo: {{version: '1'}}\nwebhooks:\n  sold:\n    post: {{requestBody: {{content: \
         {{application/json: {{schema: {schema}}}}}}}}}\ncomponents: {{schemas: {{Pet: {{type: object}}}}}}\n"
    );
    let folder = Folder::new("webhooks", &[("shop.yaml", &hooks)]);
    let directory = openapi::load_dir(&folder.0, &ReadOptions::new()).unwrap();
    let [(name, api)] = directory.apis.as_slice() else { panic!("{directory:?}") };
    let ids: Vec<_> = api.webhooks.iter().map(|spec| spec.id.as_ref()).collect();
    assert_eq!((name.as_str(), ids), ("shop", vec!["shop.sold"]));
    assert_eq!(api.webhooks[0].definitions, api.definitions);
}

#[test]
fn what_is_no_directory_is_refused() {
    let folder = Folder::new("none", &[("a.yaml", API)]);
    assert!(openapi::load_dir(folder.0.join("gone"), &ReadOptions::new()).is_err());
    assert!(openapi::load_dir(folder.0.join("a.yaml"), &ReadOptions::new()).is_err());
}

#[cfg(feature = "mcp-schema")]
#[test]
fn lists_of_tools_are_read_as_well() {
    let list = r#"{"serverInfo": {"name": "x"}, "tools": [{"name": "t", "inputSchema": {}}, {"inputSchema": {}}]}"#;
    let folder = Folder::new("tools", &[("a.yaml", API), ("mcp/a b.json", list), ("other.json", r#"{"tools": []}"#)]);
    let directory = openapi::load_dir(&folder.0, &ReadOptions::new()).unwrap();
    let ids: Vec<_> = directory.apis.iter().flat_map(|(_, api)| &api.operations).map(|spec| spec.id.as_ref()).collect();
    assert_eq!(ids, ["a.a", "mcp_a_b.t"]);
    let told: Vec<_> =
        directory.diagnostics.iter().map(|d| (d.document.as_deref().unwrap(), d.pointer.as_str())).collect();
    let path = |name: &str| folder.0.join(name).display().to_string();
    assert_eq!(told, [(path("mcp/a b.json").as_str(), "/tools/1"), (path("other.json").as_str(), "")]);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_document() {
    let folder = Folder::new("pipe", &[("a.yaml", API)]);
    let pipe = folder.0.join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (done, read) = std::sync::mpsc::channel();
    let path = folder.0.clone();
    std::thread::spawn(move || _ = done.send(openapi::load_dir(path, &ReadOptions::new())));
    let directory = read.recv_timeout(std::time::Duration::from_secs(20)).expect("it ends").unwrap();
    assert_eq!(directory.apis.len(), 1);
    let told: Vec<_> = directory.diagnostics.iter().map(|d| (d.document.as_deref().unwrap(), &*d.message)).collect();
    assert_eq!(told, [(pipe.display().to_string().as_str(), "not a file")]);
}

#[test]
fn a_file_that_is_too_large_is_skipped() {
    let folder = Folder::new("large", &[("a.yaml", API), ("large.json", &"[1]".repeat(1_000))]);
    let directory = openapi::load_dir(&folder.0, &ReadOptions::new().with_max_bytes(1_000)).unwrap();
    let told: Vec<_> = directory.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!((directory.apis.len(), told), (1, vec!["more than 1000 bytes"]));
    assert_eq!(directory.files, [folder.0.join("a.yaml")]);
}
