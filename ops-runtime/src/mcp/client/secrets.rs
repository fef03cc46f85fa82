//! The secrets that were sent to the server of a connection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Map, Value};

use super::interceptor::{Verdict, decode};
use crate::CallError;
use crate::mcp::config::McpServerConfig;
use crate::model::lock::lock;
use crate::model::secrets::{KeepsSecrets, Kept, Secrets};

/// How many tokens are remembered: the present one, and those that the server may still repeat.
#[cfg(feature = "mcp-auth")]
const TOKENS: usize = 4;

/// How many challenges that repeat a secret are remembered: those of calls at the same time.
#[cfg(feature = "mcp-http")]
const CHALLENGES: usize = 16;

/// The secrets of a connection: those of its configuration, and the tokens that were fetched for it.
pub(super) struct Given {
    /// Collected once, because a child's standard error is read while nothing has failed.
    config: Secrets,
    tokens: Mutex<VecDeque<String>>,
    /// Those of the configuration that are credentials.
    #[cfg(feature = "mcp-http")]
    credentials: Secrets,
    /// Challenges of the server that repeat a secret: without it, and as they came but for credentials.
    #[cfg(feature = "mcp-http")]
    challenges: Mutex<VecDeque<(String, String)>>,
}

impl Given {
    pub(super) fn new(config: &McpServerConfig) -> Arc<Self> {
        Arc::new(Self {
            config: Secrets::of(config),
            tokens: Mutex::default(),
            #[cfg(feature = "mcp-http")]
            credentials: config.credentials(),
            #[cfg(feature = "mcp-http")]
            challenges: Mutex::default(),
        })
    }

