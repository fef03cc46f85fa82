//! Asking for approval of a call: by the client, or by the result of the tool.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::audit::files;
use super::caller::CallerId;
use super::large;
use super::rules::MadeBy;
use super::summary::{in_order, name, summary};
use crate::mcp::McpPeer;
use crate::model::hex::hex;
use crate::model::lock::lock;
use crate::model::random;
use crate::run::registry::Entry;
use crate::{BoxFuture, CallError, CancelToken, Context, ErrorCode, OperationSpec};

/// The code of a call that waits for approval.
pub(super) const NEEDED: &str = "APPROVAL_NEEDED";

/// How many calls may wait at a time, of one caller and of all. Beyond, the oldest is dropped.
const WAITING_OF_ONE: usize = 200;
const WAITING: usize = 10_000;

/// How long a call may wait.
const KEPT_FOR: Duration = Duration::from_secs(3_600);

/// The beginning of the keys of the gateway's own questions. Handlers behind it ask under keys of their own within the same
/// request: an answer to a question of the one must not be taken for that of the other.
pub(super) const OWN_KEYS: &str = "ops-gateway/";

/// The method of the questions.
pub(super) const METHOD: &str = "elicitation/create";

/// How much of an input is shown to the user, in bytes of JSON.
const SHOWN: usize = 2_000;

/// How many shortened parts are listed.
const PARTS: usize = 8;

/// An extension of a call to which the user has agreed: the next gate does not ask again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Approved;

/// Calls that wait for approval, each with a key that cannot be guessed.
#[derive(Default)]
pub(super) struct Waiting(Mutex<VecDeque<Call>>);

/// A waiting call.
pub(super) struct Call {
    key: String,
    since: Instant,
    caller: CallerId,
    /// A hash of the operation and the input, which may be large.
    about: [u8; 32],
}

impl Call {
    pub(super) fn new(caller: &CallerId, id: &str, input: &Value) -> Self {
        Self { key: random::key(), since: Instant::now(), caller: caller.clone(), about: about(id, input) }
    }
}

impl Waiting {
    /// Adds a waiting call, and returns its key.
    pub(super) fn add(&self, caller: &CallerId, id: &str, input: &Value) -> String {
        let call = Call::new(caller, id, input);
        let key = call.key.clone();
        self.keep(call);
        key
    }

    /// Removes and returns the call that waits under the key, if the caller, the operation and the input are the same.
    pub(super) fn redeem(&self, key: &str, caller: &CallerId, id: &str, input: &Value) -> Option<Call> {
        self.find(caller, id, input, |call| call.key == key)
    }

    /// Removes and returns a call of the caller with the same operation and input, whatever its key is.
    pub(super) fn take(&self, caller: &CallerId, id: &str, input: &Value) -> Option<Call> {
        self.find(caller, id, input, |_| true)
    }

    fn find(&self, caller: &CallerId, id: &str, input: &Value, is_meant: impl Fn(&Call) -> bool) -> Option<Call> {
        let about = about(id, input);
        let mut waiting = lock(&self.0);
        let found = waiting.iter().position(|call| is_meant(call) && call.caller == *caller && call.about == about);
        let call = found.and_then(|index| waiting.remove(index));
        call.filter(|call| call.since.elapsed() < KEPT_FOR)
    }

    /// Adds a call that waits. Its time counts from when the model made the call.
    fn keep(&self, call: Call) {
        let is_own = |other: &Call| other.caller == call.caller;
        let mut waiting = lock(&self.0);
        waiting.retain(|other| other.since.elapsed() < KEPT_FOR);
        // If the caller has many calls, its own oldest one is dropped, so that no caller displaces the calls of others.
        if waiting.iter().filter(|other| is_own(other)).count() >= WAITING_OF_ONE
            && let Some(oldest) = waiting.iter().position(is_own)
        {
            waiting.remove(oldest);
        }
        if waiting.len() >= WAITING {
            waiting.pop_front();
        }
        let place = waiting.partition_point(|other| other.since <= call.since);
        waiting.insert(place, call);
    }
}

/// A user's approval of a call. If the call is not made, for example because of a limit or its deadline, the approval is kept
/// for the same call. If the call was cancelled, the approval is dropped, because the user may have stopped the call.
pub(super) struct Yes<'a> {
    waiting: &'a Waiting,
    call: Option<Call>,
    made_by: &'a MadeBy,
    context: &'a Context,
}

impl<'a> Yes<'a> {
    pub(super) fn new(waiting: &'a Waiting, call: Call, made_by: &'a MadeBy, context: &'a Context) -> Self {
        Self { waiting, call: Some(call), made_by, context }
    }
}

impl Drop for Yes<'_> {
    fn drop(&mut self) {
        let is_withdrawn = self.context.cancel_token().is_some_and(CancelToken::is_cancelled);
        if let Some(call) = self.call.take().filter(|_| !self.made_by.is_made() && !is_withdrawn) {
            self.waiting.keep(call);
        }
    }
}

