//! Requests of every operation of a document, judged by a mock server that knows the document.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::envelope::ResponseMeta;
use ops_runtime::openapi::from_openapi_file;
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{OperationKind, OperationSpec, SpecRef};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{corpus, sample};

mod credentials;
mod exceptions;
mod excuse;
mod judge;
mod prism;
mod said;

pub use exceptions::{Exceptions, Verdict};
use excuse::Refusal;
use judge::Judgement;
pub use prism::Prism;

/// Prism's own errors, but for the one that says the document describes no answer.
const PRISM: &str = "https://stoplight.io/prism/errors#";
const NO_RESPONSE: &str = "https://stoplight.io/prism/errors#NO_RESPONSE_RESPONSE_DEFINED";

/// An answer may take this long. The values that the server makes up at random of schemas that refer to themselves can
/// take it hours: a document with such an answer gets the others from its examples, for which this is asked.
const PATIENCE: Duration = Duration::from_secs(25);
const FROM_EXAMPLES: (&str, &str) = ("prefer", "dynamic=false");

/// So much is shown of what was sent and of what was said.
const SHOWN: usize = 600;

/// What became of a document.
#[derive(Debug, Default)]
pub struct Report {
    /// Why it was not run, if it was not.
    pub not_run: Option<String>,
    /// What went wrong with it on our side, if something did.
    pub failure: Option<String>,
    /// The names of the operations that are sent.
    pub sent: Vec<String>,
    /// How many requests the server accepted.
    pub accepted: usize,
    /// How many of these got an answer that breaks the document's rules, in the server's own judgement.
    pub bad_answers: usize,
    /// How many answers were asked to be from the document's examples, as another took too long to make up.
    pub from_examples: usize,
    /// How many answers were checked by an independent validator, because reading them needed repairs.
    pub judged: usize,
    /// The operations whose answers could not be judged so, and why.
    pub unjudged: Vec<(String, String)>,
    /// What was wrong, by operation.
    pub complaints: Vec<Complaint>,
}

/// What was wrong with an operation.
#[derive(Debug)]
pub struct Complaint {
    /// The name of the operation.
    pub operation: String,
    /// What the server said, as `tests/wire.txt` has it: a code, and the places that it names.
    pub said: String,
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
        Err(error) => return Report { failure: Some(format!("it can't be read: {error}")), ..report },
    };
    let mut prism = match Prism::start(path).await {
        Ok(prism) => prism,
        Err(error) => return Report { not_run: Some(error), ..report },
    };
    let mut is_slow = false;
    let mut registry = match bind(path, &document, &prism, is_slow) {
        Ok(registry) => registry,
        Err(error) => return Report { failure: Some(error), ..report },
    };
    let specs = operations(&registry);
    report.sent = specs.iter().map(|spec| spec.name().to_owned()).collect();
    for spec in specs {
        let before = prism.written();
        let mut outcome = send(&registry, &spec, &document, &mut report).await;
        let mut log = prism.wrote(before);
        if let Err(Trouble::Gone { is_late, .. }) = outcome {
            is_slow |= is_late;
            // It may have died of this request, or of one before it.
            match Prism::start(path).await {
                Ok(new) => prism = new,
                Err(error) => {
                    let what = format!("the server died, and does not start again: {error}");
                    let (operation, said) = (spec.name().to_owned(), said::DEAD.to_owned());
                    report.complaints.push(Complaint { operation, said, what, excuse: None });
                    continue;
                }
            }
            match bind(path, &document, &prism, is_slow) {
                Ok(new) => registry = new,
                Err(error) => return Report { failure: Some(error), ..report },
            }
            let before = prism.written();
            outcome = send(&registry, &spec, &document, &mut report).await;
            log = prism.wrote(before);
        }
        report.from_examples += usize::from(is_slow);
        let complaint = complaint(outcome, &spec, &document, &log, &mut report);
        report.complaints.extend(complaint);
    }
    report
}

