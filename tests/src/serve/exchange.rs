//! Requests of our client as our server reads them: what is sent must come in, member by member.
//!
//! Every operation of a document is registered with a handler that keeps its input, and served; the client sends two
//! inputs to each, one with only what is required and one with everything.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpParameter, ParameterLocation, SecurityKind, SecurityScheme};
use ops_runtime::registry::CancelToken;
use ops_runtime::serve::{HttpServer, HttpServerOptions, Unauthorized};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, HttpClient, HttpConfig, Registry, access::Identity};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::requests::{Made, inputs};
use crate::serve::cause::{Cause, cause};
use crate::serve::document;

/// What the paths of operations begin with that would take the place of the document.
const ASIDE: &str = "/aside";

/// A call may take this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of a document.
#[derive(Debug, Default)]
pub struct Report {
    /// Why nothing was sent, if nothing was.
    pub failure: Option<String>,
    /// How many operations there are.
    pub operations: usize,
    /// How many requests were sent, and how many of them came in as they were.
    pub requests: usize,
    /// See `requests`.
    pub same: usize,
    /// How many inputs could not be sent: no value fits their schemas, or a form has no place for one.
    pub unsent: usize,
    /// How many did not come in as they were for a cause that lies in how requests are written.
    pub lost: BTreeMap<Cause, usize>,
    /// What was wrong.
    pub faults: Vec<Fault>,
    /// How the document that the server gives differs from the one that was served.
    pub document: document::Report,
}

/// A request that did not come in as it was sent.
#[derive(Debug)]
pub struct Fault {
    /// The name of the operation.
    pub operation: String,
    /// The place in the input.
    pub place: String,
    /// What was sent.
    pub sent: String,
    /// What came in.
    pub came: String,
}

/// The inputs that came in, each with the id of its operation.
type Kept = Arc<Mutex<Vec<(String, Value)>>>;

/// Sends two requests to every operation of a document.
pub async fn exchange(path: &Path, namespace: &str) -> Report {
    match run(path, namespace).await {
        Ok(report) => report,
        Err(failure) => Report { failure: Some(failure), ..Report::default() },
    }
}

async fn run(path: &Path, namespace: &str) -> Result<Report, String> {
    let (specs, made) = inputs(path, namespace)?;
    let mut report = Report { operations: specs.len(), ..Report::default() };
    let kept = Kept::default();
    let serving = Serving::start(&specs, &made, &kept).await?;
    let given = given(&serving.url).await;
    // A path such as `/{id}` is also that of the document: its operation runs or refuses the request. Then the same operations
    // are compared at other paths.
    let is_taken = kept.lock().is_ok_and(|mut kept| !std::mem::take(&mut *kept).is_empty());
    report.document = match given {
        Ok(given) if !is_taken => document::compare(&specs, &given, namespace)?,
        _ => apart(&specs, namespace).await?,
    };
    let client = HttpClient::new(HttpConfig::new().with_base_url(&*serving.url)).map_err(|error| error.to_string())?;
    let caller = Registry::new();
    caller
        .register_all(client.bind(specs.clone()).map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())?;
    for made in &made {
        send(&caller, &specs, made, &kept, &mut report).await;
    }
    serving.end().await;
    Ok(report)
}

/// A server of operations whose handlers keep their inputs.
struct Serving {
    url: String,
    stop: CancelToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Starts a server that lets the pages of these samples send requests.
    async fn start(specs: &[OperationSpec], made: &[Made], kept: &Kept) -> Result<Self, String> {
        let registry = Registry::new();
        registry.register_all(specs.iter().map(|spec| stub(spec, kept))).map_err(|error| error.to_string())?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
        let stop = CancelToken::new();
        // Whoever sends may do everything.
        let scopes = every_scope(specs);
        let server = HttpServer::new(registry)
            .with_options(HttpServerOptions::new().with_shutdown_timeout(Duration::from_secs(1)))
            .with_origins(origins(made))
            .with_authenticator(move |_: &http::request::Parts| {
                let identity = scopes.iter().fold(Identity::new("all"), Identity::with_scope);
                async move { Ok::<_, Unauthorized>(identity) }
            })
            .with_cancel(stop.clone());
        Ok(Self { url, stop, task: tokio::spawn(server.serve_listener(listener)) })
    }

