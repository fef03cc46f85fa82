//! The target of a request: an operation, or a resource of the server itself.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::OriginalUri;
use http::{Method, Response, StatusCode};

#[cfg(feature = "docs-page")]
use super::docs::Page;
#[cfg(feature = "docs-page")]
use super::document::About;
use super::document::{self, Security, Written};
use super::incoming::Incoming;
use super::metrics::Metrics;
use super::problem::Problem;
use super::read;
use super::response;
use super::routes::{Found, Match, Routes};
use super::tag;
use crate::model::nearest::{nearest, question};
use crate::run::registry::Entry;
use crate::{CallError, ErrorCode, SecurityKind, SecurityScheme};

/// How many ids a problem suggests.
const PROPOSED: usize = 3;

/// The target of a request.
pub(super) enum Place<'p> {
    /// To operations at the path of their bindings.
    Bound(Vec<Match<'p>>),
    /// To an operation by its id.
    ById(Arc<Entry>),
    /// The health check.
    Health,
    /// To the document of the operations.
    Document(Written),
    /// To the page that shows it.
    #[cfg(feature = "docs-page")]
    Docs(Page),
    /// The metrics.
    Metrics(Arc<Metrics>),
}

impl<'p> Incoming<'p> {
    /// The target of the request.
    pub(super) fn place(&self, routes: &Routes) -> Result<Place<'p>, Problem> {
        let (method, uri) = (&self.parts.method, &self.parts.uri);
        let methods = match routes.find(method.as_str(), uri.path(), uri.query().unwrap_or_default()) {
            Found::Matches(matches) => return Ok(Place::Bound(matches)),
            Found::Contested(entries) => {
                let places: Vec<String> = entries.iter().map(|entry| document::by_id(&entry.spec)).collect();
                let detail =
                    format!("several APIs have that path; each is at a path of its own: {}", places.join(", "));
                return Err(Problem::new(StatusCode::NOT_FOUND, detail));
            }
            Found::Methods(methods) => methods,
            Found::Nothing => Vec::new(),
        };
        let is_read = method == Method::GET || method == Method::HEAD;
        if let Some(place) = self.own(uri.path()) {
            if is_read {
                return Ok(place);
            }
            let others = methods.iter().map(String::as_str);
            return Err(Problem::methods(["GET"].into_iter().chain(others)));
        }
        if let Some(id) = by_id(uri.path()) {
            let Some(entry) = routes.entry(&id) else {
                return Err(self.unknown(routes, &id));
            };
            let may_be_read = !entry.spec.may_change();
            if method == Method::POST || (is_read && may_be_read) {
                return Ok(Place::ById(entry.clone()));
            }
            let methods = if may_be_read { &["GET", "POST"][..] } else { &["POST"] };
            return Err(Problem::methods(methods.iter().copied()));
        }
        if methods.is_empty() {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is no operation at that path"));
        }
        Err(Problem::methods(methods.iter().map(String::as_str)))
    }

    /// The problem of an id that no operation has. It names similar ids, if the document shows them to everyone.
    fn unknown(&self, routes: &Routes, id: &str) -> Problem {
        let shown = routes.entries.iter().filter(|_| self.server.about.is_some());
        let meant = question(&nearest(id, shown.map(|entry| entry.spec.id.as_ref()), PROPOSED));
        let error = CallError::new(ErrorCode::OperationNotFound, format!("there is no such operation{meant}"));
        Problem::of_error(&error, &crate::OperationSpec::query(""))
    }

    /// The server's own resource at a path, for reading methods.
    fn own(&self, path: &str) -> Option<Place<'p>> {
        if path == "/healthz" {
            return Some(Place::Health);
        }
        if let (Some(written), Some(_)) = (Written::at(path), &self.server.about) {
            return Some(Place::Document(written));
        }
        #[cfg(feature = "docs-page")]
        if let (Some(About { has_page: true, .. }), Some(page)) = (&self.server.about, Page::at(path)) {
            return Some(Place::Docs(page));
        }
        self.server.metrics.as_ref().filter(|_| path == "/metrics").cloned().map(Place::Metrics)
    }

    /// The page that shows the document, with the document's title.
    #[cfg(feature = "docs-page")]
    pub(super) fn page(&self, routes: &Routes, page: &Page) -> Response<Body> {
        let about = self.server.about.clone().unwrap_or_default();
        page.response(&self.parts.headers, || document::title(&routes.entries, &about))
    }

    /// The document of all operations.
    pub(super) async fn document(&self, routes: &Arc<Routes>, written: Written) -> Result<Response<Body>, Problem> {
        let make = || {
            let about = self.server.about.clone().unwrap_or_default();
            let security = match &self.server.authenticator {
                Some(authenticator) => Security::new(self.server.schemes.clone(), authenticator.is_exact()),
                None => Security::new(vec![SecurityScheme::new("bearer", SecurityKind::Bearer)], false),
            };
            let routes = routes.clone();
            move || document::document(&routes.entries, &routes.contested, &about, security)
        };
        let Some(begun) = routes.document.text(written, make).await else {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the document can't be made"));
        };
        // If this router is nested, the operations are below the same prefix.
        let original = self.parts.extensions.get::<OriginalUri>().map_or(&self.parts.uri, |original| &original.0);
        let url = original.path().strip_suffix(self.parts.uri.path()).filter(|url| !url.is_empty()).unwrap_or("/");
        let (text, tag) = begun.at(url);
        let all = || response::respond(StatusCode::OK, written.content_type(), Body::new(text));
        Ok(tag::respond(&self.parts.headers, &tag, all))
    }
}

/// The id in the path of a call by id: `/operations/{namespace}/{name}`.
fn by_id(path: &str) -> Option<String> {
    let (namespace, name) = path.strip_prefix("/operations/")?.split_once('/')?;
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return None;
    }
    Some(format!("{}.{}", read::unescaped(namespace)?, read::unescaped(name)?))
}
