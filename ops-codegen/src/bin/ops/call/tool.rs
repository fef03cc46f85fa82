//! `ops call` of a tool of an MCP server.

use std::path::Path;

use ops_codegen::folder::{Kind, kind};
use ops_runtime::adapter::Registration;
use ops_runtime::mcp::McpClient;
use ops_runtime::{Registry, openapi};
use serde_json::Value;

use super::{find, input, once, tell};
use crate::arguments::CallArguments;
use crate::failure::Failure;
use crate::modules::{runtime, tools};
use crate::progress::Progress;
use crate::server::{OF_FILE, Server, from_file, is_tools};
use crate::stream::look_into;

/// The arguments by their meaning: if a server is named, a document is optional.
struct Request<'a> {
    /// The snapshot of the server.
    snapshot: Option<&'a str>,
    operation: &'a str,
    /// The properties of the input.
    values: Vec<String>,
}

impl<'a> Request<'a> {
    fn of(arguments: &'a CallArguments, is_config: bool) -> Result<Self, Failure> {
        let CallArguments { spec, operation, values, .. } = arguments;
        let unnamed = || Failure::Usage("name a tool of the server: `ops inspect` shows all that there are".to_owned());
        if is_config {
            let operation = operation.as_deref().ok_or_else(unnamed)?;
            return Ok(Self { snapshot: None, operation, values: values.clone() });
        }
        match operation.as_deref() {
            Some(operation) if is_tools(spec) => Ok(Self { snapshot: Some(spec), operation, values: values.clone() }),
            _ if holds_api(spec) => {
                let message = format!("`{spec}` is a document, and its operations are called without a server");
                let hint =
                    "leave out `--url`, `--config`, and what is behind `--`; a property of the input is `NAME=VALUE`";
                Err(Failure::Usage(format!("{message}: {hint}")))
            }
            // In place of the operation is the first property of the input.
            first => {
                let values = first.into_iter().map(str::to_owned).chain(values.iter().cloned());
                Ok(Self { snapshot: None, operation: spec, values: values.collect() })
            }
        }
    }
}

/// True for the file of an OpenAPI document, where the name of a tool is expected.
fn holds_api(spec: &str) -> bool {
    Path::new(spec).is_file() && openapi::parse(&look_into(spec)).is_ok_and(|value| kind(&value) == Kind::OpenApi)
}

pub(super) fn run(arguments: &CallArguments, is_config: bool) -> Result<(), Failure> {
    let request = Request::of(arguments, is_config)?;
    if arguments.base_url.is_some() {
        return Err(Failure::Usage("`--base-url` is for documents: an MCP server has its own URL".to_owned()));
    }
    if arguments.credentials.credentials_env.is_some() {
        let message = "`--credentials-env` is for documents, which say what each operation asks for";
        return Err(Failure::Usage(format!("{message}: an MCP server takes `--bearer-env` or `--header`")));
    }
    let servers = match (is_config, arguments.server.is_given()) {
        (true, true) => {
            return Err(Failure::Usage("name a configuration or a server, not both".to_owned()));
        }
        (true, false) => {
            arguments.credentials.given.refuse(OF_FILE)?;
            from_file(Path::new(&arguments.spec), arguments.server.server.as_deref())?
        }
        (false, _) => arguments.server.servers(&arguments.credentials.given)?,
    };
    let server = choose(&servers, request.operation)?;
    runtime()?.block_on(async {
        let progress = Progress::start("connecting");
        let client = server.connect(arguments.timeout).await?;
        drop(progress);
        let called = call(arguments, &request, &client, server).await;
        client.close().await;
        called
    })
}

/// The server that has the operation, by its namespace, if there are several.
fn choose<'s>(servers: &'s [Server], operation: &str) -> Result<&'s Server, Failure> {
    let namespace = operation.split_once('.').map(|(namespace, _)| namespace);
    let named = servers.iter().find(|server| namespace.is_some() && server.namespace().as_deref() == namespace);
    match (servers, named) {
        ([only], _) | (_, Some(only)) => Ok(only),
        _ => {
            let names: Vec<String> = servers.iter().map(|server| format!("`{}`", server.label())).collect();
            let message = format!("which server has `{operation}`? Name it by `--server`: {}", names.join(", "));
            Err(Failure::Usage(message))
        }
    }
}

async fn call(
    arguments: &CallArguments,
    request: &Request<'_>,
    client: &McpClient,
    server: &Server,
) -> Result<(), Failure> {
    let registrations: Vec<Registration> = match request.snapshot {
        Some(file) => {
            let list: Value = serde_json::from_str(&look_into(file)).unwrap_or_default();
            let (api, _) = tools(&list, server.namespace().as_deref())?;
            client.bind(api.operations)
        }
        None => client.bind(client.operations()),
    }
    .map_err(|error| Failure::Failed(error.message().to_owned()))?;
    for diagnostic in client.diagnostics() {
        tell("warning", &diagnostic.message);
    }
    let spec = find(&registrations, request.operation, request.snapshot.or(server.name.as_deref()))?;
    let input = input(arguments, &request.values, &spec)?;
    let registry = Registry::new();
    registry.register_all(registrations).map_err(|error| Failure::Failed(error.to_string()))?;
    once(&registry, &spec, input, arguments, &server.lack()).await
}
