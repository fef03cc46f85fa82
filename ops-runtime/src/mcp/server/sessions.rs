//! The sessions of a server over HTTP: those of the SDK, with their owners and limits.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::limits::Held;
use super::shared::Shared;
#[cfg(feature = "durable")]
use super::tasks;
use crate::run::principal::Principal;

/// How long a session must be idle before it may be ended for a new one.
const SPARE: Duration = Duration::from_secs(1);

/// How long a session may do nothing after it began: clients say at once that they are ready (MCP specification,
/// "Lifecycle").
const UNUSED: Duration = Duration::from_secs(30);

/// The sessions of one service.
pub(super) struct Sessions {
    local: Arc<LocalSessionManager>,
    all: Arc<Mutex<HashMap<SessionId, Arc<Session>>>>,
    max: usize,
    max_requests: usize,
    started: Instant,
    /// Whether a task ends unused sessions.
    is_swept: Arc<AtomicBool>,
    /// Whether tasks are declared.
    #[cfg(feature = "durable")]
    has_tasks: bool,
}

/// One session.
pub(super) struct Session {
    owner: OnceLock<Principal>,
    /// The requests that it may have in flight.
    requests: Arc<Semaphore>,
    max_requests: usize,
    /// The ids of those that it has.
    ids: Mutex<HashSet<RequestId>>,
    /// When it was last used, in milliseconds since the service began.
    used: AtomicU64,
    /// True if it was used after it began.
    in_use: AtomicBool,
}

impl Session {
    /// Takes an id for a request; false if another has it.
    pub(super) fn take(&self, id: &RequestId) -> bool {
        lock(&self.ids).insert(id.clone())
    }

    pub(super) fn give_back(&self, id: &RequestId) {
        lock(&self.ids).remove(id);
    }

    fn is_idle(&self) -> bool {
        self.requests.available_permits() == self.max_requests
    }
}

/// Why a session refuses a request.
pub(super) enum Refused {
    /// There is none, or it belongs to another caller.
    Unknown,
    /// It has as many requests in flight as it may have.
    Full,
}

impl Sessions {
    pub(super) fn new(server: &Shared) -> Self {
        let options = &server.options;
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(options.session_idle);
        Self {
            local: Arc::new(local),
            all: Arc::default(),
            max: options.max_sessions,
            max_requests: options.max_session_requests.clamp(1, Semaphore::MAX_PERMITS),
            started: Instant::now(),
            is_swept: Arc::default(),
            #[cfg(feature = "durable")]
            has_tasks: server.tasks.is_some(),
        }
    }

    fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }

    /// Lets a request into a session of the caller's. An unknown session is not refused here.
    pub(super) fn enter(
        &self,
        id: &str,
        caller: &Principal,
    ) -> Result<Option<(Arc<Session>, OwnedSemaphorePermit)>, Refused> {
        let Some(session) = lock(&self.all).get(id).cloned() else { return Ok(None) };
        if session.owner.get().is_some_and(|owner| !owner.is(caller)) {
            return Err(Refused::Unknown);
        }
        session.used.store(self.now(), Ordering::Release);
        session.in_use.store(true, Ordering::Release);
        let permit = session.requests.clone().try_acquire_owned().map_err(|_| Refused::Full)?;
        Ok(Some((session, permit)))
    }

    /// True if there is room for another session, or would be if an idle one ended.
    pub(super) fn has_room(&self) -> bool {
        let all = lock(&self.all);
        all.len() < self.max || self.spare(&all).is_some()
    }

    /// The session to end for another: one that only began, or else the least recently used. Its client begins another
    /// when it learns that its session is gone (MCP specification, "Session management").
    fn spare(&self, all: &HashMap<SessionId, Arc<Session>>) -> Option<SessionId> {
        let before = self.now().saturating_sub(millis(SPARE));
        let old = |session: &Session| session.used.load(Ordering::Acquire) <= before;
        let unused = |session: &Session| !session.in_use.load(Ordering::Acquire);
        let spare = all.iter().filter(|(_, session)| session.is_idle() && (unused(session) || old(session)));
        let oldest = spare
            .min_by_key(|(_, session)| (session.in_use.load(Ordering::Acquire), session.used.load(Ordering::Acquire)));
        oldest.map(|(id, _)| id.clone())
    }

    /// Ends sessions that their clients only began, for as long as there are sessions.
    fn sweep(&self) -> impl Future<Output = ()> + Send + use<> {
        let (all, local, started, is_swept) =
            (self.all.clone(), self.local.clone(), self.started, self.is_swept.clone());
        async move {
            loop {
                tokio::time::sleep(UNUSED / 3).await;
                let before = millis(started.elapsed().saturating_sub(UNUSED));
                let (unused, is_last) = {
                    let mut all = lock(&all);
                    let is_unused = |session: &Session| {
                        !session.in_use.load(Ordering::Acquire) && session.used.load(Ordering::Acquire) <= before
                    };
                    let unused: Vec<SessionId> =
                        all.extract_if(|_, session| is_unused(session)).map(|(id, _)| id).collect();
                    if all.is_empty() {
                        // Under the lock, so that the next session begins another sweep.
                        is_swept.store(false, Ordering::Release);
                    }
                    (unused, all.is_empty())
                };
                for id in unused {
                    let _ = local.close_session(&id).await;
                }
                if is_last {
                    return;
                }
            }
        }
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

/// Who sent a message, as the service found out.
fn caller(message: &ClientJsonRpcMessage) -> Option<&Principal> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request.request.extensions().get::<Parts>()?.extensions.get()
}

/// Works as the SDK does, but keeps the owner of each session, and sets limits.
impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let spare = {
            let mut all = lock(&self.all);
            if all.len() < self.max {
                None
            } else {
                let full = || SessionError::Io(std::io::Error::other("too many sessions (max_sessions)"));
                let spare = self.spare(&all).ok_or_else(full)?;
                all.remove(&spare);
                Some(spare)
            }
        };
        if let Some(spare) = spare {
            // Its worker may take a while.
            let local = self.local.clone();
            tokio::spawn(async move { local.close_session(&spare).await });
        }
        let (id, transport) = self.local.create_session().await?;
        let session = Session {
            owner: OnceLock::new(),
            requests: Arc::new(Semaphore::new(self.max_requests)),
            max_requests: self.max_requests,
            ids: Mutex::default(),
            used: AtomicU64::new(self.now()),
            in_use: AtomicBool::new(false),
        };
        let is_swept = {
            let mut all = lock(&self.all);
            all.insert(id.clone(), Arc::new(session));
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
        // The SDK would keep the first request's slot for as long as the session lives.
        if held(&message).is_some_and(|(held, id)| !held.take_id(id)) {
            let twice = "a request with that id is in work";
            return Err(SessionError::Io(std::io::Error::other(twice)).into());
        }
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_that_was_only_begun_ends() {
        let sessions = Sessions::new(&crate::mcp::McpServer::new(crate::Registry::new()).0);
        let (idle, _idle) = sessions.create_session().await.unwrap();
        let (used, _used) = sessions.create_session().await.unwrap();
        drop(sessions.enter(&used, &Principal::Checked(None)).ok().flatten().unwrap());
        tokio::time::sleep(UNUSED * 2).await;
        assert!(!sessions.has_session(&idle).await.unwrap());
        assert!(sessions.has_session(&used).await.unwrap());
        assert!(sessions.is_swept.load(Ordering::Acquire));
        // Nothing is left to be done when the last session has ended.
        sessions.close_session(&used).await.unwrap();
        tokio::time::sleep(UNUSED).await;
        assert!(!sessions.is_swept.load(Ordering::Acquire));
    }
}
