//! Makes types of the snapshots beside this crate.

fn main() -> Result<(), ops_codegen::Error> {
    let servers = ["everything", "files", "git", "memory", "time"];
    servers
        .iter()
        .fold(ops_codegen::Builder::new(), |builder, server| builder.mcp(format!("{server}.json")))
        .build()
}
