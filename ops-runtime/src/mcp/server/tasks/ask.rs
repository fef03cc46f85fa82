//! Questions of a task to its client. Questions and answers are stored as steps of its job: the worker writes the
//! questions, and the server from which the client reads the task writes the answers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{InputRequest, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::wire::RELATED;
use crate::durable::engine::Engine;
use crate::durable::record::JobRecord;
use crate::durable::{JobId, Scope};
use crate::mcp::server::question::{CAPABILITIES, checked, declares, input_request, is_answer, unsupported};
use crate::model::clock::millis;
use crate::{CallError, Context, ErrorCode};

/// The member of a job's metadata with the capabilities of its client.
const CLIENT: &str = "io.modelcontextprotocol/task";
/// How many questions a task may ask.
const MAX: usize = 100;
/// How long questions and answers are kept if the task has no deadline.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The first and the longest delay between two polls for an answer.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What a client can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Client {
    asks: Vec<String>,
    /// How long the client may take to answer, in milliseconds.
    patience: u64,
}

impl Client {
    pub(super) fn new(capabilities: Option<&Value>, patience: Duration) -> Self {
        let asks = CAPABILITIES.iter().filter(|name| capabilities.is_some_and(|all| declares(all, name)));
        Self { asks: asks.map(|name| (*name).to_owned()).collect(), patience: millis(patience) }
    }

    /// The client in the metadata of a job.
    pub(super) fn of(metadata: &Map<String, Value>) -> Option<Self> {
        Self::deserialize(metadata.get(CLIENT)?).ok()
    }

    pub(super) fn write(&self, metadata: &mut Map<String, Value>) {
        metadata.insert(CLIENT.to_owned(), json!({ "asks": self.asks, "patience": self.patience }));
    }

    /// How long a question still waits for its answer. `None` if it was not answered in time.
    fn left(&self, question: &Question, now: u64) -> Option<Duration> {
        let left = question.at.saturating_add(self.patience).checked_sub(now);
        left.filter(|left| *left > 0).map(Duration::from_millis)
    }

    /// True if there may be questions.
    pub(super) fn can_be_asked(&self) -> bool {
        !self.asks.is_empty()
    }
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) key: String,
    pub(super) method: String,
    params: Value,
    /// When it was asked.
    pub(super) at: u64,
}

impl Question {
    /// True if the answer to another question answers this one, too: the user was shown the same.
    fn is_same(&self, other: &Self) -> bool {
        (&self.key, &self.method, &self.params) == (&other.key, &other.method, &other.params)
    }

    /// In the form of the protocol.
    pub(super) fn request(&self) -> Option<InputRequest> {
        input_request(&self.method, self.params.clone()).ok()
    }

    /// The parameters of the question, with the task to which it belongs.
    pub(super) fn with_related(&self, id: &JobId) -> Value {
        let mut params = self.params.clone();
        if let Value::Object(members) = &mut params {
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                meta.insert(RELATED.to_owned(), json!({ "taskId": id.as_str() }));
            }
        }
        params
    }
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Given(Value),
    Refused(CallError),
}

fn question_name(number: usize) -> String {
    format!("mcp/ask/{number}")
}

fn answer_name(number: usize) -> String {
    format!("mcp/answer/{number}")
}

/// Until when questions and answers of a task are kept: as long as the task itself may be, since they may be confidential.
pub(super) fn kept_until(job: &JobRecord, now: u64) -> u64 {
    match job.deadline {
        Some(deadline) => deadline.saturating_add(job.retention),
        None => now.saturating_add(millis(RETENTION)),
    }
}

fn unreadable(error: &serde_json::Error) -> CallError {
    CallError::execution(format!("what is kept of a question can't be read: {error}"))
}

/// The pending questions of a task, with their numbers; and when the last question was asked. A question whose time has
/// passed is left out.
///
/// The second missing number in a row ends the search: a single one may be a question that a new leader of a cluster does not
/// show yet. If the retention of some questions may have ended, all numbers are looked up, so that missing questions do not hide
/// later ones.
///
/// Each has a key of its own, by which clients know what they have answered: a question that is asked again under the key
/// `sure` has the key `sure#2`.
pub(super) async fn pending(
    engine: &dyn Engine,
    job: &JobRecord,
    client: &Client,
) -> Result<(Vec<(usize, Question)>, u64), CallError> {
    let (id, most) = (&job.id, if may_have_lost(job, engine.now()) { MAX } else { 1 });
    let (mut waiting, mut last, mut keys, mut missing) = (Vec::new(), 0, HashSet::new(), 0);
    for number in 0..MAX {
        let Some(question) = engine.step(id, &question_name(number)).await? else {
            missing += 1;
            if missing > most {
                break;
            }
            continue;
        };
        missing = 0;
        let mut question: Question = serde_json::from_str(&question).map_err(|error| unreadable(&error))?;
        last = last.max(question.at);
        question.key = unused(&keys, question.key);
        keys.insert(question.key.clone());
        if client.left(&question, engine.now()).is_some() && !is_answered(engine, id, number).await? {
            waiting.push((number, question));
        }
    }
    Ok((waiting, last))
}

