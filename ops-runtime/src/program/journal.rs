//! The record of a program's run, with which it can be resumed.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::CallError;
use crate::model::hex::hex;
use crate::model::json::{is_deeper, weight_of};
use crate::model::random;
use crate::program::outcome::Ask;

/// The version of the JSON of journals.
const VERSION: u32 = 1;

/// How deep inputs and results of calls may be nested. Readers of JSON stop at 128 levels, of which a journal has some itself: one
/// with deeper values could be written and never read.
pub(super) const DEPTH: usize = 120;

/// What happened in a run of a program: each call, and its result.
///
/// A program is resumed by running it again from its start. Calls in the journal are not made again: they return the
/// recorded results, in the same order, at the same times and with the same random numbers.
///
/// Its JSON contains the inputs and the results of operations: protect it like those.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    version: u32,
    /// The hash of the source, of the input, and of the servers of the operations.
    program: String,
    pub(super) seed: [u32; 4],
    /// Milliseconds since 1970.
    pub(super) started: u64,
    /// Shared with the copies in stores: a journal is saved twice for each call that changes something.
    #[serde(serialize_with = "write_calls", deserialize_with = "read_calls")]
    pub(super) calls: Vec<Arc<Entry>>,
}

fn write_calls<S: Serializer>(calls: &[Arc<Entry>], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(calls.iter().map(|entry| &**entry))
}

fn read_calls<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Arc<Entry>>, D::Error> {
    Ok(Vec::<Entry>::deserialize(d)?.into_iter().map(Arc::new).collect())
}

/// A call that a program made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) input: Value,
    pub(super) state: State,
    /// True if the user was asked and approved. Older journals do not record it, so their calls are asked about again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) approved: bool,
    /// The result that the program got; `None` if it has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Answer>,
    /// Its position among the results that the program got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<usize>,
    /// When the program got it, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<u64>,
    #[serde(skip)]
    bytes: Measured,
}

/// A size that is measured once. It does not count for equality.
#[derive(Debug, Clone, Default)]
struct Measured(OnceLock<usize>);

impl PartialEq for Measured {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Entry {
    /// A call without a result.
    pub(super) fn new(id: String, input: Value, state: State) -> Self {
        let bytes = Measured::default();
        Self { id, input, state, approved: false, answer: None, order: None, at: None, bytes }
    }

    /// Records a result, its position among the results, and the time.
    pub(super) fn tell(&mut self, answer: Answer, order: usize, at: u64) {
        (self.answer, self.order, self.at) = (Some(answer), Some(order), Some(at));
        self.bytes = Measured::default();
    }

    /// Removes the result, so that the call is made again.
    fn forget(&mut self) {
        (self.answer, self.order, self.at) = (None, None, None);
        (self.state, self.bytes) = (State::Allowed, Measured::default());
    }

    fn bytes(&self) -> usize {
        *self.bytes.0.get_or_init(|| {
            let answer = match &self.answer {
                None => 0,
                Some(Answer::Value(value)) => weight_of(value),
                Some(Answer::Error { code, message, details }) => code.len() + message.len() + weight_of(details),
            };
            std::mem::size_of::<Self>() + self.id.len() + weight_of(&self.input) + answer
        })
    }