    async fn end(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// Compares the document of a server that has the operations at other paths.
async fn apart(specs: &[OperationSpec], namespace: &str) -> Result<document::Report, String> {
    let mut specs = specs.to_vec();
    for spec in &mut specs {
        if let Binding::Http(http) = &mut spec.binding {
            http.path = format!("{ASIDE}{}", http.path).into();
        }
    }
    let serving = Serving::start(&specs, &[], &Kept::default()).await?;
    let given = given(&serving.url).await;
    serving.end().await;
    document::compare(&specs, &given?, namespace)
}

/// The document that a server gives of itself.
async fn given(url: &str) -> Result<Value, String> {
    let spec = OperationSpec::query("server.document").with_http(HttpBinding::new("GET", "/openapi.json"));
    let config = HttpConfig::new().with_base_url(url).with_max_response(256 << 20);
    let client = HttpClient::new(config).map_err(|error| error.to_string())?;
    let registry = Registry::new();
    registry
        .register_all(client.bind([spec]).map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())?;
    let found = registry.call("server.document", Value::Object(Map::new())).await;
    Ok(found.map_err(|error| format!("{error} {}", error.details()))?.data)
}

/// The pages that requests say they come from: a server refuses a page that it is not told of.
fn origins(made: &[Made]) -> Vec<String> {
    let of = |made: &Made| -> Vec<String> {
        let parameters = made.spec.http().map_or(&[][..], |http| &http.parameters);
        let is_origin =
            |own: &&HttpParameter| own.location == ParameterLocation::Header && own.name.eq_ignore_ascii_case("origin");
        let values = parameters.iter().filter(is_origin).filter_map(|own| made.input.get(&*own.property)?.as_str());
        values.map(str::to_owned).collect()
    };
    made.iter().flat_map(of).collect()
}

fn every_scope(specs: &[OperationSpec]) -> Vec<String> {
    let ways = specs.iter().filter_map(OperationSpec::http).flat_map(|http| http.security.iter());
    let schemes = ways.flat_map(|way| way.schemes.iter());
    let mut scopes: Vec<String> = schemes.flat_map(|scheme| scheme.scopes.iter().map(str::to_owned)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

/// A handler that keeps its input.
fn stub(spec: &OperationSpec, kept: &Kept) -> Registration {
    let (id, kept) = (spec.id.clone().into_owned(), kept.clone());
    let keep = move |input: Value| {
        if let Ok(mut kept) = kept.lock() {
            kept.push((id.clone(), input));
        }
    };
    let over = || CallError::new("KEPT", "the input was kept");
    let handler = match spec.kind {
        OperationKind::Subscription => Handler::dynamic_stream(move |input, _| {
            keep(input);
            async move { Ok(stream::iter([Err(over())])) }
        }),
        _ => Handler::dynamic(move |input, _| {
            keep(input);
            async move { Err(over()) }
        }),
    };
    Registration::new(spec.clone(), handler)
}

async fn send(caller: &Registry, specs: &[OperationSpec], made: &Made, kept: &Kept, report: &mut Report) {
    let Made { spec, input, .. } = made;
    let call = async {
        if spec.kind == OperationKind::Subscription {
            let mut stream = caller.stream(&spec.id, input.clone()).await?;
            return stream.next().await.unwrap_or_else(|| Err(CallError::execution("no item"))).map(|_| ());
        }
        caller.call(&spec.id, input.clone()).await.map(|_| ())
    };
    let error = timeout(PATIENCE, call).await.map(Result::err);
    let said = match error {
        Ok(Some(error)) => error,
        Ok(None) => CallError::execution("a result that nobody gave"),
        Err(_) => CallError::execution("no answer in time"),
    };
    let came = kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    if came.is_empty() && said.code().as_str() == "VALIDATION_ERROR" {
        // The client itself refuses it.
        report.unsent += 1;
        return;
    }
    report.requests += 1;
    let mut faults = compare(made, &came, &said);
    if is_closed(spec) {
        if came.is_empty() && said.details()["statusCode"] == 403 {
            *report.lost.entry(Cause::Unreadable).or_default() += 1;
        } else {
            let (operation, place) = (spec.name().to_owned(), String::new());
            faults.push(Fault { operation, place, sent: input.to_string(), came: format!("not refused: {said}") });
            report.faults.extend(faults);
        }
        return;
    }
    if faults.is_empty() {
        report.same += 1;
        return;
    }
    match cause(made, specs, came.first(), &faults, &said) {
        Some(cause) => *report.lost.entry(cause).or_default() += 1,
        None => report.faults.extend(faults),
    }
}

/// True if no way to authenticate of the operation can be read.
fn is_closed(spec: &OperationSpec) -> bool {
    spec.http().is_some_and(|http| {
        let is_unread = |scheme: &SecurityScheme| scheme.kind == SecurityKind::UNKNOWN;
        !http.security.is_empty() && http.security.iter().all(|way| way.schemes.iter().any(is_unread))
    })
}

/// What differs between what was sent and what came in.
pub(super) fn compare(made: &Made, came: &[(String, Value)], said: &CallError) -> Vec<Fault> {
    let Made { spec, input, .. } = made;
    let fault = |came: String| {
        let (operation, place) = (spec.name().to_owned(), String::new());
        vec![Fault { operation, place, sent: input.to_string(), came }]
    };
    let [(id, own)] = came else {
        return fault(format!("{} times: {} {} {}", came.len(), said.code(), said.message(), said.details()));
    };
    if *id != spec.id {
        return fault(format!("the operation `{id}` ran"));
    }
    let mut faults = Vec::new();
    let empty = Map::new();
    let (sent, own) = (input.as_object().unwrap_or(&empty), own.as_object().unwrap_or(&empty));
    // The content type that the client chose, where its caller left it open.
    let choice = spec.http().and_then(|http| http.content_type.as_deref());
    for name in names(sent, own) {
        if choice == Some(name) && !sent.contains_key(name) {
            continue;
        }
        differences(&format!("/{name}"), sent.get(name), own.get(name), &mut |place, sent, came| {
            // A whole number has no fraction as text.
            if let (Some(Value::Number(sent)), Some(Value::Number(came))) = (sent, came)
                && sent.is_f64()
                && sent.as_f64() == came.as_f64()
            {
                return;
            }
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            faults.push(Fault { operation: spec.name().to_owned(), place, sent: text(sent), came: text(came) });
        });
    }
    faults
}

/// The names of two objects, each once.
fn names<'v>(one: &'v Map<String, Value>, other: &'v Map<String, Value>) -> Vec<&'v String> {
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What is told a place, and what is there of what was sent and of what came.
type Tell<'t> = dyn FnMut(String, Option<&Value>, Option<&Value>) + 't;

/// Tells every place at which two values differ.
fn differences(place: &str, sent: Option<&Value>, came: Option<&Value>, tell: &mut Tell<'_>) {
    match (sent, came) {
        (Some(Value::Object(sent)), Some(Value::Object(came))) => {
            names(sent, came).iter().for_each(|name| {
                differences(&format!("{place}/{name}"), sent.get(*name), came.get(*name), tell);
            });
        }
        (Some(Value::Array(sent)), Some(Value::Array(came))) if sent.len() == came.len() => {
            let both = sent.iter().zip(came).enumerate();
            both.for_each(|(at, (sent, came))| differences(&format!("{place}/{at}"), Some(sent), Some(came), tell));
        }
        (sent, came) if sent == came => {}
        (sent, came) => tell(place.to_owned(), sent, came),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The path of the document is that of the operation, too, which refuses it: it is no number.
    #[tokio::test]
    async fn an_operation_in_the_place_of_the_document_and_a_page_of_its_own() {
        let parameters = json!([
            { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "Origin", "in": "header", "required": true, "schema": { "enum": ["https://one.example.com"] } },
        ]);
        let get =
            json!({ "operationId": "get", "parameters": parameters, "responses": { "204": { "description": "" } } });
        let info = json!({ "title": "t", "version": "1" });
        let document = json!({ "openapi": "3.1.0", "info": info, "paths": { "/{id}": { "get": get } } });
        let path = std::env::temp_dir().join(format!("ops-exchange-{}.json", std::process::id()));
        std::fs::write(&path, document.to_string()).unwrap();
        let report = exchange(&path, "t").await;
        std::fs::remove_file(&path).unwrap();
        assert_eq!((&report.failure, report.requests, report.same), (&None, 2, 2), "{report:?}");
        assert_eq!((report.document.operations, report.document.faults.len()), (1, 0), "{report:?}");
    }
}
