//! A module for each server that calls were recorded of, and the list of the calls, each beside the type of its tool.
//!
//! The directory is the one of `OPS_MCP`, else our own: `calls/NAME.json` holds calls of the tools in `tools/NAME.json`,
//! and files in folders called `sessions-*` hold whole sessions, their lists of tools among them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ops_codegen::Builder;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

/// Calls of one server.
struct Server {
    name: String,
    /// The file with its tools.
    tools: PathBuf,
    /// `{ "request": { "name", "arguments" }, "result" }`
    calls: Vec<Value>,
}

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-env-changed=OPS_MCP");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join(std::env::var_os("OPS_MCP").unwrap_or_else(|| "tests/fixtures/mcp".into()));
    println!("cargo::rerun-if-changed={}", folder.display());
    let (mut modules, mut cases, mut recorded) = (String::new(), String::new(), Vec::new());
    for (at, server) in servers(&folder, &out)?.iter().enumerate() {
        let types = types(server, at, &out)?;
        let schemas = schemas(&server.tools)?;
        let file = out.join(format!("server_{at}.rs"));
        writeln!(modules, "#[allow(dead_code, unreachable_pub)]\nmod server_{at} {{ include!({file:?}); }}")?;
        for call in &server.calls {
            let tool = call["request"]["name"].as_str().ok_or_else(|| format!("{}: a call of no tool", server.name))?;
            let (server, number) = (&server.name, recorded.len());
            match types.get(tool) {
                Some(name) => writeln!(cases, "    run.call::<server_{at}::{name}>({server:?}, {number});")?,
                None => writeln!(cases, "    run.unknown({server:?}, {number});")?,
            }
            let mut call = call.clone();
            call["schema"] = schemas.get(tool).cloned().unwrap_or_default();
            recorded.push(call);
        }
    }
    // Each has the schema of its tool as the server wrote it.
    std::fs::write(out.join("calls.json"), Value::from(recorded).to_string())?;
    let folder = folder.display().to_string();
    let cases = format!("{modules}\nconst FOLDER: &str = {folder:?};\n\nfn cases(run: &mut Run) {{\n{cases}}}\n");
    std::fs::write(out.join("cases.rs"), cases)?;
    Ok(())
}

/// Generates the module of a server, and gives the types of its operations by tool.
fn types(server: &Server, at: usize, out: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut modules = Builder::new().mcp(&server.tools).with_namespace(format!("server_{at}")).generate()?;
    let module = modules.pop().ok_or("nothing was generated")?;
    let names = module.generated.source.lines().filter_map(|line| line.strip_prefix("impl ops::Operation for "));
    let names = names.map(|line| line.trim_end_matches(" {").to_owned());
    let tools = module.operations.iter().map(|spec| spec.name().to_owned());
    std::fs::write(out.join(format!("server_{at}.rs")), &module.generated.source)?;
    Ok(tools.zip(names).collect())
}

/// The schemas of the inputs of a list of tools, by their names.
fn schemas(file: &Path) -> Result<BTreeMap<String, Value>, Error> {
    let list = read(file)?;
    let tools = list.get("tools").or_else(|| list.get("result")?.get("tools")).unwrap_or(&list);
    let tools = tools.as_array().ok_or_else(|| format!("{}: no list of tools", file.display()))?;
    let schemas =
        tools.iter().filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool["inputSchema"].clone())));
    Ok(schemas.collect())
}

fn servers(folder: &Path, out: &Path) -> Result<Vec<Server>, Error> {
    let mut servers = Vec::new();
    for file in files(&folder.join("calls"))? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let calls = list(&read(&file)?, "calls", &file)?;
        servers.push(Server { tools: folder.join("tools").join(format!("{name}.json")), name, calls });
    }
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    folders.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sessions-")));
    folders.sort();
    for file in folders.iter().map(|folder| files(folder)).collect::<Result<Vec<_>, _>>()?.iter().flatten() {
        servers.extend(session(file, out, servers.len())?);
    }
    Ok(servers)
}

/// The server of a session, if its tools were listed; calls that gave no result are none of a tool.
fn session(file: &Path, out: &Path, at: usize) -> Result<Option<Server>, Error> {
    let session = read(file)?;
    let exchanges = list(&session, "exchanges", file)?;
    let of = |method: &'static str| exchanges.iter().filter(move |exchange| exchange["method"] == *method).cloned();
    let Some(list) = of("tools/list").find(|exchange| exchange["response"]["result"]["tools"].is_array()) else {
        return Ok(None);
    };
    let tools = out.join(format!("tools_{at}.json"));
    std::fs::write(&tools, list["response"].to_string())?;
    let calls = of("tools/call").filter(|exchange| exchange["response"]["result"].is_object());
    let calls =
        calls.map(|exchange| json!({ "request": exchange["params"], "result": exchange["response"]["result"] }));
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let name = format!("{folder}/{}", file.file_stem().unwrap_or_default().to_string_lossy());
    Ok(Some(Server { name, tools, calls: calls.collect() }))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}

/// A list that a recording must have, and not an empty one.
fn list(recording: &Value, name: &str, file: &Path) -> Result<Vec<Value>, Error> {
    let list = recording[name].as_array().filter(|list| !list.is_empty());
    Ok(list.cloned().ok_or_else(|| format!("{}: no `{name}`", file.display()))?)
}

fn read(file: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?)
}