    fn say(&mut self, yes: bool) {
        self.approved = yes;
        self.state = if yes { State::Allowed } else { State::Declined };
    }
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// It may start.
    Allowed,
    /// It waits for approval.
    Asked,
    /// The user declined it.
    Declined,
    /// The policy denies it.
    Denied,
    /// Its input is invalid: the call fails, and the user is not asked.
    Refused,
    /// It was started. Without a result, it is unknown if it was carried out.
    Started,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Value(Value),
    Error {
        code: String,
        message: String,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        details: Value,
    },
}

impl From<Result<Value, CallError>> for Answer {
    fn from(result: Result<Value, CallError>) -> Self {
        let error = match result {
            Ok(value) if is_deeper(&value, DEPTH) => CallError::execution(format!(
                "the call was carried out, but its result is nested more than {DEPTH} levels deep, and is not given: ask for parts of it"
            )),
            Ok(value) => return Self::Value(value),
            Err(error) => error,
        };
        let (code, message) = (error.code().as_str().to_owned(), error.told());
        if is_deeper(error.details(), DEPTH) {
            let message = format!("{message} [cut: details that are nested more than {DEPTH} levels deep]");
            return Self::Error { code, message, details: Value::Null };
        }
        Self::Error { code, message: message.into_owned(), details: error.details().clone() }
    }
}

impl Journal {
    /// An empty journal for the program.
    pub(super) fn new(program: String, started: u64) -> Self {
        let words: [u8; 16] = random::bytes();
        let mut seed = [1; 4];
        for (word, bytes) in seed.iter_mut().zip(words.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte));
        }
        // The generator needs at least one bit that is set.
        if let Some(last) = seed.last_mut() {
            *last |= 1;
        }
        Self { version: VERSION, program, seed, started, calls: Vec::new() }
    }

    /// True if the journal is of this program.
    pub(super) fn is_of(&self, program: &str) -> bool {
        self.program == program
    }

    /// Reads a journal.
    ///
    /// # Errors
    /// If the text is not a journal, or one of another version.
    pub fn from_json(text: &str) -> Result<Self, InvalidJournal> {
        let journal: Self = serde_json::from_str(text).map_err(|error| InvalidJournal(error.to_string()))?;
        if journal.version != VERSION {
            return Err(InvalidJournal(format!("its version is {}, not {VERSION}", journal.version)));
        }
        Ok(journal)
    }

    /// The journal as JSON.
    ///
    /// # Errors
    /// If it cannot be JSON, which does not happen for journals of runs.
    pub fn to_json(&self) -> Result<String, InvalidJournal> {
        serde_json::to_string(self).map_err(|error| InvalidJournal(error.to_string()))
    }

    /// The approximate memory of the calls, in bytes. Values can take many times the length of their JSON. Each call is measured
    /// once, and again when it has a result.
    pub fn bytes(&self) -> usize {
        self.calls.iter().map(|entry| entry.bytes()).fold(0, usize::saturating_add)
    }

    /// A call, to be changed. Copies of the journal keep the old one.
    pub(super) fn call(&mut self, at: usize) -> Option<&mut Entry> {
        self.calls.get_mut(at).map(Arc::make_mut)
    }

    /// The operations of the started calls, one per call.
    #[cfg(feature = "gateway")]
    pub(crate) fn started(&self) -> impl Iterator<Item = &str> {
        let started = self.calls.iter().filter(|entry| entry.state == State::Started);
        started.map(|entry| entry.id.as_str()).filter(|id| id.contains('.'))
    }

    /// True if a call waits for approval.
    pub(crate) fn waits(&self) -> bool {
        self.calls.iter().any(|entry| entry.state == State::Asked)
    }

    /// The calls that wait for approval.
    pub fn asks(&self) -> Vec<Ask> {
        let asked = self.calls.iter().enumerate().filter(|(_, entry)| entry.state == State::Asked);
        asked.map(|(at, entry)| Ask { key: self.key(at), id: entry.id.clone(), input: entry.input.clone() }).collect()
    }

    /// Approves the call with this key.
    ///
    /// # Errors
    /// If no call with this key waits.
    pub fn approve(&mut self, key: &str) -> Result<(), UnknownAsk> {
        self.decide(key, true)
    }

    /// Declines the call with this key: it fails with `ACCESS_DENIED`, and the program may go on.
    ///
    /// # Errors
    /// If no call with this key waits.
    pub fn decline(&mut self, key: &str) -> Result<(), UnknownAsk> {
        self.decide(key, false)
    }

    fn decide(&mut self, key: &str, yes: bool) -> Result<(), UnknownAsk> {
        let at = (0..self.calls.len()).find(|at| self.key(*at) == key);
        let entry = at.and_then(|at| self.call(at)).filter(|entry| entry.state == State::Asked);
        entry.ok_or(UnknownAsk)?.say(yes);
        Ok(())
    }

    /// Records an answer; the same answer again changes nothing.
    pub(super) fn answer(&mut self, key: &str, yes: bool) -> Result<(), UnknownAsk> {
        let known = (0..self.calls.len()).find(|at| self.key(*at) == key).and_then(|at| self.call(at));
        let entry = known.ok_or(UnknownAsk)?;
        match (entry.state, yes) {
            (State::Asked, yes) => entry.say(yes),
            // The key was shown only in a question: the answer belongs to an older journal, or the policy allows the
            // call by now.
            (State::Allowed | State::Started, true) => entry.approved = true,
            (State::Declined, false) | (State::Denied, _) => {}
            _ => return Err(UnknownAsk),
        }
        Ok(())
    }

    /// The key of a call: a hash of the run, the place, the operation and the input.
    fn key(&self, at: usize) -> String {
        let Some(entry) = self.calls.get(at) else { return String::new() };
        let bound = serde_json::json!([self.program, self.seed, self.started, at, entry.id, entry.input]);
        hash(&[bound.to_string().as_bytes()]).chars().take(32).collect()
    }

    /// The calls with results, in the order of the results; `None` if the positions are not 0, 1, 2 and so on.
    pub(super) fn answered(&self) -> Option<Vec<usize>> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (at, entry) in self.calls.iter().enumerate() {
            match (entry.order, entry.answer.is_some()) {
                (Some(order), true) => found.push((order, at)),
                (None, _) => {}
                (Some(_), false) => return None,
            }
        }
        found.sort_unstable();
        found
            .iter()
            .enumerate()
            .all(|(wanted, (order, _))| wanted == *order)
            .then(|| found.into_iter().map(|(_, at)| at).collect())
    }
}