/// What is wrong with an operation, if something is; if not, it is counted.
fn complaint(
    outcome: Result<bool, Trouble>,
    spec: &OperationSpec,
    document: &Value,
    log: &str,
    report: &mut Report,
) -> Option<Complaint> {
    let has_passed = excuse::has_passed(log);
    let (said, what, excuse) = match outcome {
        Ok(is_bad) => {
            report.accepted += 1;
            report.bad_answers += usize::from(is_bad);
            return None;
        }
        Err(Trouble::Silent) if has_passed => {
            report.accepted += 1;
            return None;
        }
        // More violations than a header can hold, none of them about the request.
        Err(Trouble::Refused { error, violations, .. }) if has_passed && error.is_empty() && violations.is_empty() => {
            report.accepted += 1;
            report.bad_answers += 1;
            return None;
        }
        Err(Trouble::Silent) => (
            said::SILENT.to_owned(),
            "the server's answer has no headers, and its log does not say that the request passed".to_owned(),
            None,
        ),
        Err(Trouble::Gone { what, is_late: true }) => (said::LATE.to_owned(), what, None),
        Err(Trouble::Gone { what, is_late: false }) => (said::gone(prism::cause(log)), what, None),
        Err(Trouble::Unsent { said, what }) => (said, what, None),
        Err(Trouble::Refused { what, error, detail, violations }) => {
            let refusal = Refusal {
                error: &error,
                detail: &detail,
                violations: &violations,
                log,
                fields: &undecoded(spec),
                has_fragment: spec.http().is_some_and(|http| has_fragment(document, &http.path, &http.method)),
            };
            (said::by_server(&error, &detail, &violations), what, excuse::of(&refusal))
        }
    };
    Some(Complaint { operation: spec.name().to_owned(), said, what, excuse })
}

/// The operations that are sent: of those told apart by a fragment only, one.
fn operations(registry: &Registry) -> Vec<SpecRef> {
    let mut seen = BTreeSet::new();
    let mut specs = registry.list();
    specs.retain(|spec| {
        let Some(http) = spec.http() else { return false };
        let place = http.path.split('#').next().unwrap_or(&http.path).to_owned();
        seen.insert((http.method.clone(), place, spec.kind == OperationKind::Subscription))
    });
    specs
}

/// The fields of a form that were sent as lists or objects without the document saying in which style; none, if the body
/// is no form.
fn undecoded(spec: &OperationSpec) -> BTreeSet<String> {
    let forms = ["application/x-www-form-urlencoded", "multipart/form-data"];
    // The first content type is the one that is sent.
    let first = spec.http().and_then(|http| http.bodies.first());
    let form = first.filter(|body| forms.iter().any(|form| body.content_type.starts_with(form)));
    let (Some(body), Ok(input)) = (form, input(spec)) else { return BTreeSet::new() };
    let has_style = |name: &str| body.fields.iter().any(|field| field.name == name && field.style.is_some());
    let fields = input.get(body.property.as_ref()).and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter(|(name, value)| (value.is_array() || value.is_object()) && !has_style(name));
    fields.map(|(name, _)| name.clone()).collect()
}

/// Whether the document has the operation under a path with a fragment.
fn has_fragment(document: &Value, path: &str, method: &str) -> bool {
    let mut paths = document["paths"].as_object().into_iter().flatten();
    let path = path.split('#').next().unwrap_or(path);
    paths.any(|(other, item)| {
        other.split_once('#').is_some_and(|(before, _)| before == path) && item.get(method.to_lowercase()).is_some()
    })
}

fn bind(path: &Path, document: &Value, prism: &Prism, is_slow: bool) -> Result<Registry, String> {
    let config = credentials::config(document).with_namespace("api").with_base_url(prism.url()).with_timeout(PATIENCE);
    // A redirect that the server makes up leads to itself.
    let mut config = config.with_redirects(0);
    if is_slow {
        config = config.with_header(FROM_EXAMPLES.0, FROM_EXAMPLES.1);
    }
    let path = path.to_str().ok_or("the path is no text")?;
    let imported = from_openapi_file(path, config).map_err(|error| error.to_string())?;
    let registry = Registry::new();
    registry.register_all(imported).map_err(|error| error.to_string())?;
    Ok(registry)
}