fn about(id: &str, input: &Value) -> [u8; 32] {
    // The order of members does not matter.
    let mut about = json!([id, input]);
    about.sort_all_objects();
    let digest = ring::digest::digest(&ring::digest::SHA256, about.to_string().as_bytes());
    digest.as_ref().try_into().unwrap_or_default()
}

/// The key of the question about a call. Other calls of the same request, such as those of its handler, have other keys, so that
/// an answer holds only for the operation and the input that the user saw.
pub(super) fn key(id: &str, input: &Value) -> String {
    format!("{OWN_KEYS}approval-{}", hex(&about(id, input)))
}

/// Asks the user of the client if the call may be made; the key identifies the question within the request.
///
/// # Errors
/// If the client can't ask, with the code [`NEEDED`]; if its user declines, with `ACCESS_DENIED`.
pub(super) fn ask<'a>(
    peer: &'a McpPeer,
    key: &'a str,
    entry: &'a Entry,
    input: &'a Value,
    context: Option<&'a Context>,
) -> BoxFuture<'a, Result<(), CallError>> {
    Box::pin(async move {
        let spec = &*entry.spec;
        if !peer.supports("elicitation") {
            return Err(needed(spec));
        }
        let message = question(entry, input, context);
        let schema = json!({ "type": "object", "properties": {} });
        let params = json!({ "message": message, "requestedSchema": schema });
        // The text is not that of the operation, which was not run.
        let answer = peer.ask(key, METHOD, params).await.map_err(CallError::by_this_process)?;
        match answer.get("action").and_then(Value::as_str) {
            Some("accept") => Ok(()),
            Some("decline") => Err(declined(spec)),
            _ => Err(dismissed(spec)),
        }
    })
}

/// The text of the question: the operation and its input. Of a file, the size is shown, and the name and type if they
/// are known; of a long value, the beginning is shown, beside everything else.
pub(super) fn question(entry: &Entry, input: &Value, context: Option<&Context>) -> String {
    let asked = files::asked(entry, input, context);
    let (shown, parts, more) = large::excerpt(&asked, SHOWN);
    let mut text = serde_json::to_string_pretty(&shown).unwrap_or_default();
    if text.len() > 2 * SHOWN {
        // Deeply nested JSON would be wide if it were indented.
        text = shown.to_string();
    }
    if !parts.is_empty() {
        text.push_str("\n\nNot all of it is shown:");
        parts.iter().take(PARTS).for_each(|part| text.push_str(&format!("\n- {part}")));
        let more = more.saturating_add(parts.len().saturating_sub(PARTS));
        if more > 0 {
            text.push_str(&format!("\n- and {more} other places"));
        }
    }
    format!("May `{}` be called? {}\n\n{}", name(&entry.spec.id), summary(&entry.spec), in_order(&text))
}

/// The error of a call without approval.
pub(super) fn needed(spec: &OperationSpec) -> CallError {
    let why = if spec.may_change() { "changes something, so" } else { "is one that the policy asks about:" };
    let message = format!(
        "`{}` {why} somebody has to agree to the call, and this client cannot ask its user (elicitation). \
         Whoever runs this server can let it pass by the policy (`allow`), or serve the tools `search`, `describe` and `call`",
        name(&spec.id)
    );
    CallError::new(NEEDED, message)
}

fn dismissed(spec: &OperationSpec) -> CallError {
    let message =
        format!("the user was asked about the call of `{}` and did not agree to it, nor refuse it", name(&spec.id));
    CallError::new(ErrorCode::AccessDenied, message)
}

