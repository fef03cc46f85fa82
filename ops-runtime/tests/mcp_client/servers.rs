//! The servers `filesystem`, `memory`, `time` and `git`, one by one and all at once.

use std::path::{Path, PathBuf};
use std::process::Command;

use ops_runtime::binding::{McpBinding, McpOutput};
use ops_runtime::mcp::{McpClients, McpConfig, McpServerConfig};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Call, ErrorCode, Operation, Registry};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::peers::{connect, npm, pypi};

/// A directory of a test's own, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ops-mcp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Serialize, Deserialize)]
struct ConvertTimeInput {
    source_timezone: String,
    time: String,
    target_timezone: String,
}

#[derive(Serialize, Deserialize)]
struct Time {
    timezone: String,
    datetime: String,
    is_dst: bool,
}

#[derive(Serialize, Deserialize)]
struct Conversion {
    source: Time,
    target: Time,
    time_difference: String,
}

struct ConvertTime;

impl Operation for ConvertTime {
    type Input = ConvertTimeInput;
    type Output = Conversion;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("time.convert_time").with_mcp(McpBinding::new("convert_time", McpOutput::Structured));
}

impl Call for ConvertTime {}

#[tokio::test]
async fn time() {
    let client = connect(pypi("mcp-server-time", &["--local-timezone", "UTC"]).with_namespace("time")).await;
    let input = |time: &str| ConvertTimeInput {
        source_timezone: "UTC".to_owned(),
        time: time.to_owned(),
        target_timezone: "Asia/Tokyo".to_owned(),
    };
    let converted = client.execute::<ConvertTime>(input("12:00")).await.unwrap().data;
    assert_eq!(converted.time_difference, "+9.0h");
    assert!(converted.target.datetime.ends_with("T21:00:00+09:00"), "{}", converted.target.datetime);
    assert_eq!((converted.source.timezone.as_str(), converted.target.is_dst), ("UTC", false));
    // The error of a tool keeps all that the tool says.
    let error = client.execute::<ConvertTime>(input("noon")).await.map(|_| ()).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ToolError);
    assert!(error.message().contains("Invalid time format"), "{error}");
    assert!(error.mcp_meta().is_some_and(|meta| meta.is_error && meta.content.len() == 1));
    // A dynamic call gives the envelope.
    let input = json!({ "source_timezone": "UTC", "time": "noon", "target_timezone": "Asia/Tokyo" });
    let envelope = client.call("time.convert_time", input).await.unwrap();
    assert!(envelope.meta.as_mcp().unwrap().is_error && envelope.data.is_array());
    client.close().await;
}

#[tokio::test]
async fn filesystem() {
    let directory = Directory::new("filesystem");
    let client = connect(npm("server-filesystem", &[directory.path()]).with_namespace("files")).await;
    let path = format!("{}/note.txt", directory.path());
    client.call("files.write_file", json!({ "path": path, "content": "one\ntwo\n" })).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    let read = client.call("files.read_text_file", json!({ "path": path, "head": 1 })).await.unwrap();
    assert_eq!(read.data, json!({ "content": "one" }));
    let outside = client.call("files.read_text_file", json!({ "path": "/etc/hostname" })).await.unwrap();
    assert!(outside.meta.as_mcp().unwrap().is_error);
    client.close().await;
}

#[tokio::test]
async fn memory() {
    let directory = Directory::new("memory");
    let file = format!("{}/memory.json", directory.path());
    let client = connect(npm("server-memory", &[]).with_env("MEMORY_FILE_PATH", &file).with_namespace("memory")).await;
    let entity = json!({ "name": "Ann", "entityType": "person", "observations": ["likes tea"] });
    let created = client.call("memory.create_entities", json!({ "entities": [entity] })).await.unwrap();
    assert_eq!(created.data, json!({ "entities": [entity] }));
    assert!(created.warnings.is_empty(), "{:?}", created.warnings);
    let found = client.call("memory.search_nodes", json!({ "query": "tea" })).await.unwrap();
    assert_eq!(found.data, json!({ "entities": [entity], "relations": [] }));
    assert!(Path::new(&file).exists());
    client.close().await;
}

fn repository(directory: &Directory) {
    for args in [&["init", "-q", "-b", "main"][..], &["commit", "-q", "--allow-empty", "-m", "begin"]] {
        let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
        let status = Command::new("git").args(identity).args(args).current_dir(&directory.0).status().unwrap();
        assert!(status.success());
    }
}

#[tokio::test]
async fn git() {
    let directory = Directory::new("git");
    repository(&directory);
    let client = connect(pypi("mcp-server-git", &[]).with_namespace("git")).await;
    let input = json!({ "repo_path": directory.path() });
    let log = client.call("git.git_log", input.clone()).await.unwrap();
    assert!(log.data[0]["text"].as_str().unwrap().contains("begin"), "{}", log.data);
    std::fs::write(directory.0.join("new.txt"), "new").unwrap();
    let status = client.call("git.git_status", input).await.unwrap();
    assert!(status.data[0]["text"].as_str().unwrap().contains("new.txt"), "{}", status.data);
    client.close().await;
}

#[tokio::test]
async fn all_at_once_from_a_configuration() {
    let directory = Directory::new("all");
    let config = McpConfig::from_json(
        r#"{ "mcpServers": {
            "broken": { "command": "no-such-command" },
            "unset": { "command": "node", "env": { "A": "${NO_SUCH_VARIABLE}" } },
            "off": { "command": "no-such-command", "disabled": true }
        } }"#,
    )
    .unwrap()
    .with_server("time", pypi("mcp-server-time", &["--local-timezone", "UTC"]))
    .with_server("files.a", npm("server-filesystem", &[directory.path()]))
    .with_server("files-b", npm("server-filesystem", &[directory.path()]))
    .with_server("memory", McpServerConfig::http("http://127.0.0.1:9/mcp"));
    let clients = McpClients::connect(&config).await;
    assert_eq!(clients.names(), ["files-b", "files.a", "time"]);
    assert_eq!(clients.errors().keys().collect::<Vec<_>>(), ["broken", "memory", "unset"]);
    for (name, error) in clients.errors() {
        assert!(error.message().contains(&format!("`{name}`")), "{error}");
        assert_eq!(clients.client(name).unwrap_err(), *error);
    }
    assert!(clients.client("off").unwrap_err().message().contains("`off`"));

    // Tools of the same name are kept apart by their namespaces; one has no dot.
    let registry = Registry::new();
    clients.register_all(&registry).unwrap();
    for id in ["files_a.list_allowed_directories", "files-b.list_allowed_directories"] {
        let listed = registry.call(id, json!({})).await.unwrap();
        assert!(listed.data["content"].as_str().unwrap().contains(directory.path()), "{}", listed.data);
    }
    assert_eq!(registry.list().len(), clients.operations().len());
    let now = clients.client("time").unwrap().call("time.get_current_time", json!({ "timezone": "UTC" })).await;
    assert_eq!(now.unwrap().data["timezone"], "UTC");

    assert!(clients.close("time").await && !clients.close("time").await);
    assert_eq!(clients.names(), ["files-b", "files.a"]);
    let closed = registry.call("time.get_current_time", json!({ "timezone": "UTC" })).await.unwrap_err();
    assert!(closed.message().contains("closed"), "{closed}");
    clients.close_all().await;
    assert!(clients.names().is_empty());
}