impl Journal {
    /// Removes errors with the position `from` or later, if their calls may be made again. The program must have made
    /// no call after the results before that one.
    pub(super) fn forget_errors(&mut self, from: usize, may_repeat: impl Fn(&Entry) -> bool) {
        let mut order = from;
        for at in self.answered().unwrap_or_default().into_iter().skip(from) {
            let Some(entry) = self.call(at) else { continue };
            if matches!(entry.answer, Some(Answer::Error { .. })) && may_repeat(entry) {
                entry.forget();
            } else {
                entry.order = Some(order);
                order += 1;
            }
        }
    }
}

/// The hash of texts, in hexadecimal digits.
pub(super) fn hash(texts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        // With its length, so that different lists have different hashes.
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hex(&hasher.finalize())
}

/// The error of reading a text that is not a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidJournal(String);

impl std::fmt::Display for InvalidJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the journal cannot be read: {}", self.0)
    }
}

impl std::error::Error for InvalidJournal {}

/// The error of approving or declining a call that does not wait for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownAsk;

impl std::fmt::Display for UnknownAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no call with this key waits for an answer: it may have been answered already")
    }
}

impl std::error::Error for UnknownAsk {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_share_the_calls_that_do_not_change() {
        let mut journal = Journal::new(String::new(), 0);
        for number in 0..2 {
            journal.calls.push(Arc::new(Entry::new("t.echo".to_owned(), json!(number), State::Started)));
        }
        let (saved, before) = (journal.clone(), journal.bytes());
        journal.call(1).unwrap().tell(Answer::Value(json!("x".repeat(100))), 0, 7);
        assert!(Arc::ptr_eq(&journal.calls[0], &saved.calls[0]));
        assert_eq!((saved.calls[1].answer.is_none(), saved.bytes()), (true, before));
        assert!(journal.bytes() > before + 100);
        let read = Journal::from_json(&journal.to_json().unwrap()).unwrap();
        assert_eq!((read.bytes(), &read), (journal.bytes(), &journal));
    }

    #[test]
    fn calls_count_by_the_memory_of_their_values() {
        const VALUES: usize = 1_000;
        let mut journal = Journal::new(String::new(), 0);
        let zeros = json!(vec![0; VALUES]);
        journal.calls.push(Arc::new(Entry::new("t.add".to_owned(), zeros.clone(), State::Asked)));
        let asked = journal.bytes();
        journal.call(0).unwrap().tell(Answer::Value(zeros), 0, 7);
        for bytes in [asked, journal.bytes() - asked] {
            assert!(bytes > VALUES * std::mem::size_of::<Value>(), "{bytes}");
        }
    }

    #[test]
    fn the_error_of_a_response_has_what_the_server_says() {
        let details = json!({ "statusCode": 404, "body": { "detail": "there is no parcel 9" } });
        let error = CallError::execution("HTTP 404: Not Found").with_details(details.clone());
        let message = "HTTP 404: Not Found: there is no parcel 9".to_owned();
        let wanted = Answer::Error { code: "EXECUTION_ERROR".to_owned(), message, details };
        assert_eq!(Answer::from(Err(error)), wanted);
    }
}