/// True if some questions of a task may have been removed: those of an earlier run, and, if the task has no deadline, those
/// that are older than the retention.
fn may_have_lost(job: &JobRecord, now: u64) -> bool {
    job.retried || job.deadline.is_none() && now.saturating_sub(job.submitted) >= millis(RETENTION)
}

/// A key, with a number if an earlier question of the task has it.
fn unused(keys: &HashSet<String>, key: String) -> String {
    if !keys.contains(&key) {
        return key;
    }
    let mut numbered = (2..).map(|number: usize| format!("{key}#{number}"));
    numbered.find(|numbered| !keys.contains(numbered)).unwrap_or(key)
}

async fn is_answered(engine: &dyn Engine, id: &JobId, number: usize) -> Result<bool, CallError> {
    Ok(engine.step(id, &answer_name(number)).await?.is_some())
}

/// The error of a question that a step asks.
fn in_step(method: &str) -> CallError {
    let message = format!(
        "`{method}` is not possible in a step of a task: the client only reads the task itself. Ask in its handler, before \
         the step, or call the operation by `env()` in place of `once`"
    );
    CallError::new("UNSUPPORTED", message)
}

/// Stores an answer until that time, unless there is one.
pub(super) async fn answer(
    engine: &dyn Engine,
    id: &JobId,
    number: usize,
    answer: &Answer,
    until: u64,
) -> Result<(), CallError> {
    let text = serde_json::to_string(answer).map_err(|error| unreadable(&error))?;
    let limit = engine.limits().max_result;
    if text.len() > limit {
        let message = format!("the answer is {} bytes as JSON, and the engine keeps up to {limit}", text.len());
        return Err(CallError::new(ErrorCode::ValidationError, message));
    }
    let retention = Duration::from_millis(until.saturating_sub(engine.now()));
    engine.keep_step(id, &answer_name(number), &text, retention).await.map(drop)
}

/// Stores answers to pending questions until that time. Invalid answers are skipped, and so are answers without a question.
pub(super) async fn answer_all(
    engine: &dyn Engine,
    id: &JobId,
    questions: &[(usize, Question)],
    answers: InputResponses,
    until: u64,
) -> Result<(), CallError> {
    for (number, question) in questions {
        if let Some(given) = answers.get(&question.key).filter(|given| is_answer(&question.method, given)) {
            answer(engine, id, *number, &Answer::Given(given.clone()), until).await?;
        }
    }
    Ok(())
}

/// A question that waits for its answer. If this is dropped before, the same question of this attempt takes its place.
struct Asked {
    scope: Arc<Scope>,
    number: usize,
    is_answered: bool,
}

impl Asked {
    /// The question has its answer.
    fn keep(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_answered {
            self.scope.leave_question(self.number);
        }
    }
}

/// The client that polls this call's task.
#[derive(Clone)]
pub(in crate::mcp::server) struct JobPeer {
    scope: Arc<Scope>,
    client: Client,
}

impl JobPeer {
    /// The client of the task that runs this handler, or of the task of which it is a step. `None` if it is neither.
    ///
    /// A step is a job of its own, which no client reads as a task. The client of its task is seen all the same, so that
    /// a handler which asks before it changes something does not go on unasked: its question fails.
    pub(in crate::mcp::server) fn of(context: &Context) -> Option<Self> {
        let scope = context.extension::<Arc<Scope>>()?;
        let job = scope.job();
        // Steps have the metadata of their job. The metadata of other jobs may be anybody's.
        let client = Client::of(&job.metadata).filter(|_| job.via.is_some() || job.trusted)?;
        Some(Self { client, scope: scope.clone() })
    }

    pub(in crate::mcp::server) fn id(&self) -> &JobId {
        &self.scope.job().id
    }

    pub(in crate::mcp::server) fn supports(&self, capability: &str) -> bool {
        self.client.asks.iter().any(|own| own == capability)
    }

    pub(in crate::mcp::server) async fn ask(
        &self,
        key: &str,
        method: &str,
        capability: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        if self.scope.job().via.is_none() {
            return Err(in_step(method));
        }
        if !self.supports(capability) {
            return Err(unsupported(capability));
        }
        checked(method, &params)?;
        let (asked, left) = self.put(key, method, params).await?;
        match tokio::time::timeout(left, self.answered(asked.number)).await {
            Ok(Ok(answer)) => {
                asked.keep();
                match answer {
                    Answer::Given(answer) => Ok(answer),
                    Answer::Refused(error) => Err(error),
                }
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let message = format!("the client did not answer within {} ms (`ask_timeout`)", self.client.patience);
                Err(CallError::new(ErrorCode::Timeout, message))
            }
        }
    }