    /// A challenge of the server without the secrets, for rmcp, which logs it.
    #[cfg(feature = "mcp-http")]
    pub(super) fn challenge(&self, challenge: String) -> String {
        let hidden = match self.text(&challenge) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        };
        let Some(hidden) = hidden else { return challenge };
        // A credential is no part of a URL or a scope, but another setting may be.
        let mut credentials = self.credentials.clone();
        lock(&self.tokens).iter().for_each(|token| credentials.add(token));
        let challenge = credentials.text(&challenge).into_owned();
        let mut challenges = lock(&self.challenges);
        let known = (hidden.clone(), challenge);
        if challenges.back() != Some(&known) {
            challenges.push_back(known);
            if challenges.len() > CHALLENGES {
                challenges.pop_front();
            }
        }
        hidden
    }

    /// The challenge as the server sent it, but for credentials. Its URLs and scopes are those to use, whatever of them is hidden.
    #[cfg(feature = "mcp-auth")]
    pub(super) fn demanded(&self, hidden: &str) -> String {
        let challenges = lock(&self.challenges);
        let found = challenges.iter().rev().find(|(known, _)| known == hidden);
        found.map_or(hidden, |(_, challenge)| challenge.as_str()).to_owned()
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

    /// A message for rmcp, which logs notifications, errors and the server's information. What it works with, such as
    /// revisions and the names of capabilities, stays unchanged, and so do responses to calls and lists of tools, which are data.
    pub(super) fn heard<'m>(&self, message: &'m str) -> Cow<'m, str> {
        if matches!(self.text(message), Cow::Borrowed(_)) {
            return Cow::Borrowed(message);
        }
        let Ok(mut read) = serde_json::from_str::<Value>(message) else { return Cow::Borrowed(message) };
        let is_notification = read.get("method").is_some() && read.get("id").is_none();
        let says = |name: &str| read.get("result").is_some_and(|result| result.get(name).is_some());
        let logged: &[&str] = if is_notification {
            &["/params"]
        } else if read.get("error").is_some() {
            &["/error/message", "/error/data"]
        } else if says("protocolVersion") || says("supportedVersions") {
            &[
                "/result/serverInfo",
                "/result/instructions",
                "/result/_meta",
                "/result/capabilities/logging",
                "/result/capabilities/completions",
            ]
        } else {
            return Cow::Borrowed(message);
        };
        // The revisions that a server knows instead (`UnsupportedProtocolVersionError`).
        let supported = read.pointer("/error/data/supported").cloned();
        let secrets = self.secrets();
        for place in logged {
            if let Some(said) = read.pointer_mut(place) {
                secrets.value(said);
            }
        }
        for kind in ["/result/capabilities/experimental", "/result/capabilities/extensions"] {
            let named = read.pointer_mut(kind).and_then(Value::as_object_mut);
            named.into_iter().flat_map(Map::values_mut).for_each(|settings| secrets.value(settings));
        }
        if let (Some(kept), Some(supported)) = (read.pointer_mut("/error/data/supported"), supported) {
            *kept = supported;
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "mcp-auth")]
    #[test]
    fn a_challenge_is_used_without_credentials() {
        use crate::mcp::McpConfig;
        let text = r#"{ "servers": { "far": {
            "url": "https://ann:k3y-of-ann@${KEY_DOMAIN}/mcp?a=${ACCESS_TOKEN}", "auth": "t0ken-of-ann",
            "headers": { "X-Team": "payments-eu", "X-Tenant-Key": "acme", "X-Api-Key": "k3y-of-ann" }
        } } }"#;
        let config = McpConfig::from_json_with(text, |name| match name {
            "KEY_DOMAIN" => Some("mcp.acme.example".to_owned()),
            "ACCESS_TOKEN" => Some("v4lue-of-ann".to_owned()),
            _ => None,
        });
        let given = Given::new(config.unwrap().server("far").unwrap());
        given.token("0auth-of-ann");
        let challenge = |[host, team, a, b, c, d]: [&str; 6]| {
            let place = format!("https://{host}/{team}?a={a}&b={b}&c={c}&d={d}");
            format!("Bearer resource_metadata=\"{place}\", scope=\"{team}:read\"")
        };
        let (host, team) = ("mcp.acme.example", "payments-eu");
        let sent = challenge([host, team, "t0ken-of-ann", "k3y-of-ann", "v4lue-of-ann", "0auth-of-ann"]);
        let hidden = given.challenge(sent);
        assert_eq!(hidden, challenge(["***"; 6]));
        assert_eq!(given.demanded(&hidden), challenge([host, team, "***", "***", "***", "***"]));
    }

    #[test]
    fn what_rmcp_works_with_is_not_hidden() {
        // A revision may be in a header, and so may be a secret.
        let given = Given::new(&McpServerConfig::http("https://a.example/mcp").with_header("X-Rev", "2025-11-25"));
        let info = |name: &str| json!({ "name": name, "version": "1" });
        let capabilities = |since: &str| {
            let settings = json!({ "2025-11-25": { "since": since } });
            json!({ "experimental": settings, "extensions": settings, "logging": { "since": since }, "tools": {} })
        };
        for (message, expected) in [
            (
                json!({ "id": 1, "result": { "protocolVersion": "2025-11-25", "capabilities": capabilities("2025-11-25"),
                    "serverInfo": info("of 2025-11-25"), "instructions": "since 2025-11-25" } }),
                json!({ "id": 1, "result": { "protocolVersion": "2025-11-25", "capabilities": capabilities("***"),
                    "serverInfo": info("of ***"), "instructions": "since ***" } }),
            ),
            (
                json!({ "id": 2, "result": { "supportedVersions": ["2025-11-25"], "_meta": { "info": "2025-11-25" } } }),
                json!({ "id": 2, "result": { "supportedVersions": ["2025-11-25"], "_meta": { "info": "***" } } }),
            ),
            (
                json!({ "id": 3, "error": { "code": -32022, "message": "not 2025-11-25",
                    "data": { "supported": ["2025-11-25"], "requested": "2025-11-25" } } }),
                json!({ "id": 3, "error": { "code": -32022, "message": "not ***",
                    "data": { "supported": ["2025-11-25"], "requested": "***" } } }),
            ),
            (
                json!({ "method": "notifications/message", "params": { "data": "2025-11-25" } }),
                json!({ "method": "notifications/message", "params": { "data": "***" } }),
            ),
            (
                json!({ "id": 4, "result": { "text": "2025-11-25" } }),
                json!({ "id": 4, "result": { "text": "2025-11-25" } }),
            ),
        ] {
            let heard: Value = serde_json::from_str(&given.heard(&message.to_string())).unwrap();
            assert_eq!(heard, expected);
        }
    }
}