/// Why a request was not accepted.
enum Trouble {
    /// The server did not answer.
    Gone { what: String, is_late: bool },
    /// It answered with a stream of nothing.
    Silent,
    /// Our own check of the input did not like it, or our own reading of the answer was wrong.
    Unsent { said: String, what: String },
    /// The server did not like it: its own error, and what it says about the request.
    Refused { what: String, error: String, detail: String, violations: Vec<Value> },
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
    report: &mut Report,
) -> Result<bool, Trouble> {
    let input = input(spec)?;
    let told = |what: String| format!("{what} for {}", shortened(&input.to_string(), SHOWN));
    if spec.kind == OperationKind::Subscription {
        let first = async {
            let mut stream = registry.stream(&spec.id, input.clone()).await?;
            // What the server makes up as a stream need not be one.
            Ok(stream.next().await.and_then(Result::ok))
        };
        let Ok(first) = timeout(PATIENCE, first).await else {
            return Err(Trouble::Gone { what: told("no answer in time".to_owned()), is_late: true });
        };
        let headers = match first {
            Ok(Some(envelope)) => Ok(headers(&envelope.meta)),
            Ok(None) => return Err(Trouble::Silent),
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
            report.judged += 1;
            match judge::judge(document, spec, &raw) {
                Judgement::Accepted => {
                    let raw = shortened(&raw.to_string(), SHOWN);
                    let what = format!("a good answer was repaired: {} in {raw}", error.message());
                    return Err(Trouble::Unsent { said: said::by_us("REPAIRED", &error), what });
                }
                Judgement::Refused => {}
                Judgement::None(why) => report.unjudged.push((spec.name().to_owned(), why)),
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

/// What is sent: a value of the input's schema, the same in every run.
fn input(spec: &OperationSpec) -> Result<Value, Trouble> {
    let schema = spec.input_schema();
    let mut schema = schema.map_err(|error| Trouble::Unsent {
        said: "NO_SCHEMA".to_owned(),
        what: format!("the input's schema is no JSON: {error}"),
    })?;
    choose_content_type(spec, &mut schema);
    Ok(sample::fitting(&schema))
}

/// Whether the server accepted the request; if so, whether its answer broke the document's rules.
fn accepted(outcome: Result<Map<String, Value>, CallError>, told: &dyn Fn(String) -> String) -> Result<bool, Trouble> {
    let answer = match outcome {
        Ok(headers) => Answer { headers, error: Value::Null },
        Err(error) => {
            let details = error.details();
            if details["statusCode"].is_null() {
                let what = told(error.to_string());
                let is_late = *error.code() == ErrorCode::Timeout;
                let is_gone =
                    is_late || error.message().contains("request failed") || error.message().contains("connect");
                return Err(match is_gone {
                    true => Trouble::Gone { what, is_late },
                    false => Trouble::Unsent { said: said::by_us("NOT_SENT", &error), what },
                });
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
        let error = kind.strip_prefix(PRISM).unwrap_or(kind).to_owned();
        let text = |key: &str| answer.error[key].as_str().unwrap_or_default();
        let violations = answer.error["validation"].as_array().cloned().unwrap_or_default();
        let more = shortened(&Value::from(violations.clone()).to_string(), SHOWN);
        // What an answer breaks has the place `response`, and is no word about the request.
        let violations = violations.into_iter().filter(|violation| violation["location"][0] != "response").collect();
        let detail = [text("title"), text("detail")].join("\n").trim().to_owned();
        let what = told(format!("{error}: {} {more}", shortened(&detail, SHOWN)));
        return Err(Trouble::Refused { what, error, detail, violations });
    }
    let violations = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("sl-violations"));
    let Some(text) = violations.and_then(|(_, text)| text.as_str()) else { return Ok(false) };
    let parsed: Option<Vec<Value>> = serde_json::from_str(text).ok();
    let what = told(format!("sl-violations: {}", shortened(text, SHOWN)));
    let Some(parsed) = parsed else {
        return Err(Trouble::Refused { what, error: String::new(), detail: String::new(), violations: Vec::new() });
    };
    // What the server makes up breaks the document's rules now and then, which says nothing about the request.
    let violations: Vec<Value> =
        parsed.into_iter().filter(|violation| violation["location"][0] != "response").collect();
    if violations.is_empty() {
        return Ok(true);
    }
    Err(Trouble::Refused { what, error: String::new(), detail: String::new(), violations })
}

/// Where the caller chooses a content type: the first, with a body of the schema that it has.
fn choose_content_type(spec: &OperationSpec, schema: &mut Value) {
    let Some(http) = spec.http() else { return };
    let (Some(property), Some(body)) = (http.content_type.as_deref(), http.bodies.first()) else { return };
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let first = properties.get(property).and_then(|choice| choice["enum"][0].as_str());
    let first = first.unwrap_or(&body.content_type).to_owned();
    properties.insert(property.to_owned(), json!({ "const": first }));
    // If the content types have different schemas, the body's own alternative is used.
    let own = |at: u16| properties.get(body.property.as_ref())?.get("oneOf")?.get(usize::from(at)).cloned();
    if let Some(own) = body.variant.and_then(own) {
        properties.insert(body.property.clone().into_owned(), own);
    }
}

/// The beginning of a text.
fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
