//! A module for each server that calls were recorded of, and the list of the calls, each beside the type of its tool.
//!
//! The directories are our own and the one of `OPS_MCP`: `calls/NAME.json` holds calls of the tools in `tools/NAME.json`, and
//! files in folders called `sessions-*` hold whole sessions with their lists of tools. A file that is no recording is left out, and
//! the test prints it. It is no error here, because that would stop the build of the whole workspace.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ops_codegen::Builder;
use serde_json::{Value, json};

#[path = "../src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;

/// Our own recording.
const OWN: &str = "warehouse";

/// The recordings that the corpus must have: calls, and sessions with their folder. If one of the lists of tools for these calls
/// is missing, it may lack recordings, too.
const CORPUS: &[&str] = &[
    "awslabs.aws-iac-mcp-server",
    "basic-memory",
    "eslint_mcp",
    "excel-mcp-server",
    "mcp-server-git",
    "mcp-server-motherduck",
    "mcp-server-sqlite",
    "mcp-server-time",
    "modelcontextprotocol_server-budget-allocator",
    "modelcontextprotocol_server-cohort-heatmap",
    "modelcontextprotocol_server-everything",
    "modelcontextprotocol_server-filesystem",
    "modelcontextprotocol_server-memory",
    "modelcontextprotocol_server-pdf",
    "modelcontextprotocol_server-sequential-thinking",
    "sessions-2026-07-28/excel-mcp-server",
    "sessions-2026-07-28/mcp-server-git",
    "sessions-2026-07-28/mcp-server-motherduck",
    "sessions-2026-07-28/mcp-server-time",
    "yfmcp",
];

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
    let own = root.join("tests/fixtures/mcp");
    let other = std::env::var_os("OPS_MCP").map(|folder| root.join(folder)).filter(|folder| !known::is_own(folder));
    let (mut modules, mut cases, mut recorded) = (String::new(), String::new(), Vec::new());
    let (mut recordings, mut servers) = (Vec::new(), Vec::new());
    let (mut left_out, mut failed) = (Vec::new(), Vec::new());
    for folder in [&own].into_iter().chain(&other) {
        println!("cargo::rerun-if-changed={}", folder.display());
        read_folder(folder, &out, &mut recordings)?;
    }
    for recording in recordings {
        match recording {
            Ok(Some(server)) if server.calls.iter().any(|call| !call["request"]["name"].is_string()) => {
                left_out.push(format!("{}: a call of no tool", server.name));
            }
            Ok(server) => servers.extend(server),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    for (at, server) in servers.iter().enumerate() {
        let types = match types(server, at, &out) {
            Ok(types) => types,
            Err(error) => {
                failed.push(format!("{}: {error}", server.name));
                continue;
            }
        };
        let schemas = schemas(&server.tools)?;
        let file = out.join(format!("server_{at}.rs"));
        writeln!(modules, "#[allow(dead_code, unreachable_pub)]\nmod server_{at} {{ include!({file:?}); }}")?;
        for call in &server.calls {
            let tool = call["request"]["name"].as_str().unwrap_or_default();
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
    let folder = other.unwrap_or(own);
    let missing = missing(&folder.join("tools"), &servers);
    let lists = format!(
        "const FOLDER: &str = {:?};\nconst MISSING: &[&str] = &{missing:?};\nconst LEFT_OUT: &[&str] = &{left_out:?};\n\
         const FAILED: &[&str] = &{failed:?};\n",
        folder.display().to_string()
    );
    let cases = format!("{modules}\n{lists}\nfn cases(run: &mut Run) {{\n{cases}}}\n");
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

/// The required recordings that were not read: our own, and those of the corpus if all lists of their tools are there.
fn missing(tools: &Path, servers: &[Server]) -> Vec<&'static str> {
    let has_list = |name: &&str| name.contains('/') || known::is_known(&tools.join(format!("{name}.json")));
    let corpus: &[&str] = if CORPUS.iter().all(has_list) { CORPUS } else { &[] };
    let wanted = [OWN].into_iter().chain(corpus.iter().copied());
    wanted.filter(|name| servers.iter().all(|server| server.name != *name)).collect()
}

/// A server, or the reason why its file is no recording. `None` if the file lists no tools.
type Recording = Result<Option<Server>, Error>;

/// Adds the recordings of a directory.
fn read_folder(folder: &Path, out: &Path, recordings: &mut Vec<Recording>) -> Result<(), Error> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    folders.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sessions-")));
    folders.retain(|path| path.is_dir());
    folders.sort();
    let calls = folder.join("calls");
    let calls = if calls.is_dir() { files(&calls)? } else { Vec::new() };
    recordings.extend(calls.iter().map(|file| recording(folder, file)));
    for file in folders.iter().map(|folder| files(folder)).collect::<Result<Vec<_>, _>>()?.iter().flatten() {
        recordings.push(session(file, out, recordings.len()));
    }
    Ok(())
}

/// The calls of a file, with the list of the tools, which must exist.
fn recording(folder: &Path, file: &Path) -> Recording {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let tools = folder.join("tools").join(format!("{name}.json"));
    schemas(&tools)?;
    Ok(Some(Server { calls: list(&read(file)?, "calls", file)?, tools, name }))
}

/// The server of a session, if its tools were listed; calls that gave no result are none of a tool.
fn session(file: &Path, out: &Path, at: usize) -> Recording {
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
