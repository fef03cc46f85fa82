//! Requests of every operation of a document, judged by a mock server that knows the document.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::{
    CallError, CallOptions, OperationKind, OperationSpec, OutputPolicy, Registry, ResponseMeta, from_openapi_file,
};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{corpus, sample};

mod credentials;
mod judge;
mod prism;

pub use prism::Prism;

/// Prism's own errors, but for the one that says the document describes no answer.
const PRISM: &str = "https://stoplight.io/prism/errors#";
const NO_RESPONSE: &str = "https://stoplight.io/prism/errors#NO_RESPONSE_RESPONSE_DEFINED";

/// An answer may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a document.
#[derive(Debug, Default)]
pub struct Report {
    /// Why it was not run, if it was not.
    pub not_run: Option<String>,
    /// How many operations were sent.
    pub operations: usize,
    /// How many requests the server accepted.
    pub accepted: usize,
    /// How many of these got an answer that breaks the document's rules, in the server's own judgement.
    pub bad_answers: usize,
    /// How many answers were checked by an independent validator, because reading them needed repairs.
    pub judged: usize,
    /// What was wrong, by operation.
    pub complaints: Vec<Complaint>,
}

/// What was wrong with an operation.
#[derive(Debug)]
pub struct Complaint {
    /// The name of the operation.
    pub operation: String,
    /// What was wrong.
    pub what: String,
    /// Why that is no fault of the request, where that is plain.
    pub excuse: Option<&'static str>,
}

/// Sends a request of every operation of a document.
pub async fn exchange(path: &Path) -> Report {
    let mut report = Report::default();
    let document = match corpus::try_parse(path) {
        Ok(document) => document,
        Err(error) => return Report { not_run: Some(error), ..report },
    };
    let mut prism = match Prism::start(path).await {
        Ok(prism) => prism,
        Err(error) => return Report { not_run: Some(error), ..report },
    };
    let mut registry = match bind(path, &document, &prism) {
        Ok(registry) => registry,
        Err(error) => return Report { not_run: Some(error), ..report },
    };
    let mut seen = BTreeSet::new();
    for spec in registry.list() {
        let Some(http) = spec.http() else { continue };
        // The server sees no fragment.
        let place = http.path.split('#').next().unwrap_or(&http.path).to_owned();
        if !seen.insert((http.method.clone(), place.clone(), spec.kind == OperationKind::Subscription)) {
            continue;
        }
        report.operations += 1;
        let mut outcome = send(&registry, &spec, &document, &mut report.judged).await;
        if matches!(outcome, Err(Trouble::Gone(_))) {
            // It may have died of this request, or of one before it.
            match Prism::start(path).await.and_then(|new| {
                prism = new;
                bind(path, &document, &prism)
            }) {
                Ok(new) => registry = new,
                Err(error) => return Report { not_run: Some(format!("the server died: {error}")), ..report },
            }
            outcome = send(&registry, &spec, &document, &mut report.judged).await;
        }
        let (what, excuse) = match outcome {
            Ok(is_bad) => {
                report.accepted += 1;
                report.bad_answers += usize::from(is_bad);
                continue;
            }
            Err(Trouble::Gone(what)) => (what, None),
            Err(Trouble::Refused(what)) => {
                let is_told_apart = what.contains("_MATCHED_ERROR") && has_fragment(&document, &place, &http.method);
                (what, is_told_apart.then_some("the server looks for what follows a # in its path"))
            }
            Err(Trouble::Excused(what, excuse)) => (what, Some(excuse)),
        };
        report.complaints.push(Complaint { operation: spec.name().to_owned(), what, excuse });
    }
    report
}

/// Whether the document has the operation under a path with a fragment.
fn has_fragment(document: &Value, path: &str, method: &str) -> bool {
    let mut paths = document["paths"].as_object().into_iter().flatten();
    paths.any(|(other, item)| {
        other.split_once('#').is_some_and(|(before, _)| before == path) && item.get(method.to_lowercase()).is_some()
    })
}

fn bind(path: &Path, document: &Value, prism: &Prism) -> Result<Registry, String> {
    let config = credentials::config(document).with_namespace("api").with_base_url(prism.url()).with_timeout(PATIENCE);
    // A redirect that the server makes up leads to itself.
    let config = config.with_redirects(0);
    let path = path.to_str().ok_or("the path is no text")?;
    let imported = from_openapi_file(path, config).map_err(|error| error.to_string())?;
    let registry = Registry::new();
    registry.register_all(imported).map_err(|error| error.to_string())?;
    Ok(registry)
}

