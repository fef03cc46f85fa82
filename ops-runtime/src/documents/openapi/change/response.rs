//! Responses: statuses, content types, and what they hold.

use std::collections::HashSet;

use serde_json::Value;

use super::binding::{counterparts, covers, schemas_of};
use super::{Comparison, Effect, Part, Place};
use crate::documents::change::value;
use crate::model::binding::alternative::alternative;
use crate::model::media::{Media, essence};
use crate::{ErrorDefinition, HttpBinding, HttpResponse, OperationKind, OperationSpec, StatusRange, pointer};

/// A success: its status, its content types, and the place of its schema in the output.
struct Success<'a> {
    status: StatusRange,
    responses: Vec<&'a HttpResponse>,
    variant: Option<u16>,
}

impl Comparison<'_> {
    pub(super) fn outputs(
        &mut self,
        old: &OperationSpec,
        new: &OperationSpec,
        old_http: &HttpBinding,
        new_http: &HttpBinding,
    ) {
        let (old_output, new_output) = (value(&old.output), value(&new.output));
        let (old_successes, new_successes) = (successes(old_http), successes(new_http));
        for success in &old_successes {
            // A part of a range may be all that comes of it.
            let is_given =
                |new: &Success<'_>| covered(success.status, new.status) || covered(new.status, success.status);
            if !new_successes.iter().any(is_given) {
                let message = "the status is not given any more";
                self.tell(Part::Response, &subject(success.status), "/output", message, true);
            }
        }
        let is_stream = old.kind == OperationKind::Subscription || new.kind == OperationKind::Subscription;
        let mut compared: HashSet<(Option<u16>, Option<u16>)> = HashSet::new();
        for success in &new_successes {
            let same = old_successes.iter().find(|old| old.status == success.status);
            let Some(found) = same.or_else(|| old_successes.iter().find(|old| covered(success.status, old.status)))
            else {
                let body = variant(&new_output, success.variant);
                let fits = is_stream || self.responses.comparer.fits(&old_output, body);
                let message =
                    if fits { "the status can come now" } else { "the status can come now, with another body" };
                self.tell(Part::Response, &subject(success.status), "/output", message, !fits);
                if fits && !is_stream {
                    // Its definitions may differ without harm.
                    self.schemas(Place::Response, &old_output, body, &subject(success.status), "/output");
                }
                continue;
            };
            if self.content_types(found, success) && !is_stream && compared.insert((found.variant, success.variant)) {
                let subject = if old_successes.len() > 1 { subject(found.status) } else { String::new() };
                let place = found.variant.map_or("/output".to_owned(), |at| format!("/output/oneOf/{at}"));
                let (old, new) = (variant(&old_output, found.variant), variant(&new_output, success.variant));
                self.schemas(Place::Response, old, new, &subject, &place);
            }
        }
        if is_stream {
            self.items((&streams(old_http), &old_output), (&streams(new_http), &new_output));
        } else if old_successes.is_empty() || new_successes.is_empty() {
            self.schemas(Place::Response, &old_output, &new_output, "", "/output");
        }
        if old_http.responses.iter().any(|r| r.whole_event) != new_http.responses.iter().any(|r| r.whole_event) {
            self.tell(Part::Response, "", "/output", "its items are other parts of events now", true);
        }
        self.errors((old, &failures(old_http)), (new, &failures(new_http)));
    }

    /// Compares the items of streams by their statuses and content types, or the whole outputs if none are the same.
    fn items(
        &mut self,
        (old, old_output): (&[(StatusRange, &str)], &Value),
        (new, new_output): (&[(StatusRange, &str)], &Value),
    ) {
        let found = counterparts(new, old);
        if found.iter().all(Option::is_none) {
            return self.schemas(Place::Response, old_output, new_output, "", "/output");
        }
        let (old_own, new_own) =
            schemas_of((old_output, items_of(old_output, old)), (new_output, items_of(new_output, new)));
        let mut compared: HashSet<(*const Value, *const Value)> = HashSet::new();
        for (((status, _), is), found) in new.iter().zip(new_own).zip(found) {
            let was = match found.and_then(|found| old_own.get(found)) {
                Some(was) => *was,
                // A client does not ask for another content type.
                None if old.iter().any(|(own, _)| own == status) => continue,
                None => old_output,
            };
            if compared.insert((std::ptr::from_ref(was), std::ptr::from_ref(is))) {
                self.schemas(Place::Response, was, is, "", "/output");
            }
        }
    }

    /// Compares the content types of a success; true if its schemas are of the same one.
    fn content_types(&mut self, old: &Success<'_>, new: &Success<'_>) -> bool {
        let types = |success: &Success<'_>| -> Vec<String> {
            let types = success.responses.iter().filter_map(|response| response.content_type.as_deref());
            types.map(essence).collect()
        };
        let (old_types, new_types) = (types(old), types(new));
        // A body that comes or goes is a change of the schema.
        if old_types.is_empty() || new_types.is_empty() {
            return true;
        }
        let subject = subject(old.status);
        let is_in = |wanted: &str, types: &[String]| types.iter().any(|one| one == wanted || covers(one, wanted));
        for lost in old_types.iter().filter(|one| !is_in(one, &new_types)) {
            let message = format!("`{lost}` is not given any more");
            self.tell(Part::Response, &subject, "/output", &message, true);
        }
        for found in new_types.iter().filter(|one| !is_in(one, &old_types)) {
            self.tell(Part::Response, &subject, "/output", &format!("`{found}` is given now"), false);
        }
        let (old_first, new_first) = (old_types.first(), new_types.first());
        // Only the preferred content type of a status has a schema.
        old_first == new_first || old_first.is_some_and(|first| !is_in(first, &new_types))
    }

    /// Compares the errors that both versions declare. Each declared error is its code, and its name in changes.
    pub(super) fn errors(
        &mut self,
        (old, old_declared): (&OperationSpec, &[(String, String)]),
        (new, new_declared): (&OperationSpec, &[(String, String)]),
    ) {
        let place = |code: &str| format!("/errors/{}", pointer::escaped(code));
        let has = |declared: &[(String, String)], code: &str| declared.iter().any(|(own, _)| own == code);
        for (code, subject) in old_declared.iter().filter(|(code, _)| !has(new_declared, code)) {
            self.tell(Part::Response, subject, &place(code), "the error is not described any more", Effect::Names);
        }
        for (code, subject) in new_declared.iter().filter(|(code, _)| !has(old_declared, code)) {
            // It is an error of its own now. What handles all declared errors of the operation, or the others, lacks it.
            let effect = if old_declared.is_empty() { Effect::None } else { Effect::Names };
            self.tell(Part::Response, subject, &place(code), "the error is described now", effect);
        }
        let find = |errors: &'_ [ErrorDefinition], code: &str| {
            errors.iter().find(|error| error.code == code).map(|error| value(&error.schema).into_owned())
        };
        let any = Value::Bool(true);
        for (code, subject) in old_declared.iter().filter(|(code, _)| has(new_declared, code)) {
            let (old, new) = (find(&old.errors, code), find(&new.errors, code));
            let (old, new) = (old.as_ref().unwrap_or(&any), new.as_ref().unwrap_or(&any));
            self.schemas(Place::Response, old, new, subject, &place(code));
        }
    }
}