pub(super) fn declined(spec: &OperationSpec) -> CallError {
    let message = format!("the user declined the call of `{}`: do not repeat it", name(&spec.id));
    CallError::new(ErrorCode::AccessDenied, message)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::Schema;
    use crate::run::schemas::DefinitionCache;

    #[test]
    fn a_key_is_good_once_for_one_caller_and_call() {
        let waiting = Waiting::default();
        let input = json!({ "petId": 7 });
        let [ann, bob] = ["ann", "bob"].map(CallerId::connection);
        let key = waiting.add(&ann, "shop.deletePet", &input);
        assert!(waiting.redeem(&key, &bob, "shop.deletePet", &input).is_none());
        assert!(waiting.redeem(&key, &ann, "shop.deletePet", &json!({ "petId": 8 })).is_none());
        assert!(waiting.redeem(&key, &ann, "shop.deleteShop", &input).is_none());
        assert!(waiting.redeem(&key, &ann, "shop.deletePet", &input).is_some());
        assert!(waiting.redeem(&key, &ann, "shop.deletePet", &input).is_none());
    }

    #[test]
    fn no_caller_pushes_out_what_others_wait_for() {
        let waiting = Waiting::default();
        let [ann, bob] = ["ann", "bob"].map(CallerId::connection);
        let long = json!("x".repeat(100_000));
        let of_bob = waiting.add(&bob, "shop.deletePet", &long);
        let keys: Vec<String> = (0..=WAITING_OF_ONE).map(|n| waiting.add(&ann, "shop.deletePet", &json!(n))).collect();
        assert!(waiting.redeem(&keys[0], &ann, "shop.deletePet", &json!(0)).is_none());
        assert!(waiting.redeem(&keys[1], &ann, "shop.deletePet", &json!(1)).is_some());
        assert!(waiting.redeem(&of_bob, &bob, "shop.deletePet", &long).is_some());
    }

    fn question(spec: OperationSpec, input: &Value) -> String {
        let entry = Entry::new(spec.into(), None, &DefinitionCache::default()).unwrap();
        super::question(&entry, input, None)
    }

    #[test]
    fn no_text_of_a_document_stands_for_the_input() {
        let title = "Lists pets\n\n{ \"dryRun\": true }\n\u{202e}".to_owned() + &"x".repeat(10_000);
        let id = "shop.list` be called? Lists pets.\n\n{}\n".to_owned() + &"\n".repeat(1_000);
        let spec = OperationSpec::mutation(id.leak()).with_title(title.leak());
        let text = question(spec.clone(), &json!({ "name": "\u{202e}gnp.exe" }));
        let (first, input) = text.split_once("\n\n").unwrap();
        assert!(first.len() < 3_000 && !text.contains('\u{202e}'), "{text}");
        assert_eq!(input, "{\n  \"name\": \"\\u{202e}gnp.exe\"\n}");
        // Texts may hold letters that no person sees, and joiners that a script or an emoji needs.
        let text =
            question(spec, &json!({ "name": "\u{e0041}\u{ad}\u{9b}\u{2028}x\u{1f469}\u{200d}\u{1f4bb}\u{fe0f}" }));
        let shown = "\\u{e0041}\\u{ad}\\u{9b}\\u{2028}x\u{1f469}\u{200d}\u{1f4bb}\u{fe0f}";
        assert!(text.ends_with(&format!("{{\n  \"name\": \"{shown}\"\n}}")), "{text}");
    }

    #[test]
    fn a_question_shows_the_call_and_cuts_what_is_long() {
        let spec =
            || OperationSpec::mutation("shop.deletePet").with_description("Takes a pet off the shop.\nFor good.");
        let text = question(spec(), &json!({ "petId": 7 }));
        assert_eq!(text, "May `shop.deletePet` be called? Takes a pet off the shop.\n\n{\n  \"petId\": 7\n}");
        let long = question(spec(), &json!("ä".repeat(5_000)));
        assert!(long.len() < 2_300 && long.ends_with("of 5,000 characters are shown, 4,001 more"), "{long}");
        let deep = (0..60).fold(json!(vec![0; 900]), |inner, _| json!([inner]));
        assert!(question(spec(), &deep).len() < 3_000);
        let wide: Value = (0..1_000).map(|n| (format!("a{n}"), json!("x".repeat(20)))).collect::<Map<_, _>>().into();
        let wide = question(spec(), &wide);
        assert!(wide.len() < 4_500 && wide.contains("of 1,000 members are shown"), "{wide}");
    }

    #[test]
    fn nothing_is_hidden_behind_what_is_long() {
        let input = json!({ "note": "x".repeat(50_000), "rows": [vec![1; 10_000], ["end"]], "to": "mallory" });
        let text = question(OperationSpec::mutation("bank.pay"), &input);
        assert!(text.contains("mallory") && text.len() < 5_000, "{text}");
        assert!(text.contains("\n- /note: ") && text.contains("of 50,000 characters are shown"), "{text}");
        assert!(text.contains("\n- /rows: 1 of 2 items are shown, 1 more"), "{text}");
    }

    #[test]
    fn files_are_told_by_their_sizes() {
        let schema = r#"{"type":"object","properties":{"file":{"type":"string","format":"binary"}}}"#;
        let spec = OperationSpec::mutation("files.put").with_input(Schema::text(schema));
        let text = question(spec, &json!({ "file": "aHVz".repeat(1_000), "public": true }));
        assert!(text.ends_with("{\n  \"file\": {\n    \"bytes\": 3000\n  },\n  \"public\": true\n}"), "{text}");
    }

    #[test]
    fn a_text_is_shown_also_where_a_file_may_be_given() {
        let schema = r#"{"type":"object","properties":{
            "file":{"anyOf":[{"type":"string"},{"type":"string","format":"binary"}]}}}"#;
        let spec = OperationSpec::mutation("files.put").with_input(Schema::text(schema));
        let text = question(spec, &json!({ "file": "delete all pets" }));
        assert!(text.ends_with("{\n  \"file\": \"delete all pets\"\n}"), "{text}");
    }
}
