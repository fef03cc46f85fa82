//! A request in the server, and its sender.

use std::sync::Arc;

use http::StatusCode;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::accept::Accept;
use super::access::{self, Lack, Needs};
use super::auth;
use super::document::About;
use super::limits::Limits;
use super::metrics::{Meter, Metrics};
use super::options::HttpServerOptions;
use super::problem::Problem;
use super::routes::Cache;
use super::undeclared::Undeclared;
use crate::model::request_id::Number;
use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::{Authenticator, challenge};
use crate::run::filter::Filters;
use crate::run::host_check::Door;
use crate::run::registry::Entry;
use crate::run::response::ResponseParts;
use crate::{CallError, ErrorCode, HttpBinding, Identity, OperationSpec, ParameterLocation, Registry, SecurityScheme};

/// State shared by all requests of a server.
pub(super) struct Shared {
    pub(super) registry: Registry,
    pub(super) options: HttpServerOptions,
    pub(super) filters: Filters,
    pub(super) authenticator: Option<Arc<dyn Authenticator>>,
    /// The schemes that the authenticator reads.
    pub(super) schemes: Vec<SecurityScheme>,
    pub(super) door: Door,
    pub(super) limits: Limits,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) cancel: CancellationToken,
    pub(super) cache: Cache,
    /// The description of the server in the document; `None` if there is no document.
    pub(super) about: Option<About>,
    pub(super) undeclared: Arc<Undeclared>,
}

impl Shared {
    /// Reports codes that an operation does not declare, if its handler is a function: the codes of others are not the
    /// program's.
    pub(super) fn undeclared_of(&self, entry: &Entry) -> Option<&Arc<Undeclared>> {
        entry.handler.as_ref().is_some_and(|handler| !handler.is_remote()).then_some(&self.undeclared)
    }

    /// A challenge for the authenticator's schemes.
    pub(super) fn challenge(&self) -> Unauthorized {
        self.authenticator.as_ref().map_or_else(Unauthorized::bearer, |_| challenge(&self.schemes))
    }
}

/// A request in the server.
pub(super) struct Incoming<'a> {
    pub(super) server: &'a Shared,
    pub(super) parts: &'a Parts,
    pub(super) number: Number,
    pub(super) accept: Accept,
    pub(super) meter: &'a Meter,
    /// What the handler says of the response.
    pub(super) response: ResponseParts,
}

impl Incoming<'_> {
    /// Refuses a body with a content coding, unless the operation describes the header and its handler decodes it.
    pub(super) fn plain(&self, binding: Option<&HttpBinding>) -> Result<(), Problem> {
        let mut encodings = self.parts.headers.get_all(CONTENT_ENCODING).iter();
        let mut parameters = binding.into_iter().flat_map(|binding| binding.parameters.iter());
        let is_plain = encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
        let name = CONTENT_ENCODING.as_str();
        if is_plain
            || parameters.any(|own| own.location == ParameterLocation::Header && own.name.eq_ignore_ascii_case(name))
        {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "compressed bodies are not taken"))
    }

    /// The sender of the request.
    pub(super) async fn identify(&self) -> Result<Option<Arc<Identity>>, Problem> {
        let Some(authenticator) = &self.server.authenticator else { return Ok(None) };
        let identity = authenticator.authenticate(self.parts).await.map_err(Problem::unauthorized)?;
        Ok(identity.map(Arc::new))
    }

    /// Refuses a caller that may not run the operation, before anything is read for it.
    pub(super) fn admit(&self, entry: &Entry, identity: Option<&Identity>) -> Result<(), Problem> {
        self.meter.operation(&entry.spec.id);
        access::check(&entry.spec, identity).map_err(|lack| {
            let call = self.invocation(identity.cloned().map(Arc::new), false);
            let error = CallError::new(ErrorCode::AccessDenied, "the caller may not run the operation");
            call.refused(entry, &Value::Null, error);
            // Its scopes are no secret if the document lists them.
            self.lacking(lack, identity, self.server.about.as_ref().map(|_| &*entry.spec))
        })
    }

    /// The refusal of a caller, who is told what the operation requires.
    pub(super) fn lacking(&self, lack: Lack, identity: Option<&Identity>, spec: Option<&OperationSpec>) -> Problem {
        match lack {
            // No credentials help: whoever runs the server should know why.
            Lack::Identity if self.server.authenticator.is_none() => Problem::unauthorized(self.server.challenge())
                .described("the operation is for known callers, and this server has no authenticator"),
            Lack::Identity => Problem::unauthorized(self.server.challenge()),
            Lack::Rights => {
                let needs = spec.map(Needs::of).unwrap_or_default();
                let scopes = needs.missing_scopes(identity);
                Problem::forbidden(auth::insufficient(&self.server.schemes, &self.parts.headers, scopes), &needs)
            }
        }
    }
}