/// The successes that a document describes; if it describes none, `default` is one.
fn successes(http: &HttpBinding) -> Vec<Success<'_>> {
    let by_default = !http.responses.iter().any(|response| response.status.is_success());
    let succeeds = |status: StatusRange| status.is_success() || by_default && status == StatusRange::Default;
    let mut found: Vec<Success<'_>> = Vec::new();
    for response in http.responses.iter().filter(|response| succeeds(response.status)) {
        match found.iter_mut().find(|success| success.status == response.status) {
            Some(success) => {
                success.variant = success.variant.or(response.variant);
                success.responses.push(response);
            }
            None => {
                found.push(Success { status: response.status, responses: vec![response], variant: response.variant })
            }
        }
    }
    found
}

/// The streams of all successes, by their statuses and content types.
fn streams(http: &HttpBinding) -> Vec<(StatusRange, &str)> {
    let found = successes(http);
    let responses = found.iter().flat_map(|success| success.responses.iter());
    responses
        .filter_map(|response| Some((response.status, response.content_type.as_deref()?)))
        .filter(|(_, content_type)| Media::of(content_type).is_stream())
        .collect()
}

/// The schema of the items of each stream: the schema for all if the streams share it. `None` if it is unclear which schema a
/// stream has.
fn items_of<'v>(output: &'v Value, types: &[(StatusRange, &str)]) -> Vec<Option<&'v Value>> {
    let all = output.get("oneOf").and_then(Value::as_array).filter(|_| types.len() > 1);
    let Some(all) = all else { return vec![Some(output); types.len()] };
    let content_types: Vec<&str> = types.iter().map(|(_, content_type)| *content_type).collect();
    (0..types.len()).map(|at| alternative(all, &content_types, at)).collect()
}

/// The errors that a document describes: the code of each, and its status in words.
fn failures(http: &HttpBinding) -> Vec<(String, String)> {
    let by_default = !http.responses.iter().any(|response| response.status.is_success());
    let mut found = Vec::new();
    for response in http.responses.iter() {
        let succeeds = response.status.is_success() || by_default && response.status == StatusRange::Default;
        let failure = (response.status.error_code(), subject(response.status));
        if !succeeds && !found.contains(&failure) {
            found.push(failure);
        }
    }
    found
}

/// True if a range has all statuses of another.
fn covered(status: StatusRange, range: StatusRange) -> bool {
    match (status, range) {
        (StatusRange::Exact(status), range) => range.contains(status),
        (_, StatusRange::Default) => true,
        (status, range) => status == range,
    }
}

/// The schema of a variant of the output.
fn variant(output: &Value, variant: Option<u16>) -> &Value {
    let of = |at: u16| output.get("oneOf")?.get(usize::from(at));
    variant.and_then(of).unwrap_or(output)
}

fn subject(status: StatusRange) -> String {
    match status {
        StatusRange::Exact(status) => format!("status {status}"),
        StatusRange::Class(class) => format!("status {class}XX"),
        StatusRange::Default => "default response".to_owned(),
    }
}
