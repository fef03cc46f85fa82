//! `ops serve`: documents and MCP servers behind one server, or a mock server.

mod callers;
mod config;
mod credentials;
mod doors;
mod folder;
mod gateway;
mod host;
mod listening;
mod log;
mod mock;
mod upstreams;
mod warnings;

use ops_codegen::folder::check_namespace;

use crate::arguments::ServeArguments;
use crate::failure::Failure;
use crate::modules::is_list;

/// Where HTTP is served unless something else is said.
const ADDRESS: &str = "127.0.0.1:8080";

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    if let Some(list) = arguments.spec.iter().find(|spec| is_list(spec)) {
        let message = "pass the file of a gateway by `--config`, and name the documents of an `ops.toml` themselves";
        return Err(Failure::Usage(format!("`{list}` is no document: {message}")));
    }
    if let Some(namespace) = &arguments.namespace {
        check_namespace(namespace).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    // Without MCP, a mock server is one for the requests of the document themselves.
    let is_mock_server =
        arguments.mock && arguments.mcp.is_none() && arguments.tools.is_none() && arguments.config.is_none();
    if arguments.print_config {
        return host::print(arguments, is_mock_server);
    }
    if is_mock_server {
        return mock::run(arguments);
    }
    log::start();
    gateway::run(arguments)
}
