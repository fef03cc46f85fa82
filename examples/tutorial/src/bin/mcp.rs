//! Chapter 5: an MCP server.

use ops_runtime::mcp::{McpServer, McpServerOptions};
use tutorial::{bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry(&bank::start().await?)?;
    let options = McpServerOptions::new("post", "1.0.0").with_instructions("Postage is in euros.");
    McpServer::new(registry).with_options(options).serve_stdio().await?;
    Ok(())
}
