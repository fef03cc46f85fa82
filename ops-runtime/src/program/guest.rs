//! The host's state for one program, and its messages from the script in the sandbox.
//!
//! Everything from the sandbox is untrusted: it is checked here, whatever `bootstrap.js` does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use serde_json::json;
use wasmi::ResourceLimiter;
use wasmi_core::LimiterError;

use crate::model::json::is_deeper;
use crate::program::exact::Mark;
use crate::program::functions::Functions;
use crate::program::journal::DEPTH;
use crate::program::late::Late;
use crate::program::limits::Limits;
use crate::program::outcome::{Failure, Log, Reason};
use crate::record::{DecodeError, from_str};

/// The longest path of names whose lookup is cached, in bytes.
const KEPT: usize = 300;

/// The longest path and the longest failure that are read, in bytes. `bootstrap.js` shortens failures to less, but a
/// program can replace the functions that it uses for that.
const READ: usize = 128 << 10;

/// Upper bound of the memory of a JSON value beside its text, in bytes, with the spare room of collections: a member of
/// an object counts as two.
const NODE: usize = 2 * std::mem::size_of::<Value>();

/// How many unknown names each program may have compared with the known ones: a comparison is a pass over all of them,
/// which takes no fuel.
const COMPARED: usize = 64;

/// A message of the script.
pub(super) enum Message {
    /// It calls an operation.
    Call { number: usize, target: Target, input: Value },
    /// The program returned a value.
    Done(Value),
    /// The program threw.
    Failed(Failure),
}

/// The target of a program's call.
pub(super) enum Target {
    Operation(String),
    Search,
    Describe,
}

/// The host's state for one program.
pub(super) struct Guest {
    pub(super) memory: Meter,
    pub(super) outbox: Vec<Message>,
    pub(super) logs: Vec<Log>,
    pub(super) logs_left_out: usize,
    pub(super) late: Late,
    pub(super) calls: usize,
    /// The clock of the program, in milliseconds since 1970.
    pub(super) now: u64,
    /// The reason why the host ended the program.
    pub(super) ended: Option<Failure>,
    pub(super) reply: Vec<u8>,
    /// The prefix of whole numbers that are `BigInt`s in the program.
    pub(super) mark: Mark,
    functions: Arc<Functions>,
    known: HashMap<String, Value>,
    limits: Arc<Limits>,
    log_bytes: usize,
    traffic: usize,
    /// The number of names that were compared.
    compared: usize,
}

impl Guest {
    pub(super) fn new(functions: Arc<Functions>, limits: Arc<Limits>, total: Arc<AtomicUsize>, now: u64) -> Self {
        Self {
            memory: Meter {
                engine: 0,
                kept: 0,
                held: 0,
                own: limits.memory,
                total: limits.total_memory,
                all: total,
                refused: false,
            },
            outbox: Vec::new(),
            logs: Vec::new(),
            logs_left_out: 0,
            late: Late::default(),
            calls: 0,
            now,
            ended: None,
            reply: Vec::new(),
            mark: Mark::new(),
            functions,
            known: HashMap::new(),
            limits,
            log_bytes: 0,
            traffic: 0,
            compared: 0,
        }
    }

    /// Handles a message of the script. An error ends the program.
    pub(super) fn hear(&mut self, kind: u32, text: &str) -> Result<(), Failure> {
        self.reply = match kind {
            1 => self.has(text).to_string().into_bytes(),
            3 => {
                self.call(text)?;
                Vec::new()
            }
            4 => {
                self.log(text);
                Vec::new()
            }
            5 => {
                let value = self.returned(text)?;
                self.outbox.push(Message::Done(value));
                Vec::new()
            }
            6 => {
                self.outbox.push(Message::Failed(thrown(text)?));
                Vec::new()
            }
            7 => {
                self.unheard(text);
                Vec::new()
            }
            8 => {
                if let Ok(number) = serde_json::from_str(text) {
                    self.late.heard(number);
                }
                Vec::new()
            }
            _ => return Err(unexpected()),
        };
        Ok(())
    }

