//! An entry of the log, and its JSON.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::OperationKind;
use crate::gateway::CallerId;

/// A call in the audit log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When the call began.
    pub time: SystemTime,
    /// The id of the request.
    pub request: String,
    /// The caller; `None` if unknown.
    pub caller: Option<CallerId>,
    /// The id of the operation.
    pub operation: String,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// `ok`, or the code of the error.
    pub outcome: String,
    /// How long the call took.
    pub duration: Duration,
    /// The size of the input as JSON, in bytes: that of its text, if it came as text. Files beside it are included if
    /// their sizes are known.
    pub input_bytes: Option<usize>,
    /// The size of the result as JSON, or that of a file, in bytes; `None` for an error, or if unknown. That of a text,
    /// such as a response, is its size as it came.
    pub output_bytes: Option<usize>,
    /// The outcome of asking for approval; `None` if it was not required.
    pub approval: Option<Approval>,
    /// The input, without secrets, if the log includes inputs.
    pub input: Option<Value>,
    /// True if the log includes inputs, but this one is too long.
    pub input_omitted: bool,
    /// How many entries were lost before this one.
    pub dropped: u64,
}

/// The outcome of asking for approval of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// It was asked for, without an answer yet.
    Asked,
    /// It was approved.
    Approved {
        /// By whom.
        by: String,
    },
    /// It was denied.
    Denied {
        /// By whom: a person, or a rule.
        by: String,
    },
}

impl AuditEntry {
    /// An entry of a call that begins now.
    pub fn new(request: impl Into<String>, operation: impl Into<String>, kind: OperationKind) -> Self {
        Self {
            time: SystemTime::now(),
            request: request.into(),
            caller: None,
            operation: operation.into(),
            kind,
            outcome: String::new(),
            duration: Duration::ZERO,
            input_bytes: None,
            output_bytes: None,
            approval: None,
            input: None,
            input_omitted: false,
            dropped: 0,
        }
    }

    /// Sets the caller.
    #[must_use]
    pub fn with_caller(mut self, caller: &CallerId) -> Self {
        self.caller = Some(caller.clone());
        self
    }

    /// The entry as JSON, described at [`AuditLog`](super::AuditLog).
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| drop(json.insert(name.to_owned(), value));
        put("time", rfc3339(self.time).into());
        put("request", self.request.as_str().into());
        let caller = self.caller.as_ref();
        put("caller", caller.and_then(CallerId::identity).into());
        if let Some(name) = caller.and_then(CallerId::connection_name) {
            put("connection", name.into());
        }
        put("operation", self.operation.as_str().into());
        put("kind", self.kind.as_str().into());
        put("outcome", self.outcome.as_str().into());
        let micros = u32::try_from(self.duration.as_micros()).unwrap_or(u32::MAX);
        put("durationMs", (f64::from(micros) / 1_000.0).into());
        let sizes = [("inputBytes", self.input_bytes), ("outputBytes", self.output_bytes)];
        sizes
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, bytes?)))
            .for_each(|(name, bytes)| put(name, bytes.into()));
        match &self.approval {
            None => {}
            Some(Approval::Asked) => put("approval", json!({ "state": "asked" })),
            Some(Approval::Approved { by }) => put("approval", json!({ "state": "approved", "by": by })),
            Some(Approval::Denied { by }) => put("approval", json!({ "state": "denied", "by": by })),
        }
        if let Some(input) = &self.input {
            put("input", input.clone());
        }
        if self.input_omitted {
            put("inputOmitted", true.into());
        }
        if self.dropped > 0 {
            put("dropped", self.dropped.into());
        }
        Value::Object(json)
    }

    /// The entry as one line of JSON, without the line break.
    ///
    /// Characters that some program takes for the end of a line, or a terminal for a command, are escaped.
    pub fn to_line(&self) -> String {
        let json = self.to_json().to_string();
        let is_special = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        if !json.contains(is_special) {
            return json;
        }
        let mut line = String::with_capacity(json.len());
        for c in json.chars() {
            if is_special(c) {
                // Such characters occur only in strings, where JSON allows escapes.
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            } else {
                line.push(c);
            }
        }
        line
    }
}

/// A time in UTC with milliseconds (RFC 3339), such as `2026-11-23T23:45:12.007Z`.
fn rfc3339(time: SystemTime) -> String {
    // Clocks before 1970 are wrong.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day of its year; eras have 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let table = [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.001Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800, 0, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59.000Z"),
            (1_767_225_600, 0, "2026-01-01T00:00:00.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (4_107_542_399, 0, "2100-02-28T23:59:59.000Z"),
        ];
        for (seconds, millis, expected) in table {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            assert_eq!(rfc3339(time), expected);
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn lines() {
        let mut entry = AuditEntry::new("7", "shop.buyPet", OperationKind::Mutation)
            .with_caller(&CallerId::of(Some(&crate::Identity::new("ann"))));
        entry.time = UNIX_EPOCH;
        (entry.outcome, entry.duration) = ("ok".to_owned(), Duration::from_micros(12_250));
        (entry.input_bytes, entry.output_bytes) = (Some(11), Some(52));
        entry.approval = Some(Approval::Approved { by: "bob".to_owned() });
        assert_eq!(
            entry.to_line(),
            r#"{"time":"1970-01-01T00:00:00.000Z","request":"7","caller":"ann","operation":"shop.buyPet","kind":"mutation","outcome":"ok","durationMs":12.25,"inputBytes":11,"outputBytes":52,"approval":{"state":"approved","by":"bob"}}"#
        );
        entry.caller = Some(CallerId::connection("c1"));
        (entry.approval, entry.outcome, entry.output_bytes) = (Some(Approval::Asked), "TIMEOUT".to_owned(), None);
        (entry.input, entry.input_omitted, entry.dropped) = (Some(json!({ "petId": 7 })), true, 3);
        assert_eq!(
            entry.to_line(),
            r#"{"time":"1970-01-01T00:00:00.000Z","request":"7","caller":null,"connection":"c1","operation":"shop.buyPet","kind":"mutation","outcome":"TIMEOUT","durationMs":12.25,"inputBytes":11,"approval":{"state":"asked"},"input":{"petId":7},"inputOmitted":true,"dropped":3}"#
        );
    }

    #[test]
    fn hostile_texts_stay_in_their_line() {
        let evil = "a\n{\"time\":0}\r\u{85}\u{2028}\u{2029}\u{0}\u{1b}[2J\u{9b}2J\u{7f}\"\\";
        let mut entry = AuditEntry::new(evil, evil, OperationKind::Query).with_caller(&CallerId::connection(evil));
        entry.outcome = evil.to_owned();
        entry.approval = Some(Approval::Denied { by: evil.to_owned() });
        entry.input = Some(json!({ evil: [evil] }));
        let line = entry.to_line();
        assert!(!line.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')), "{line:?}");
        // And it says the same.
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), entry.to_json());
        assert_eq!(entry.to_json()["operation"], evil);
    }
}
