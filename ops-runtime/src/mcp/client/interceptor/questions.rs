//! The server's requests to this side, from their arrival to their response.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use rmcp::model::NumberOrString;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::lock::lock;

/// How many are handled at a time; others are dropped.
pub(super) const MAX_ASKED: usize = 128;

/// The requests of the server without a response, by their ids. A server counts anew in each session, so a response is sent
/// only to a request that is still open here.
#[derive(Default)]
pub(in super::super) struct Questions {
    open: Mutex<HashMap<NumberOrString, Open>>,
    asking: Mutex<Asking>,
}

/// A request without a response.
struct Open {
    /// Notified when the request is withdrawn.
    withdrawn: Arc<Notify>,
    /// The parameters as the server sent them, until they are used: rmcp drops what it does not know.
    params: Option<Box<RawValue>>,
}

/// The questions to the user during calls, which include those of no request: to log in, for example.
#[derive(Default)]
struct Asking {
    /// Number of unanswered questions.
    open: usize,
    /// When one was last answered.
    answered: Option<Instant>,
}

impl Questions {
    /// Notes a request. False if there are too many, or one has the same id.
    pub(super) fn begin(&self, id: NumberOrString, params: Option<&RawValue>) -> bool {
        let mut open = lock(&self.open);
        if open.len() >= MAX_ASKED {
            return false;
        }
        let Entry::Vacant(place) = open.entry(id) else { return false };
        place.insert(Open { withdrawn: Arc::default(), params: params.map(ToOwned::to_owned) });
        true
    }

    /// Takes the parameters of a request; `null` if there are none.
    pub(in super::super) fn params(&self, id: &NumberOrString) -> Value {
        let params = lock(&self.open).get_mut(id).and_then(|open| open.params.take());
        params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
    }

    /// Notes that a request has its response, or needs none. False if it was not open.
    pub(super) fn end(&self, id: &NumberOrString) -> bool {
        lock(&self.open).remove(id).is_some()
    }

    /// What is notified when the request is withdrawn. `None` if it is not open any more.
    pub(in super::super) fn withdrawal(&self, id: &NumberOrString) -> Option<Arc<Notify>> {
        lock(&self.open).get(id).map(|open| open.withdrawn.clone())
    }

    /// Withdraws all requests, because their session is lost.
    #[cfg(feature = "mcp-http")]
    pub(in super::super) fn withdraw(&self) {
        // A notification is kept for a handler that has not started.
        lock(&self.open).drain().for_each(|(_, open)| open.withdrawn.notify_one());
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Notes a question to the user; timeouts of calls pause until it is answered.
    pub(in super::super) fn asks(&self) -> impl Drop + use<'_> {
        struct Answered<'w>(&'w Questions);
        impl Drop for Answered<'_> {
            fn drop(&mut self) {
                let mut asking = lock(&self.0.asking);
                asking.open -= 1;
                asking.answered = Some(Instant::now());
            }
        }
        lock(&self.asking).open += 1;
        Answered(self)
    }

    /// When the user was last asked something.
    pub(in super::super) fn last_asked(&self) -> Option<Instant> {
        let asking = lock(&self.asking);
        if asking.open > 0 { Some(Instant::now()) } else { asking.answered }
    }
}

#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod tests {
    use std::time::Duration;

    use rmcp::model::{ClientJsonRpcMessage, ClientResult};
    use tokio::time::timeout;

    use super::super::{Interceptor, Verdict};
    use super::*;

    /// True if a message of the server goes on to rmcp.
    fn passes(interceptor: &Interceptor, message: &str) -> bool {
        matches!(interceptor.inbound(message).unwrap(), Verdict::Pass)
    }

    fn reply(id: i64) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::response(ClientResult::empty(()), NumberOrString::Number(id))
    }

    #[test]
    fn a_request_that_the_server_cancels_makes_room_for_another() {
        let interceptor = Interceptor::new("s");
        interceptor.over_http();
        for method in ["ping", "elicitation/create"] {
            for id in 0..=MAX_ASKED {
                assert!(passes(&interceptor, &format!(r#"{{"id":{id},"method":"{method}"}}"#)), "{method} {id}");
                let params = format!(r#"{{"requestId":{id}}}"#);
                assert!(passes(&interceptor, &format!(r#"{{"method":"notifications/cancelled","params":{params}}}"#)));
            }
        }
        assert!(!interceptor.replies(&reply(0)), "nobody waits for it");
    }

    #[tokio::test]
    async fn a_withdrawn_question_gets_no_reply() {
        let interceptor = Interceptor::new("s");
        let ask = || passes(&interceptor, r#"{"id":7,"method":"elicitation/create"}"#);
        assert!(ask() && !ask());
        let id = NumberOrString::Number(7);
        let withdrawn = interceptor.questions.withdrawal(&id).unwrap();
        interceptor.questions.withdraw();
        timeout(Duration::from_secs(9), withdrawn.notified()).await.expect("it is told later, too");
        assert!(interceptor.questions.withdrawal(&id).is_none() && !interceptor.replies(&reply(7)));
        // The same id in the next session is another question.
        assert!(ask() && interceptor.replies(&reply(7)) && !interceptor.replies(&reply(7)));
    }
}