    /// Stores a question, and returns how long its answer is awaited.
    ///
    /// An earlier attempt may have stored the same question, with the same key, method and parameters. Then that one is
    /// used, unless it was not answered in time: then it is asked again. Within an attempt, each is used once, since the
    /// answer to a question is no answer to the next one.
    async fn put(&self, key: &str, method: &str, params: Value) -> Result<(Asked, Duration), CallError> {
        let engine = self.scope.jobs.engine();
        let question = Question { key: key.to_owned(), method: method.to_owned(), params, at: engine.now() };
        let text = serde_json::to_string(&question).map_err(|error| unreadable(&error))?;
        let limit = engine.limits().max_result;
        if text.len() > limit {
            let message = format!("the question is {} bytes as JSON, and the engine keeps up to {limit}", text.len());
            return Err(CallError::new(ErrorCode::ValidationError, message));
        }
        let now = engine.now();
        let retention = Duration::from_millis(kept_until(self.scope.job(), now).saturating_sub(now));
        for number in 0..MAX {
            let kept = engine.keep_step(self.id(), &question_name(number), &text, retention).await?;
            let kept: Question = serde_json::from_str(&kept).map_err(|error| unreadable(&error))?;
            if !kept.is_same(&question) {
                continue;
            }
            let left = self.client.left(&kept, engine.now());
            if left.is_none() && kept != question && !is_answered(engine, self.id(), number).await? {
                continue;
            }
            if self.scope.take_question(number) {
                let asked = Asked { scope: self.scope.clone(), number, is_answered: false };
                return Ok((asked, left.unwrap_or(Duration::from_millis(self.client.patience))));
            }
        }
        Err(CallError::new(ErrorCode::ValidationError, format!("a task asks up to {MAX} questions")))
    }

    /// Waits for an answer.
    async fn answered(&self, number: usize) -> Result<Answer, CallError> {
        let engine = self.scope.jobs.engine();
        let mut wait = LOOK.0;
        loop {
            if let Some(answer) = engine.step(self.id(), &answer_name(number)).await? {
                return serde_json::from_str(&answer).map_err(|error| unreadable(&error));
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(LOOK.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::InMemory;

    #[test]
    fn questions_are_kept_as_long_as_their_task() {
        let id: JobId = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut job = JobRecord::new(id, "job.ask", serde_json::value::RawValue::NULL.to_owned());
        job.retention = 7;
        assert_eq!(kept_until(&job, 100), 100 + millis(RETENTION));
        job.deadline = Some(1_000);
        assert_eq!(kept_until(&job, 100), 1_007);
        job.retention = u64::MAX;
        assert_eq!(kept_until(&job, 100), u64::MAX);
    }

    #[tokio::test]
    async fn a_question_that_is_kept_no_longer_hides_none() {
        let engine = InMemory::new();
        let id: JobId = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut job = JobRecord::new(id.clone(), "job.ask", serde_json::value::RawValue::NULL.to_owned());
        job.submitted = engine.now();
        for number in [1, 3, 6] {
            let (key, method) = (number.to_string(), "elicitation/create".to_owned());
            let question = Question { key, method, params: json!({}), at: engine.now() };
            let text = serde_json::to_string(&question).unwrap();
            engine.keep_step(&id, &question_name(number), &text, RETENTION).await.unwrap();
        }
        let numbers = async |job: &JobRecord| {
            let (waiting, _) = pending(&engine, job, &Client::new(None, RETENTION)).await.unwrap();
            waiting.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&job).await, [1, 3]);
        // Two missing numbers in a row do not end the search either, if their questions may have been removed.
        let retried = JobRecord { retried: true, ..job.clone() };
        assert_eq!(numbers(&retried).await, [1, 3, 6]);
        let mut old = job.clone();
        old.submitted -= millis(RETENTION);
        assert_eq!(numbers(&old).await, [1, 3, 6]);
        old.deadline = Some(u64::MAX);
        assert_eq!(numbers(&old).await, [1, 3]);
    }

    #[test]
    fn each_question_has_a_key_of_its_own() {
        let mut keys = HashSet::new();
        for (key, expected) in
            [("sure", "sure"), ("name", "name"), ("sure", "sure#2"), ("sure#2", "sure#2#2"), ("sure", "sure#3")]
        {
            let own = unused(&keys, key.to_owned());
            assert_eq!(own, expected);
            keys.insert(own);
        }
    }
}
