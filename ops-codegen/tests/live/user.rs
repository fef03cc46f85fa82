//! Calls the servers whose snapshots `build.rs` made types of: what a user of them would write.

use futures_util::StreamExt;
use ops_runtime::mcp::{McpClient, McpServerConfig};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry};
use ops_runtime::content::ContentBlock;
use ops_runtime::registry::Progress;
use ops_runtime::spec::OperationSpec;

pub mod everything {
    ops_runtime::include_operations!("everything");
}
pub mod files {
    ops_runtime::include_operations!("files");
}
pub mod git {
    ops_runtime::include_operations!("git");
}
pub mod memory {
    ops_runtime::include_operations!("memory");
}
pub mod time {
    ops_runtime::include_operations!("time");
}

type Done = Result<(), Box<dyn std::error::Error>>;
type Operations = &'static [&'static OperationSpec];

/// The server that an environment variable has the command line of, one argument a line.
fn server(variable: &str) -> Result<McpServerConfig, std::env::VarError> {
    let line = std::env::var(variable)?;
    let (command, args) = line.split_once('\n').unwrap_or((&line, ""));
    Ok(McpServerConfig::stdio(command, args.lines()))
}

async fn connect(config: McpServerConfig, operations: Operations) -> Result<McpClient, CallError> {
    let client = McpClient::connect(config.with_operations(operations)).await?;
    // The tools are those of the snapshot.
    assert!(client.diagnostics().is_empty(), "{:?}", client.diagnostics());
    Ok(client)
}

fn first_text(blocks: &[ContentBlock]) -> &str {
    blocks.iter().find_map(|block| block.as_text()).unwrap_or_default()
}

async fn everything(client: McpClient) -> Done {
    let said = client.execute::<everything::Echo>(everything::EchoInput { message: "hello".into() }).await?.data;
    assert_eq!(first_text(&said), "Echo: hello");
    let input = everything::GetStructuredContentInput {
        location: everything::GetStructuredContentInputLocation::Chicago,
    };
    let weather = client.execute::<everything::GetStructuredContent>(input).await?;
    assert!(weather.warnings.is_empty() && !weather.data.conditions.is_empty());
    let image = client.execute::<everything::GetTinyImage>(everything::GetTinyImageInput {}).await?.data;
    assert!(image.iter().any(|block| matches!(block, ContentBlock::Image(image) if image.mime_type == "image/png")));
    // How far it is, as a stream beside the result; and through a registry.
    let registry = Registry::new();
    registry.register_all(client.bind(everything::operations())?)?;
    let (sink, mut progress) = Progress::channel();
    let options = CallOptions::new().with_progress(sink);
    let input = everything::TriggerLongRunningOperationInput { duration: Some(0.3), steps: Some(3.0) };
    let done = registry.execute_with::<everything::TriggerLongRunningOperation>(input, options).await?.data;
    assert!(first_text(&done).contains("completed"), "{done:?}");
    let mut steps = Vec::new();
    while let Some(step) = progress.next().await {
        steps.push(step.progress);
    }
    assert_eq!(steps, [1.0, 2.0, 3.0]);
    // A call that is dropped is cancelled, and the client goes on.
    let input = everything::TriggerLongRunningOperationInput { duration: Some(60.0), steps: Some(2.0) };
    let call = client.execute::<everything::TriggerLongRunningOperation>(input);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), call).await.is_err());
    let sum = client.execute::<everything::GetSum>(everything::GetSumInput { a: 1.0, b: 2.0 }).await?.data;
    assert!(first_text(&sum).contains('3'), "{sum:?}");
    client.close().await;
    Ok(())
}

