//! The secrets that were sent to the server of a connection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;

use super::interceptor::{Verdict, decode};
use crate::CallError;
use crate::mcp::config::McpServerConfig;
use crate::model::secrets::{KeepsSecrets, Kept, Secrets};

/// How many tokens are remembered: the present one, and those that the server may still repeat.
#[cfg(feature = "mcp-auth")]
const TOKENS: usize = 4;

/// The secrets of a connection: those of its configuration, and the tokens that were fetched for it.
pub(super) struct Given {
    /// Collected once, because a child's standard error is read while nothing has failed.
    config: Secrets,
    tokens: Mutex<VecDeque<String>>,
}

impl Given {
    pub(super) fn new(config: &McpServerConfig) -> Arc<Self> {
        Arc::new(Self { config: Secrets::of(config), tokens: Mutex::default() })
    }

    /// Notes a token that is about to be sent.
    #[cfg(feature = "mcp-auth")]
    pub(super) fn token(&self, token: &str) {
        let mut tokens = lock(&self.tokens);
        if tokens.back().is_none_or(|last| last != token) {
            tokens.push_back(token.to_owned());
            if tokens.len() > TOKENS {
                tokens.pop_front();
            }
        }
    }

    /// Itself, to be kept with a response.
    pub(super) fn kept(self: &Arc<Self>) -> Kept {
        Kept::by(self.clone())
    }

    pub(super) fn secrets(&self) -> Cow<'_, Secrets> {
        let tokens = lock(&self.tokens);
        if tokens.is_empty() {
            return Cow::Borrowed(&self.config);
        }
        let mut secrets = self.config.clone();
        tokens.iter().for_each(|token| secrets.add(token));
        Cow::Owned(secrets)
    }

    /// The error without these secrets.
    pub(super) fn error(&self, error: CallError) -> CallError {
        error.without(&self.secrets())
    }

    /// A text of the server, for the log.
    pub(super) fn text<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.secrets().text(words)
    }

    /// A message for rmcp, which logs notifications, errors and the server's information. Responses to calls and lists
    /// of tools are data, and stay unchanged.
    pub(super) fn heard<'m>(&self, message: &'m str) -> Cow<'m, str> {
        if matches!(self.text(message), Cow::Borrowed(_)) {
            return Cow::Borrowed(message);
        }
        let Ok(mut read) = serde_json::from_str::<Value>(message) else { return Cow::Borrowed(message) };
        let is_notification = read.get("method").is_some() && read.get("id").is_none();
        let says = |name: &str| read.get("result").is_some_and(|result| result.get(name).is_some());
        if !is_notification && read.get("error").is_none() && !says("protocolVersion") && !says("supportedVersions") {
            return Cow::Borrowed(message);
        }
        self.secrets().value(&mut read);
        Cow::Owned(read.to_string())
    }

    /// The message that passes a verdict to rmcp.
    pub(super) fn decode(
        &self,
        verdict: Verdict,
        text: &str,
    ) -> Result<Option<ServerJsonRpcMessage>, serde_json::Error> {
        match verdict {
            Verdict::Pass => decode(verdict, &self.heard(text)),
            verdict => decode(verdict, text),
        }
    }

    /// The text of an error for the log; it may quote the server.
    pub(super) fn words(&self, error: &dyn std::fmt::Display) -> String {
        self.text(&error.to_string()).into_owned()
    }
}

impl KeepsSecrets for Given {
    fn collect(&self, secrets: &mut Secrets) {
        secrets.extend(&self.secrets());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
