//! Generated code, compiled and run: JSON is read into an operation's input type, and that is sent.
//!
//! One program has the operations of all documents, each in a package of its own, in a workspace below `target/requests`
//! that shares the target directory and the dependencies of the tests. It reads calls as lines of JSON and answers each
//! by a line: what the type made of the input, and what the call said.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

mod package;

/// A document to be generated, under a namespace.
#[derive(Debug, Clone)]
pub struct Source {
    /// The namespace, which names the package as well.
    pub namespace: String,
    /// The document.
    pub path: PathBuf,
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
        let (program, failures) = package::build(sources).await?;
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
