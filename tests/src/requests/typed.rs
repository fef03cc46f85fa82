//! Generated code, compiled and run: JSON is read into an operation's input type, and that is sent.
//!
//! One program has the operations of all documents, each in a package of its own, in a workspace below `target/requests`
//! that shares the target directory and the dependencies of the tests. It reads calls as lines of JSON and answers each
//! by a line: what the type made of the input, and what the call said.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::package::{Package, Program};
use crate::corpus;

/// Runs one operation of any type.
const PROGRAM: Program = Program {
    name: "requests",
    kit: include_str!("typed/kit.txt"),
    main: include_str!("typed/program.txt"),
    listed: "OPERATIONS",
};

/// A document to be generated, under a namespace.
#[derive(Debug, Clone)]
pub struct Source {
    /// The namespace, which names the package as well.
    pub namespace: String,
    /// The document.
    pub path: PathBuf,
}

impl Source {
    /// The documents among the files of a directory, each under a namespace of its own; of names that begin so, if any are
    /// wanted.
    pub fn all(directory: &Path, files: &[PathBuf], wanted: &[String]) -> Vec<Self> {
        let mut sources: Vec<Self> = Vec::new();
        for file in files {
            let name = file.strip_prefix(directory).unwrap_or(file).display().to_string();
            let is_wanted = wanted.is_empty() || wanted.iter().any(|wanted| name.starts_with(wanted.as_str()));
            if is_wanted && corpus::holds_document(file) {
                let letters =
                    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
                let namespace = format!("of_{}_{}", sources.len(), letters.collect::<String>());
                sources.push(Self { namespace, path: file.clone() });
            }
        }
        sources
    }
}

/// A program with the generated operations of some documents.
#[derive(Debug)]
pub struct Typed {
    // Killed when dropped.
    _child: Child,
    calls: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    failures: Vec<(String, String)>,
}

impl Typed {
    /// Generates, compiles and starts the program.
    ///
    /// # Errors
    /// If that goes wrong for all documents; what goes wrong for one is in [`failure`](Self::failure).
    pub async fn start(sources: &[Source]) -> Result<Self, String> {
        let (mut packages, mut failures) = (Vec::new(), Vec::new());
        for source in sources {
            match package(source) {
                Ok(package) => packages.push(package),
                Err(error) => failures.push((source.namespace.clone(), error)),
            }
        }
        let (program, broken) = PROGRAM.build(&packages).await?;
        failures.extend(broken);
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let calls = child.stdin.take().ok_or("the program has no input")?;
        let answers = child.stdout.take().ok_or("the program has no output")?;
        Ok(Self { _child: child, calls, answers: BufReader::new(answers).lines(), failures })
    }

    /// Why the document of a namespace is not in the program, if it is not.
    pub fn failure(&self, namespace: &str) -> Option<&str> {
        self.failures.iter().find(|(own, _)| own == namespace).map(|(_, why)| why.as_str())
    }

    /// Has an operation executed with an input; gives the input as the type writes it, and what the call said.
    ///
    /// # Errors
    /// If the input is none for the type, or if the program has ended.
    pub async fn send(&mut self, url: &str, id: &str, input: &Value) -> Result<(Value, String), String> {
        let line = format!("{}\n", json!({ "url": url, "id": id, "input": input.to_string() }));
        self.calls.write_all(line.as_bytes()).await.map_err(|error| error.to_string())?;
        let answer = self.answers.next_line().await.map_err(|error| error.to_string())?;
        let mut answer: Value =
            answer.and_then(|line| serde_json::from_str(&line).ok()).ok_or("the program has ended")?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok((answer["input"].take(), answer["said"].as_str().unwrap_or_default().to_owned())),
        }
    }
}

/// The package of a document: its generated code, and how each operation is run.
fn package(source: &Source) -> Result<Package, String> {
    let module = ops_codegen::Builder::new().openapi(&source.path).with_namespace(&source.namespace).generate();
    let module = module.map_err(|error| error.to_string())?.pop().ok_or("no module")?;
    let text = &module.generated.source;
    let operations = text.lines().filter_map(|line| {
        let (kind, name) = line.trim().strip_prefix("impl ops::")?.strip_suffix(" {}")?.split_once(" for super::")?;
        let run = match kind {
            "Call" => "call",
            "Subscribe" => "subscribe",
            _ => return None,
        };
        Some(format!("    (<{name} as ops::Operation>::SPEC, requests_kit::{run}::<{name}>),\n"))
    });
    let operations: String = operations.collect();
    let text = format!(
        "{text}\n/// How each operation is run.\n\
         pub static OPERATIONS: &[(&ops::OperationSpec, requests_kit::Run)] = &[\n{operations}];\n"
    );
    Ok(Package { name: source.namespace.clone(), source: text, build_script: None })
}
