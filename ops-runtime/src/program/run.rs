//! One run of a program: its turns, its calls, and its journal.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::Decision;
use crate::model::clock::processor_time;
use crate::program::engine::Instance;
use crate::program::guest::{self, Guest, Message, Target};
use crate::program::host::Host;
use crate::program::journal::{Answer, Entry, Journal, State};
use crate::program::outcome::{Failure, Outcome, Reason, Report, Waiting};
use crate::program::sandbox::{Program, Sandbox, TURN, now};
use crate::program::store::{JournalStore, StoredJournal};
use crate::run::context::{self, deadline_after, earlier, until};
use crate::{BoxFuture, CallError};

/// The ids of `search` and `describe` in journals: no operation has an id without a dot.
const SEARCH: &str = "search";
const DESCRIBE: &str = "describe";

pub(super) struct Run<'a> {
    sandbox: &'a Sandbox,
    program: &'a Program,
    host: &'a dyn Host,
    store: Option<(&'a dyn JournalStore, &'a str)>,
    journal: Journal,
    /// The calls with results in the journal, in the order of the results, as far as the program did not get them yet.
    replay: VecDeque<usize>,
    /// How many results the program got.
    told: usize,
    /// How many calls the program made.
    made: usize,
    /// How many results it got before it made the last call.
    told_before: usize,
    /// True if it went on from where its journal ended: a call was begun, or the program got a new result.
    has_gone_on: bool,
    /// Calls that may start.
    queue: VecDeque<usize>,
    /// Answers that need no call.
    ready: VecDeque<(usize, Answer)>,
    in_flight: FuturesUnordered<BoxFuture<'a, (usize, Answer)>>,
    returned: Option<Value>,
    instance: Option<Box<Instance>>,
    cpu: Duration,
    /// `None` if it is too far away to be represented.
    deadline: Option<Instant>,
    /// True if the deadline comes from the call that runs the program, and not from the program's own time limit.
    ends_with_call: bool,
    started: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        sandbox: &'a Sandbox,
        program: &'a Program,
        host: &'a dyn Host,
        journal: Journal,
        kept: Option<&'a StoredJournal<'_>>,
    ) -> Self {
        let own = deadline_after(sandbox.limits.time);
        let deadline = earlier(own, kept.and_then(|kept| kept.deadline));
        Self {
            sandbox,
            program,
            host,
            store: kept.map(|kept| (kept.store, kept.name)),
            journal,
            replay: VecDeque::new(),
            told: 0,
            made: 0,
            told_before: 0,
            has_gone_on: false,
            queue: VecDeque::new(),
            ready: VecDeque::new(),
            in_flight: FuturesUnordered::new(),
            returned: None,
            instance: None,
            cpu: Duration::ZERO,
            deadline,
            ends_with_call: deadline != own,
            started: false,
        }
    }

    pub(super) async fn run(mut self) -> Report {
        let had_pending = self.journal.calls.iter().any(|entry| entry.answer.is_none());
        let result = self.drive().await;
        let mut warnings = Vec::new();
        if let Err(failure) = &result {
            self.settle_started(failure.reason, &mut warnings).await;
        }
        let (outcome, logs, mut late) = (Outcome::Done(Value::Null), Vec::new(), None);
        let (calls, has_gone_on) = (self.made, self.has_gone_on);
        let mut report = Report { outcome, logs, calls, warnings, has_gone_on, had_pending };
        if let Some(instance) = &mut self.instance {
            let guest = instance.guest();
            report.logs = std::mem::take(&mut guest.logs);
            late = guest.late.told(&self.journal.calls);
            if guest.logs_left_out > 0 {
                let (left_out, most) = (guest.logs_left_out, self.sandbox.limits.logs);
                report.warnings.push(format!("{left_out} lines of the console were left out: it holds {most} bytes"));
            }
        }
        report.outcome = match result {
            Ok(Some(value)) => {
                report.warnings.extend(late);
                Outcome::Done(value)
            }
            Ok(None) => Outcome::Waiting(Waiting { asks: self.journal.asks(), journal: self.journal }),
            Err(failure) => Outcome::Failed(failure),
        };
        report
    }

    /// Runs the program to its end: returns its value, or `None` if it waits.
    async fn drive(&mut self) -> Result<Option<Value>, Failure> {
        let limits = &self.sandbox.limits;
        if self.program.source.len() > limits.source {
            let (bytes, most) = (self.program.source.len(), limits.source);
            return Err(Failure::limit(Reason::Source, format!("has {bytes} bytes, more than {most}"), "with_source"));
        }
        let broken = || Failure::new(Reason::Journal, "the journal cannot be read: its answers have no order");
        self.replay = self.journal.answered().ok_or_else(broken)?.into();
        let programs = self.sandbox.programs.clone();
        let _permit = self.within(programs.acquire_owned()).await?;
        self.start().await?;
        loop {
            self.turns().await?;
            if let Some(at) = self.replay.pop_front() {
                let answer = self.journal.calls.get(at).and_then(|entry| Some((entry.answer.clone()?, entry.at)));
                let Some((answer, time)) = answer.filter(|_| at < self.made) else { return Err(self.differs(at)) };
                self.tell(at, &answer, time.unwrap_or(self.journal.started))?;
                continue;
            }
            if self.made < self.journal.calls.len() {
                return Err(self.differs(self.made));
            }
            self.start_queued().await?;
            if let Some((at, answer)) = self.next().await? {
                self.answer(at, answer).await?;
                continue;
            }
            if self.journal.waits() {
                self.save().await?;
                return Ok(None);
            }
            return match self.returned.take() {
                Some(value) => {
                    self.save().await?;
                    Ok(Some(value))
                }
                None => Err(Failure::new(
                    Reason::Stuck,
                    "the program waits for a promise that nothing settles: await only calls, and promises that are made of them",
                )),
            };
        }
    }

    async fn start(&mut self) -> Result<(), Failure> {
        let (functions, limits) = (self.program.functions.clone(), self.sandbox.limits.clone());
        let guest = Guest::new(functions, limits, self.sandbox.memory.clone(), self.journal.started);
        let message = guest::start(
            &self.program.source,
            &self.program.input,
            &self.journal.seed,
            self.host.search().is_some(),
            self.host.describe().is_some(),
            &guest.mark,
        );
        let turn = self.turn().await?;
        let mut instance = in_turn(turn, move || Instance::new(guest)).await??;
        instance.give(&message)?;
        self.instance = Some(instance);
        self.started = true;
        Ok(())
    }

    /// Lets the program run until it has nothing more to do, and handles its messages.
    async fn turns(&mut self) -> Result<(), Failure> {
        loop {
            // Waiting for something that is ready does not check the clock.
            if self.deadline.is_some_and(|deadline| deadline <= context::now()) {
                return Err(self.out_of_time());
            }
            let turn = self.turn().await?;
            // Not before: what the program has written to its console is kept in it, also if time runs out before its turn.
            let Some(mut instance) = self.instance.take() else { return Err(gone()) };
            let ran = in_turn(turn, move || {
                let start = processor_time();
                let ran = instance.advance(TURN);
                (instance, ran, processor_time().saturating_sub(start))
            });
            let (instance, ran, elapsed) = ran.await?;
            self.instance = Some(instance);
            self.cpu += elapsed;
            self.hear()?;
            match ran {
                Ok(true) => return Ok(()),
                Ok(false) if self.cpu > self.sandbox.limits.cpu => {
                    let reached =
                        format!("computed for more than {:?}: leave loops, and handle less", self.sandbox.limits.cpu);
                    return Err(Failure::limit(Reason::Cpu, reached, "with_cpu"));
                }
                Ok(false) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Waits until it is the program's turn.
    async fn turn(&mut self) -> Result<OwnedSemaphorePermit, Failure> {
        let turns = self.sandbox.turns.clone();
        self.within(turns.acquire_owned()).await
    }

    fn hear(&mut self) -> Result<(), Failure> {
        let Some(instance) = &mut self.instance else { return Err(gone()) };
        for message in std::mem::take(&mut instance.guest().outbox) {
            match message {
                Message::Call { number, target, input } => self.made(number, target, input)?,
                Message::Done(value) => self.returned = Some(value),
                Message::Failed(failure) => return Err(failure.in_lines(self.program.source.lines().count())),
            }
        }
        Ok(())
    }

    /// The program made a call.
    fn made(&mut self, at: usize, target: Target, input: Value) -> Result<(), Failure> {
        let (id, is_operation) = match target {
            Target::Operation(id) => (id, true),
            Target::Search => (SEARCH.to_owned(), false),
            Target::Describe => (DESCRIBE.to_owned(), false),
        };
        (self.made, self.told_before) = (at + 1, self.told);
        let (mut yes, mut no) = (false, false);
        if let Some(entry) = self.journal.calls.get(at) {
            if entry.id != id || entry.input != input {
                return Err(self.differs(at));
            }
            if entry.answer.is_some() {
                return Ok(());
            }
            if entry.state == State::Started && is_operation && !self.host.is_query(&id) {
                let message = "the process ended while this call was under way: nobody knows whether it was carried out. Find out before it is made again";
                self.ready.push_back((at, error("OUTCOME_UNKNOWN", message)));
                return Ok(());
            }
            (yes, no) = (entry.approved, entry.state == State::Declined);
        }
        // Answers of people stay. The policy may have changed, so it is asked again.
        let decision = if is_operation { self.host.decide(&id, &input) } else { Decision::Allow };
        let state = match decision {
            Decision::Deny => State::Denied,
            _ if no => State::Declined,
            Decision::Ask if !yes => State::Asked,
            _ => State::Allowed,
        };
        let state = self.sort(at, state, &id, &input);
        match self.journal.call(at) {
            Some(entry) => entry.state = state,
            None => self.journal.calls.push(Arc::new(Entry::new(id, input, state))),
        }
        Ok(())
    }

    /// Queues a call without a result, or gives it one at once, and returns its state. A call that waits for approval
    /// becomes [`State::Refused`] if its input is invalid.
    fn sort(&mut self, at: usize, state: State, id: &str, input: &Value) -> State {
        match state {
            State::Asked | State::Refused => match self.host.check(id, input) {
                Ok(()) => return State::Asked,
                Err(refused) => {
                    self.ready.push_back((at, Answer::from(Err(refused))));
                    return State::Refused;
                }
            },
            State::Allowed | State::Started => self.queue.push_back(at),
            State::Declined => {
                self.ready.push_back((
                    at,
                    error("ACCESS_DENIED", "the call was declined: somebody was asked and did not say yes"),
                ));
            }
            State::Denied => {
                self.ready.push_back((at, error("ACCESS_DENIED", &format!("programs may not call `{id}`"))));
            }
        }
        state
    }

    /// Starts queued calls, up to the number that may be in flight.
    async fn start_queued(&mut self) -> Result<(), Failure> {
        while self.in_flight.len() < self.sandbox.limits.calls_in_flight.max(1) {
            let Some(at) = self.queue.pop_front() else { break };
            let Some(entry) = self.journal.call(at) else { return Err(gone()) };
            let before = std::mem::replace(&mut entry.state, State::Started);
            let (id, input, approved) = (entry.id.clone(), entry.input.clone(), entry.approved);
            let host = self.host;
            if !is_query(host, &id)
                && let Err(failure) = self.save().await
            {
                // The call did not begin: a journal that says it did would keep it from ever being made.
                if let Some(entry) = self.journal.call(at) {
                    entry.state = before;
                }
                return Err(failure);
            }
            self.has_gone_on = true;
            self.in_flight.push(Box::pin(async move { (at, Answer::from(call(host, &id, input, approved).await)) }));
        }
        Ok(())
    }

    /// The next result; `None` if no call is in flight.
    async fn next(&mut self) -> Result<Option<(usize, Answer)>, Failure> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        match until(self.deadline, self.in_flight.next()).await {
            Some(answer) => Ok(answer),
            None => Err(self.out_of_time()),
        }
    }

    /// Records a result, and passes it to the program.
    async fn answer(&mut self, at: usize, answer: Answer) -> Result<(), Failure> {
        self.has_gone_on = true;
        let time = now().max(self.journal.started);
        self.record(at, &answer, time);
        if self
            .journal
            .calls
            .get(at)
            .is_some_and(|entry| entry.state == State::Started && !is_query(self.host, &entry.id))
        {
            self.save().await?;
        }
        self.tell(at, &answer, time)
    }

    fn record(&mut self, at: usize, answer: &Answer, time: u64) {
        if let Some(entry) = self.journal.call(at) {
            entry.tell(answer.clone(), self.told, time);
            self.told += 1;
        }
    }

    fn tell(&mut self, at: usize, answer: &Answer, time: u64) -> Result<(), Failure> {
        let (is_error, value) = match answer {
            Answer::Value(value) => (false, Cow::Borrowed(value)),
            Answer::Error { code, message, details } => {
                (true, Cow::Owned(json!({ "code": code, "message": message, "details": details })))
            }
        };
        self.told =
            self.told.max(self.journal.calls.get(at).and_then(|entry| entry.order).map_or(0, |order| order + 1));
        let Some(instance) = &mut self.instance else { return Err(gone()) };
        let guest = instance.guest();
        let message = match guest.mark.put(&value) {
            None => json!([at, is_error, value]),
            Some(marked) => json!([at, is_error, marked, true]),
        };
        let message = message.to_string();
        guest.now = guest.now.max(time);
        guest.count(&message)?;
        instance.give(&message)
    }

    /// After a failure: waits for the started calls, so that the journal has their results.
    async fn settle_started(&mut self, reason: Reason, warnings: &mut Vec<String>) {
        while let Some(Some((at, answer))) = until(self.deadline, self.in_flight.next()).await {
            let time = now().max(self.journal.started);
            self.record(at, &answer, time);
        }
        let host = self.host;
        for entry in self.journal.calls.iter().take(self.made) {
            if entry.state == State::Started && entry.answer.is_none() && !is_query(host, &entry.id) {
                warnings.push(format!(
                    "`{}` was under way when the program ended: nobody knows whether it was carried out",
                    entry.id
                ));
            }
        }
        // The order of results is known only if all calls of the journal were made again.
        if !matches!(reason, Reason::Differs | Reason::Journal) && self.made >= self.journal.calls.len() {
            self.journal.forget_errors(self.told_before, |entry| match entry.state {
                State::Started => is_query(host, &entry.id),
                State::Denied | State::Refused => true,
                State::Allowed | State::Asked | State::Declined => false,
            });
        }
        if self.started && self.store.is_some() && self.save().await.is_err() {
            warnings.push("the journal could not be kept".to_owned());
        }
    }

    async fn save(&mut self) -> Result<(), Failure> {
        let Some((store, name)) = self.store else { return Ok(()) };
        let saved = store.save(name, &self.journal).await;
        saved.map_err(|error| {
            let is_too_large = error.kind() == io::ErrorKind::FileTooLarge;
            let reason = if is_too_large { Reason::TooLarge } else { Reason::Journal };
            Failure::new(reason, format!("the journal cannot be kept: {error}"))
        })
    }

    async fn within<T, E>(&mut self, permit: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
        match until(self.deadline, permit).await {
            Some(Ok(permit)) => Ok(permit),
            Some(Err(_)) => Err(gone()),
            None => Err(self.out_of_time()),
        }
    }

    fn out_of_time(&self) -> Failure {
        let under_way: Vec<&str> = self
            .journal
            .calls
            .iter()
            .take(self.made)
            .filter(|entry| entry.state == State::Started && entry.answer.is_none())
            .map(|entry| entry.id.as_str())
            .take(5)
            .collect();
        let waited = if under_way.is_empty() {
            String::new()
        } else {
            format!(", while it waited for {}", under_way.join(", "))
        };
        if self.ends_with_call {
            return Failure::new(Reason::Time, format!("the program took longer than its call may take{waited}"));
        }
        let reached = format!("took more than {:?}{waited}", self.sandbox.limits.time);
        Failure::limit(Reason::Time, reached, "with_time")
    }

    fn differs(&self, at: usize) -> Failure {
        let wanted = self.journal.calls.get(at).map_or("no call", |entry| entry.id.as_str());
        let message = format!(
            "the program behaves differently than its journal says: call {} was `{wanted}`, with another input or in another order. Run it from its start, without the journal",
            at + 1
        );
        Failure::new(Reason::Differs, message)
    }
}

/// Does some work of a program in its turn.
async fn in_turn<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let work = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    work.await.map_err(|_| gone())
}

fn is_query(host: &dyn Host, id: &str) -> bool {
    id == SEARCH || id == DESCRIBE || host.is_query(id)
}

async fn call(host: &dyn Host, id: &str, input: Value, approved: bool) -> Result<Value, CallError> {
    match (id, host.search(), host.describe()) {
        (SEARCH, Some(search), _) => {
            let words = input.get("words").and_then(Value::as_str).unwrap_or_default();
            let limit = input.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
            search.search(words, limit).await
        }
        (DESCRIBE, _, Some(describe)) => {
            let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
            describe.describe(id, input.get("detail").unwrap_or(&Value::Null)).await
        }
        _ if approved => host.call_approved(id, input).await,
        _ => host.call(id, input).await,
    }
}

fn error(code: &str, message: &str) -> Answer {
    Answer::Error { code: code.to_owned(), message: message.to_owned(), details: Value::Null }
}

fn gone() -> Failure {
    Failure::new(Reason::Engine, "the engine is gone: the runtime ends")
}