/// Why a request was not accepted.
enum Trouble {
    /// The server did not answer.
    Gone(String),
    /// The server, or our own check of the input, did not like it.
    Refused(String),
    /// It was not accepted, for a reason that is not in the request.
    Excused(String, &'static str),
}

/// What an answer tells.
struct Answer {
    headers: Map<String, Value>,
    error: Value,
}

async fn send(
    registry: &Registry,
    spec: &OperationSpec,
    document: &Value,
    judged: &mut usize,
) -> Result<bool, Trouble> {
    let schema = spec.input.self_contained(&spec.definitions);
    let schema = schema.map_err(|error| Trouble::Refused(format!("the input's schema is no JSON: {error}")))?;
    let input = sample::fitting(&schema);
    let told = |what: String| format!("{what} for {}", shortened(&input.to_string()));
    if spec.kind == OperationKind::Subscription {
        let first = async {
            let mut stream = registry.stream(&spec.id, input.clone()).await?;
            // What the server makes up as a stream need not be one.
            Ok(stream.next().await.and_then(Result::ok))
        };
        let first = timeout(PATIENCE, first).await.unwrap_or(Ok(None));
        let headers = match first {
            Ok(envelope) => Ok(envelope.map(|envelope| headers(&envelope.meta)).unwrap_or_default()),
            Err(error) => Err(error),
        };
        return accepted(headers, &told);
    }
    let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
    match registry.call_with(&spec.id, input.clone(), strict).await {
        Ok(envelope) => accepted(Ok(headers(&envelope.meta)), &told),
        Err(error) if error.details().get("raw").is_some() || error.details().get("value").is_some() => {
            let details = error.details();
            let raw = details.get("raw").or_else(|| details.get("value")).cloned().unwrap_or_default();
            *judged += 1;
            if judge::accepts(document, spec, &raw) {
                let what =
                    format!("a good answer was repaired: {} in {}", error.message(), shortened(&raw.to_string()));
                return Err(Trouble::Refused(what));
            }
            // Once more, for the headers, which the error has not.
            let again = registry.call(&spec.id, input.clone()).await;
            accepted(again.map(|envelope| headers(&envelope.meta)), &told)
        }
        Err(error) => accepted(Err(error), &told),
    }
}

fn headers(meta: &ResponseMeta) -> Map<String, Value> {
    let headers = meta.as_http().into_iter().flat_map(|http| &http.headers);
    headers.map(|(name, value)| (name.to_string(), Value::String(value.to_string()))).collect()
}

/// Whether the server accepted the request; if so, whether its answer broke the document's rules.
fn accepted(outcome: Result<Map<String, Value>, CallError>, told: &dyn Fn(String) -> String) -> Result<bool, Trouble> {
    let answer = match outcome {
        Ok(headers) => Answer { headers, error: Value::Null },
        Err(error) => {
            let details = error.details();
            if details["statusCode"].is_null() {
                let what = told(error.to_string());
                let is_gone = error.message().contains("request failed") || error.message().contains("connect");
                return Err(if is_gone { Trouble::Gone(what) } else { Trouble::Refused(what) });
            }
            let body = match &details["body"] {
                Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
                body => body.clone(),
            };
            Answer { headers: details["headers"].as_object().cloned().unwrap_or_default(), error: body }
        }
    };
    let kind = answer.error["type"].as_str().unwrap_or_default();
    if kind.starts_with(PRISM) && kind != NO_RESPONSE {
        let short = kind.strip_prefix(PRISM).unwrap_or(kind);
        let detail = answer.error["detail"].as_str().unwrap_or_default();
        let more = answer.error.get("validation").map(Value::to_string).unwrap_or_default();
        let what = told(format!("{short}: {} {}", shortened(detail), shortened(&more)));
        let excuse = match short {
            // It could make no answer of the schema, or its answer is not one.
            "SCHEMA_TOO_COMPLEX" | "UNPROCESSABLE_ENTITY_GENERATION" | "VIOLATIONS" => Some("the server's own answer"),
            "NO_COMPLEX_OBJECT_TEXT" => Some("the server cannot write what is not JSON"),
            "UNKNOWN" => Some("a failure within the server"),
            _ => None,
        };
        return Err(match excuse {
            Some(excuse) => Trouble::Excused(what, excuse),
            None => Trouble::Refused(what),
        });
    }
    let violations = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("sl-violations"));
    let Some(violations) = violations.and_then(|(_, text)| text.as_str()) else { return Ok(false) };
    // What the server makes up breaks the document's rules now and then, which says nothing about the request.
    if !violations.contains(r#""location":["request""#) {
        return Ok(true);
    }
    let what = told(format!("sl-violations: {}", shortened(violations)));
    let parsed: Value = serde_json::from_str(violations).unwrap_or_default();
    let is_harmless = |violation: &Value| violation["location"][0] == "response" || violation["severity"] == "Warning";
    match parsed.as_array() {
        Some(list) if list.iter().all(is_harmless) => {
            Err(Trouble::Excused(what, "a warning of the server: deprecated, or unknown to it"))
        }
        _ => Err(Trouble::Refused(what)),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
