//! `ops serve --print-config`: what an MCP host reads to start the command.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::failure::Failure;

/// Prints the entry of this very command. Paths are absolute, because hosts start their servers anywhere.
pub(super) fn print() -> Result<(), Failure> {
    let unknown = |error: std::io::Error| Failure::Failed(format!("the path of this command is unknown: {error}"));
    let command = std::env::current_exe().map_err(unknown)?;
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--print-config").map(|argument| {
        let path = Path::new(&argument);
        match std::path::absolute(path) {
            Ok(absolute) if path.exists() => absolute.to_string_lossy().into_owned(),
            _ => argument,
        }
    });
    let server = json!({ "command": command, "args": arguments.collect::<Vec<_>>() });
    let config = json!({ "mcpServers": { "ops": server } });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{config:#}").and_then(|()| stdout.flush()).map_err(Failure::output)
}
