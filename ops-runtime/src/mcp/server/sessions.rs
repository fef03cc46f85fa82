//! The sessions of a server over HTTP: those of the SDK, with owners and limits.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError,
};
use rmcp::transport::streamable_http_server::session::{EventStream, ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::answers::{self, Answers};
use super::limits::Held;
use super::session::{Place, Session, UNUSED, index, noted};
use super::shared::Shared;
#[cfg(feature = "durable")]
use super::tasks;
use crate::model::clock::millis;
use crate::model::lock::lock;
use crate::run::principal::Principal;

/// How long a session must be idle before it may be ended for a new one.
const SPARE: Duration = Duration::from_secs(1);

/// The shortest interval between two checks for idle sessions.
const SHORTEST: Duration = Duration::from_millis(50);

tokio::task_local! {
    /// True if the request that is handled was refused, since there is no room for its session. The SDK tells its client
    /// of all errors of a manager alike.
    static IS_CROWDED: Cell<bool>;
}

/// The output of a future that handles a request, and true if there was no room for the session of the request.
pub(super) async fn handled<F: Future>(handling: F) -> (F::Output, bool) {
    let handled = async { (handling.await, IS_CROWDED.with(Cell::get)) };
    IS_CROWDED.scope(Cell::new(false), handled).await
}

/// The sessions of one service.
pub(super) struct Sessions {
    local: Arc<LocalSessionManager>,
    all: Arc<Mutex<HashMap<SessionId, Arc<Session>>>>,
    /// How many sessions are about to begin.
    beginning: Arc<AtomicUsize>,
    /// The room for their answers.
    room: Arc<Semaphore>,
    max: usize,
    max_requests: usize,
    started: Instant,
    /// How long a session may be idle.
    idle: Duration,
    /// True if a task ends idle sessions.
    is_swept: Arc<AtomicBool>,
    /// True if tasks are declared.
    #[cfg(feature = "durable")]
    has_tasks: bool,
}

/// The session of a request, and the request's place among those that it may have in flight; `None` if all are taken.
pub(super) type Entered = (Arc<Session>, Option<OwnedSemaphorePermit>);

/// The error of a session that belongs to another caller.
#[derive(Debug)]
pub(super) struct Unknown;

impl Sessions {
    pub(super) fn new(server: &Shared) -> Self {
        let options = &server.options;
        let mut local = LocalSessionManager::default();
        // The SDK would end a session with a request that has no message for that long.
        local.session_config.keep_alive = None;
        Self {
            local: Arc::new(local),
            all: Arc::default(),
            beginning: Arc::default(),
            room: answers::room(),
            max: options.max_sessions,
            max_requests: options.max_session_requests.clamp(1, Semaphore::MAX_PERMITS),
            started: Instant::now(),
            idle: options.session_idle,
            is_swept: Arc::default(),
            #[cfg(feature = "durable")]
            has_tasks: server.tasks.is_some(),
        }
    }

    fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }

    /// Lets a request into a session of the caller's. A session that is not there is not refused here.
    pub(super) fn enter(&self, id: &str, caller: &Principal) -> Result<Option<Entered>, Unknown> {
        let Some(session) = lock(&self.all).get(id).cloned() else { return Ok(None) };
        if session.owner.get().is_some_and(|owner| !owner.is(caller)) {
            return Err(Unknown);
        }
        let permit = session.requests.clone().try_acquire_owned().ok();
        session.touch();
        session.in_use.store(true, Ordering::Release);
        Ok(Some((session, permit)))
    }

    /// True if there is room for another session, or would be if an idle one ended.
    pub(super) fn has_room(&self) -> bool {
        let all = lock(&self.all);
        self.has_place(&all) || self.spare(&all).is_some()
    }

    /// True if there is a place that no session has, or is about to have.
    fn has_place(&self, all: &HashMap<SessionId, Arc<Session>>) -> bool {
        all.len().saturating_add(self.beginning.load(Ordering::Acquire)) < self.max
    }

    /// The session to end for a new one: one that only began, or else the least recently used. Its client begins
    /// another when it learns that its session is gone (MCP specification, "Session management").
    fn spare(&self, all: &HashMap<SessionId, Arc<Session>>) -> Option<SessionId> {
        let before = self.now().saturating_sub(millis(SPARE));
        let old = |session: &Session| session.used.load(Ordering::Acquire) <= before;
        let unused = |session: &Session| !session.in_use.load(Ordering::Acquire);
        let spare = all.iter().filter(|(_, session)| session.is_idle() && (unused(session) || old(session)));
        let oldest = spare
            .min_by_key(|(_, session)| (session.in_use.load(Ordering::Acquire), session.used.load(Ordering::Acquire)));
        oldest.map(|(id, _)| id.clone())
    }

    /// Ends sessions that are idle for too long, for as long as there are sessions.
    fn sweep(&self) -> impl Future<Output = ()> + Send + use<> {
        let (all, local, idle, is_swept) = (self.all.clone(), self.local.clone(), self.idle, self.is_swept.clone());
        async move {
            loop {
                tokio::time::sleep((idle.min(UNUSED) / 3).max(SHORTEST)).await;
                let (expired, is_last) = {
                    let mut all = lock(&all);
                    all.values().for_each(|session| session.answers.forget_old());
                    let expired: Vec<SessionId> =
                        all.extract_if(|_, session| session.has_expired(idle)).map(|(id, _)| id).collect();
                    if all.is_empty() {
                        // Under the lock, so that the next session begins another sweep.
                        is_swept.store(false, Ordering::Release);
                    }
                    (expired, all.is_empty())
                };
                for id in expired {
                    let _ = local.close_session(&id).await;
                }
                if is_last {
                    return;
                }
            }
        }
    }

    fn answers(&self, id: &SessionId) -> Option<Arc<Answers>> {
        lock(&self.all).get(id).map(|session| session.answers.clone())
    }

    fn forget(&self, id: &SessionId) {
        lock(&self.all).remove(id);
    }
}