    /// Counts an input or a result: its bytes, and the memory of its values in the host.
    pub(super) fn count(&mut self, text: &str) -> Result<(), Failure> {
        self.traffic = self.traffic.saturating_add(text.len());
        if self.traffic > self.limits.traffic {
            let most = self.limits.traffic;
            let reached = format!("sent and got more than {most} bytes: call for less, such as pages or single fields");
            return Err(Failure::limit(Reason::Traffic, reached, "with_traffic"));
        }
        self.keep(text)
    }

    /// Counts the memory for a JSON text that the host keeps, and for the values in it.
    fn keep(&mut self, text: &str) -> Result<(), Failure> {
        let values = text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        match self.memory.keep(values.saturating_mul(NODE).saturating_add(text.len())) {
            true => Ok(()),
            false => Err(Failure::out_of_memory()),
        }
    }

    /// True if such a namespace or operation exists, otherwise a text with suggestions.
    fn has(&mut self, path: &str) -> Value {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let text = Some(path).filter(|path| path.len() <= READ);
        let names: Vec<String> = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let answer = match names.as_slice() {
            names if self.functions.has(names) => Value::Bool(true),
            [namespace] if self.compares() => self.functions.check(namespace).err().into(),
            [namespace, name] if self.compares() => self.functions.find(namespace, name).err().into(),
            _ => Value::from("there is no such name"),
        };
        // Searching for the nearest name is a pass over all names.
        if self.known.len() < 256 && path.len() <= KEPT {
            self.known.insert(path.to_owned(), answer.clone());
        }
        answer
    }

    /// True if another name may be compared with the known ones.
    fn compares(&mut self) -> bool {
        self.compared = self.compared.saturating_add(1);
        self.compared <= COMPARED
    }

    /// `[number, namespace, name]` followed by the input, both as JSON.
    fn call(&mut self, text: &str) -> Result<(), Failure> {
        if self.calls >= self.limits.calls {
            let reached = format!("made more than {} calls", self.limits.calls);
            return Err(Failure::limit(Reason::Calls, reached, "with_calls"));
        }
        self.count(text)?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let head = values.next().and_then(Result::ok).ok_or_else(unexpected)?;
        let input = text.get(values.byte_offset()..).filter(|input| !input.is_empty()).ok_or_else(unexpected)?;
        let mut input = from_str(input).map_err(|error| too_deep("the input of a call", &error))?;
        if is_deeper(&input, DEPTH) {
            let reached = format!("the input of a call is nested more than {DEPTH} levels deep: make it flatter");
            return Err(Failure::new(Reason::Depth, reached));
        }
        let head = head.as_array().map(Vec::as_slice);
        let Some([number, namespace, name]) = head else { return Err(unexpected()) };
        let (Some(number), Some(namespace), Some(name)) = (number.as_u64(), namespace.as_str(), name.as_str()) else {
            return Err(unexpected());
        };
        if number != self.calls as u64 {
            return Err(unexpected());
        }
        let target = match (namespace, name) {
            ("", "search") => Target::Search,
            ("", "describe") => Target::Describe,
            _ => match self.functions.find(namespace, name) {
                Ok(id) => Target::Operation(id.to_owned()),
                Err(_) => return Err(unexpected()),
            },
        };
        self.mark.take(&mut input);
        self.outbox.push(Message::Call { number: self.calls, target, input });
        self.calls += 1;
        Ok(())
    }

    fn log(&mut self, text: &str) {
        let (level, text) = text.split_once(' ').unwrap_or(("log", text));
        // A line without text takes memory, too.
        let bytes = text.len() + 32;
        if self.logs_left_out > 0 || self.log_bytes + bytes > self.limits.logs {
            self.logs_left_out += 1;
            return;
        }
        self.log_bytes += bytes;
        self.logs.push(Log { level: level.chars().take(8).collect(), text: text.to_owned() });
    }