async fn files(client: McpClient, folder: &str) -> Done {
    let path = format!("{folder}/note.txt");
    let input = files::WriteFileInput { path: path.clone(), content: "one\ntwo\n".into() };
    client.execute::<files::WriteFile>(input).await?;
    let input = files::ReadTextFileInput { path: path.clone(), head: Some(1.0), tail: None };
    assert_eq!(client.execute::<files::ReadTextFile>(input).await?.data.content, "one");
    let edit = files::EditFileInputEditsItem { old_text: "two".into(), new_text: "2".into() };
    let input = files::EditFileInput { path: path.clone(), edits: vec![edit], dry_run: None };
    client.execute::<files::EditFile>(input).await?;
    assert_eq!(std::fs::read_to_string(&path)?, "one\n2\n");
    let input = files::ReadTextFileInput { path: "/etc/hostname".into(), head: None, tail: None };
    let error = client.execute::<files::ReadTextFile>(input).await.err().ok_or("a file outside was read")?;
    assert_eq!(error.code(), &ErrorCode::ToolError);
    assert!(error.message().contains("denied"), "{error}");
    client.close().await;
    Ok(())
}

async fn memory(client: McpClient) -> Done {
    let ann = || memory::CreateEntitiesInputEntitiesItem {
        name: "Ann".into(),
        entity_type: "person".into(),
        observations: vec!["likes tea".into()],
    };
    let input = memory::CreateEntitiesInput { entities: vec![ann()] };
    assert_eq!(client.execute::<memory::CreateEntities>(input).await?.data.entities, [ann()]);
    let found = client.execute::<memory::SearchNodes>(memory::SearchNodesInput { query: "tea".into() }).await?.data;
    assert_eq!(found.entities, [ann()]);
    client.close().await;
    Ok(())
}

async fn time(client: McpClient) -> Done {
    let input = |time: &str| time::ConvertTimeInput {
        source_timezone: "UTC".into(),
        time: time.into(),
        target_timezone: "Asia/Tokyo".into(),
    };
    let converted = client.execute::<time::ConvertTime>(input("12:00")).await?.data;
    assert_eq!((converted.time_difference.as_str(), converted.target.is_dst), ("+9.0h", false));
    let error = client.execute::<time::ConvertTime>(input("noon")).await.err().ok_or("noon was converted")?;
    assert!(error.code() == &ErrorCode::ToolError && error.message().contains("Invalid time"), "{error}");
    client.close().await;
    Ok(())
}

async fn git(client: McpClient, folder: &str) -> Done {
    let repo_path = folder.to_owned();
    let status = client.execute::<git::GitStatus>(git::GitStatusInput { repo_path: repo_path.clone() }).await?.data;
    assert!(first_text(&status).contains("note.txt"), "{status:?}");
    let input = git::GitAddInput { repo_path: repo_path.clone(), files: vec!["note.txt".into()] };
    client.execute::<git::GitAdd>(input).await?;
    let input = git::GitCommitInput { repo_path: repo_path.clone(), message: "A note".into() };
    client.execute::<git::GitCommit>(input).await?;
    let input = git::GitLogInput { repo_path, max_count: Some(1), start_timestamp: None, end_timestamp: None };
    let log = client.execute::<git::GitLog>(input).await?.data;
    assert!(first_text(&log).contains("A note"), "{log:?}");
    client.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Done {
    let folder = std::env::var("FOLDER")?;
    everything(connect(server("EVERYTHING")?, everything::operations()).await?).await?;
    files(connect(server("FILES")?, files::operations()).await?, &folder).await?;
    let kept = server("MEMORY")?.with_env("MEMORY_FILE_PATH", std::env::var("MEMORY_FILE_PATH")?);
    memory(connect(kept, memory::operations()).await?).await?;
    time(connect(server("TIME")?, time::operations()).await?).await?;
    git(connect(server("GIT")?, git::operations()).await?, &folder).await?;
    // The same types over the other transport.
    let url = std::env::var("EVERYTHING_URL")?;
    everything(connect(McpServerConfig::http(url), everything::operations()).await?).await?;
    println!("all called");
    Ok(())
}