/// The request that a message came in.
fn held(message: &ClientJsonRpcMessage) -> Option<(Arc<Held>, &RequestId)> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let parts = request.request.extensions().get::<Parts>()?;
    Some((parts.extensions.get::<Arc<Held>>()?.clone(), &request.id))
}

/// The sender of a message, as the service has determined it.
fn caller(message: &ClientJsonRpcMessage) -> Option<&Principal> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request.request.extensions().get::<Parts>()?.extensions.get()
}

fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::CallToolRequest(_) => true,
        // A call that begins a task of 2025-11-25.
        #[cfg(feature = "durable")]
        ClientRequest::CustomRequest(request) => request.method.strip_prefix(tasks::wire::PREFIX) == Some("tools/call"),
        _ => false,
    }
}

/// The events of a request, whose answer is kept if there is something to keep it.
fn kept_by(answers: Option<Arc<Answers>>, events: EventStream) -> EventStream {
    match answers {
        Some(answers) => answers.watch(events),
        None => events,
    }
}

/// Like the SDK's manager, but with an owner for each session, and with limits.
impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (spare, place) = {
            let mut all = lock(&self.all);
            let spare = if self.has_place(&all) {
                None
            } else {
                let full = || {
                    let _ = IS_CROWDED.try_with(|is_crowded| is_crowded.set(true));
                    SessionError::Io(std::io::Error::other("too many sessions (max_sessions)"))
                };
                let spare = self.spare(&all).ok_or_else(full)?;
                all.remove(&spare);
                Some(spare)
            };
            (spare, Place::take(&self.beginning))
        };
        if let Some(spare) = spare {
            // Its worker may take a while.
            let local = self.local.clone();
            tokio::spawn(async move { local.close_session(&spare).await });
        }
        let (id, transport) = self.local.create_session().await?;
        let session = Session::new(self.started, self.max_requests, self.room.clone());
        let is_swept = {
            let mut all = lock(&self.all);
            all.insert(id.clone(), Arc::new(session));
            drop(place);
            self.is_swept.swap(true, Ordering::AcqRel)
        };
        if !is_swept {
            tokio::spawn(self.sweep());
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let caller = caller(&message).cloned();
        if let Some(caller) = &caller
            && let Some(session) = lock(&self.all).get(id)
        {
            let _ = session.owner.set(caller.clone());
        }
        let answer = self.local.initialize_session(id, message).await?;
        #[cfg(feature = "durable")]
        if self.has_tasks {
            let is_somebody = caller.is_some_and(|caller| caller != Principal::Checked(None));
            return Ok(tasks::wire::declared(answer, is_somebody));
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.forget(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        // The SDK would keep the first request's slot as long as the session lives.
        if held(&message).is_some_and(|(held, id)| !held.take_id(id)) {
            // The service refuses the request: an error here would be one of the server.
            let nothing: EventStream = Box::pin(stream::empty());
            return Ok(nothing);
        }
        // The answers to other requests can be had again.
        let answers = if is_call(&message) { self.answers(id) } else { None };
        let events: EventStream = Box::pin(self.local.create_stream(id, message).await?);
        Ok(kept_by(answers, events))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = lock(&self.all).get(id).cloned();
        let events = self.local.create_standalone_stream(id).await?;
        // The SDK repeats messages that the client of an earlier stream has.
        let told = session.as_ref().map_or(0, |session| session.told.load(Ordering::Acquire));
        Ok(noted(session, events).filter(move |event| ready(index(event).is_none_or(|index| index >= told))))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let events: EventStream = match self.local.resume(id, last_event_id.clone()).await {
            Ok(events) if last_event_id.contains('/') => {
                // The SDK begins with the event that the client has.
                let new = events.filter(move |event| ready(event.event_id.as_ref() != Some(&last_event_id)));
                kept_by(self.answers(id), Box::pin(new))
            }
            Ok(events) => {
                // The first message has the id of the event without a message before it: the client may not have it.
                let has = move |event: &ServerSseMessage| event.event_id.as_ref() == Some(&last_event_id);
                let is_new = move |event: &ServerSseMessage| ready(index(event) == Some(0) || !has(event));
                let session = lock(&self.all).get(id).cloned();
                Box::pin(noted(session, events).filter(is_new))
            }
            // The call has ended: the service sends the answer if it is kept.
            Err(error) => match self.answers(id) {
                Some(answers) if answers.has(&last_event_id).await => Box::pin(stream::empty()),
                _ => return Err(error),
            },
        };
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::mcp::{McpServer, McpServerOptions};

    const IDLE: Duration = Duration::from_secs(120);

    fn sessions() -> Sessions {
        let options = McpServerOptions::new("test", "1").with_session_idle(IDLE);
        Sessions::new(&McpServer::new(crate::Registry::new()).with_options(options).0)
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_session_ends() {
        let sessions = sessions();
        let (begun, _begun) = sessions.create_session().await.unwrap();
        let (used, _used) = sessions.create_session().await.unwrap();
        drop(sessions.enter(&used, &Principal::Checked(None)).ok().flatten().unwrap());
        // One that was only begun ends sooner.
        for (wait, has) in [(UNUSED * 2, [false, true]), (IDLE, [false, false])] {
            tokio::time::sleep(wait).await;
            let found = [sessions.has_session(&begun).await.unwrap(), sessions.has_session(&used).await.unwrap()];
            assert_eq!(found, has, "after {wait:?}");
        }
        // Nothing is left to be done when the last session has ended.
        assert!(!sessions.is_swept.load(Ordering::Acquire));
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_recently_used_session_ends_for_a_new_one() {
        let options = McpServerOptions::new("test", "1").with_max_sessions(2);
        let sessions = Sessions::new(&McpServer::new(crate::Registry::new()).with_options(options).0);
        let (older, _older) = sessions.create_session().await.unwrap();
        let (newer, _newer) = sessions.create_session().await.unwrap();
        for id in [&newer, &older] {
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(sessions.enter(id, &Principal::Checked(None)).ok().flatten().unwrap());
        }
        assert!(!sessions.has_room());
        // Other errors are not told like this one.
        let (refused, is_crowded) = handled(sessions.create_session()).await;
        assert!(refused.is_err() && is_crowded);
        tokio::time::sleep(SPARE * 2).await;
        assert!(sessions.has_room());
        let (latest, is_crowded) = handled(sessions.create_session()).await;
        let (latest, _latest) = latest.unwrap();
        assert!(!is_crowded);
        let left = [&older, &newer, &latest].map(|id| lock(&sessions.all).contains_key(id));
        assert_eq!(left, [true, false, true]);
    }

    #[tokio::test]
    async fn a_session_that_is_about_to_begin_has_its_place() {
        let options = McpServerOptions::new("test", "1").with_max_sessions(2);
        let sessions = Sessions::new(&McpServer::new(crate::Registry::new()).with_options(options).0);
        // While this is held, no session can be stored.
        let stored = sessions.local.sessions.read().await;
        let (mut first, mut second) = (Box::pin(sessions.create_session()), Box::pin(sessions.create_session()));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert!(!sessions.has_room() && sessions.create_session().await.is_err());
        drop(first);
        assert!(sessions.has_room());
        drop(stored);
        let _second = second.await.unwrap();
        let _third = sessions.create_session().await.unwrap();
        // In place of one that only began.
        let _fourth = sessions.create_session().await.unwrap();
        assert_eq!(lock(&sessions.all).len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_only_listens_ends() {
        let sessions = sessions();
        let (id, _session) = sessions.create_session().await.unwrap();
        let (session, permit) = sessions.enter(&id, &Principal::Checked(None)).ok().flatten().unwrap();
        let listening = Held::default();
        listening.in_session(session.clone(), permit);
        listening.listen();
        let (_, permit) = sessions.enter(&id, &Principal::Checked(None)).ok().flatten().unwrap();
        let call = Held::default();
        call.in_session(session.clone(), permit);
        tokio::time::sleep(SPARE * 2).await;
        assert!(!session.is_idle() && sessions.spare(&lock(&sessions.all)).is_none());
        drop(call);
        tokio::time::sleep(SPARE * 2).await;
        assert!(session.is_idle() && sessions.spare(&lock(&sessions.all)).is_some());
        tokio::time::sleep(IDLE * 2).await;
        assert!(!sessions.has_session(&id).await.unwrap());
        drop(listening);
        assert!(session.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_with_a_request_in_flight_does_not_end() {
        let sessions = sessions();
        let (id, _session) = sessions.create_session().await.unwrap();
        let (session, permit) = sessions.enter(&id, &Principal::Checked(None)).ok().flatten().unwrap();
        let held = Held::default();
        held.in_session(session, permit);
        tokio::time::sleep(IDLE * 10).await;
        assert!(sessions.has_session(&id).await.unwrap());
        // Its time counts from the end of the request.
        drop(held);
        for (wait, has) in [(IDLE - UNUSED, true), (UNUSED * 2, false)] {
            tokio::time::sleep(wait).await;
            assert_eq!(sessions.has_session(&id).await.unwrap(), has, "{wait:?} later");
        }
    }
}