    /// `[number, call, error]` of a promise that failed while nothing waited for it. Any other text is ignored: it costs
    /// the program only a warning.
    fn unheard(&mut self, text: &str) {
        if text.len() <= READ
            && let Ok((number, call, error)) = serde_json::from_str::<(u64, Option<usize>, Value)>(text)
        {
            self.late.unheard(number, call.filter(|at| *at < self.calls), &error);
        }
    }

    fn returned(&mut self, text: &str) -> Result<Value, Failure> {
        if text.len() > self.limits.output {
            let (bytes, most) = (text.len(), self.limits.output);
            let reached =
                format!("returned {bytes} bytes of JSON, more than {most}: return less, such as a part or a sum");
            return Err(Failure::limit(Reason::Output, reached, "with_output"));
        }
        self.keep(text)?;
        let mut value = from_str(text).map_err(|error| too_deep("the result", &error))?;
        self.mark.take(&mut value);
        Ok(value)
    }
}

/// The message that starts a program.
pub(super) fn start(source: &str, input: &Value, seed: &[u32; 4], search: bool, describe: bool, mark: &Mark) -> String {
    let marked = mark.put(input);
    let input = marked.as_ref().unwrap_or(input);
    let run = json!({
        "source": source, "input": input, "seed": seed, "search": search, "describe": describe, "mark": mark.text(),
    });
    json!([run]).to_string()
}

/// The error that the program threw, as the script reports it.
fn thrown(text: &str) -> Result<Failure, Failure> {
    if text.len() > READ {
        return Ok(Failure::new(Reason::Thrown, "the program threw an error that is too long to be shown"));
    }
    let told = serde_json::from_str(text).map_err(|_| unexpected())?;
    Ok(Failure::thrown(&told))
}

fn too_deep(what: &str, error: &DecodeError) -> Failure {
    Failure::new(Reason::Depth, format!("{what} cannot be read: {error}: make it flatter if it nests deep"))
}

fn unexpected() -> Failure {
    Failure::new(Reason::Engine, "the engine said something unexpected")
}

/// The memory that each program may have regardless of the others, in bytes, so that none keeps others from running.
const BASE: usize = 2 << 20;

/// Counts the memory of a program, and of all programs of its sandbox.
pub(super) struct Meter {
    /// The bytes of the engine, and those that the host keeps for the program.
    engine: usize,
    kept: usize,
    /// The bytes of both beyond the base.
    held: usize,
    own: usize,
    total: usize,
    all: Arc<AtomicUsize>,
    /// True if more was requested than is allowed.
    pub(super) refused: bool,
}

impl Meter {
    fn take(&mut self, engine: usize, kept: usize) -> bool {
        let more = engine.saturating_add(kept).saturating_sub(BASE).saturating_sub(self.held);
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= self.total);
        let taken = engine <= self.own && self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.held += more;
            (self.engine, self.kept) = (engine, kept);
        }
        self.refused |= !taken;
        taken
    }

    /// Counts bytes that the host keeps until the program ends; false if they are too many.
    fn keep(&mut self, bytes: usize) -> bool {
        self.take(self.engine, self.kept.saturating_add(bytes))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.all.fetch_sub(self.held, Ordering::Relaxed);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        Ok(self.take(desired, self.kept))
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        Ok(desired <= 100_000)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        let functions: Functions = [("t", "echo", "t.echo")].into_iter().collect();
        Guest::new(functions.into(), Limits::new().into(), Arc::default(), 0)
    }

    #[test]
    fn long_names_are_neither_kept_nor_repeated() {
        let mut guest = guest();
        for length in [1_000, 100_000, 10_000_000] {
            for path in [json!(["x".repeat(length)]), json!(["t", "x".repeat(length)])] {
                guest.hear(1, &path.to_string()).unwrap();
                let reply = std::mem::take(&mut guest.reply);
                assert!(reply.starts_with(b"\"there is no ") && reply.len() < 300, "{length}");
            }
        }
        assert!(guest.known.is_empty());
        guest.hear(1, r#"["t","echos"]"#).unwrap();
        assert_eq!((guest.known.len(), &*guest.reply), (1, &br#""there is no ops.t.echos; nearest: echo""#[..]));
    }

    #[test]
    fn names_are_compared_a_bounded_number_of_times() {
        let mut guest = guest();
        for number in 0..1_000 {
            guest.hear(1, &json!(["t", format!("echo{number}")]).to_string()).unwrap();
            let reply = std::mem::take(&mut guest.reply);
            assert_eq!(reply.ends_with(b"nearest: echo\""), number < COMPARED, "{number}");
        }
        guest.hear(1, r#"["t","echo"]"#).unwrap();
        assert_eq!(guest.reply, b"true");
    }

    #[test]
    fn what_the_host_keeps_counts_as_memory() {
        let all = Arc::new(AtomicUsize::new(0));
        let limits = Limits::new().with_total_memory(16 << 20);
        let functions: Functions = [("t", "echo", "t.echo")].into_iter().collect();
        let mut guest = Guest::new(functions.into(), limits.into(), all.clone(), 0);
        guest.hear(3, r#"[0,"t","echo"]{"a":1}"#).unwrap();
        // Each of them takes 2 bytes of text, and many times that as a value.
        let zeros = format!(r#"[1,"t","echo"]{}"#, json!(vec![0; 500_000]));
        let failed = guest.hear(3, &zeros).unwrap_err();
        assert_eq!(failed.reason, Reason::Memory);
        assert_eq!((guest.outbox.len(), all.load(Ordering::Relaxed)), (1, 0));
        let failed = guest.hear(5, &json!(vec![0; 500_000]).to_string()).unwrap_err();
        assert_eq!(failed.reason, Reason::Memory);
        assert_eq!((guest.outbox.len(), all.load(Ordering::Relaxed)), (1, 0));
        let text = format!(r#"[1,"t","echo"]{}"#, json!("x".repeat(5 << 20)));
        guest.hear(3, &text).unwrap();
        assert!(all.load(Ordering::Relaxed) > 3 << 20);
        drop(guest);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn promises_that_fail_unheard_are_counted() {
        let mut guest = guest();
        let text = "x".repeat(10_000);
        for number in 0..1_000 {
            guest.hear(7, &json!([number, null, { "name": "TypeError", "message": text }]).to_string()).unwrap();
        }
        let told = guest.late.told(&[]).unwrap();
        assert!(told.contains("failed: TypeError: xxx") && told.contains("; and 995 more.") && told.len() < 3_000);
        for number in 0..1_000 {
            guest.hear(8, &number.to_string()).unwrap();
        }
        // A program may send anything: calls that it did not make, and what is no message.
        for text in ["[1,7,{}]", "[-1,null,{}]", "[1]", "{", ""] {
            guest.hear(7, text).unwrap();
            guest.hear(8, text).unwrap();
        }
        guest.hear(8, "1").unwrap();
        assert_eq!(guest.late.told(&[]), None);
    }

    #[test]
    fn failures_are_cut() {
        let mut guest = guest();
        for length in [5_000, 15_000, 10_000_000] {
            let text = "x".repeat(length);
            let told = json!({ "name": text, "message": text, "code": text, "stack": format!("program.js:1{text}") });
            guest.hear(6, &told.to_string()).unwrap();
            let Some(Message::Failed(failure)) = guest.outbox.pop() else { panic!("{length}") };
            assert_eq!(failure.reason, Reason::Thrown);
            let bytes = format!("{failure}{}", failure.stack).len();
            assert!((50..9_000).contains(&bytes), "{length}: {bytes}");
        }
    }
}
