//! Facts about credentials for warnings before the first call: which are missing, and which headers the others replace.

use std::sync::Arc;

use http::HeaderName;
use http::header::COOKIE;

use super::{Credentials, PROPOSED, Plan, Step, is_by_engine};
use crate::model::nearest::{either, nearest, question};
use crate::{HttpBinding, SecurityKind, SecurityRequirement, SecurityScheme};

impl Credentials {
    /// What to set, if operations need credentials and the configured ones suffice for none of them.
    pub(in crate::http) fn lacking<'a>(&self, bindings: impl Iterator<Item = &'a HttpBinding>) -> Option<String> {
        let asking: Vec<&HttpBinding> = bindings.filter(|binding| asks(binding)).collect();
        let suffices = |binding: &&HttpBinding| binding.security.iter().any(|way| self.satisfy(way).is_some());
        if asking.iter().any(suffices) {
            return None;
        }
        let ways = || asking.iter().flat_map(|binding| binding.security.iter());
        let schemes = || ways().flat_map(|way| way.schemes.iter());
        let asked = || schemes().filter(|scheme| !is_by_engine(scheme));
        let has_none =
            |scheme: &&SecurityScheme| self.set_for(scheme).is_none() && self.environment.auth(scheme).is_none();
        let first = asked().find(has_none).or_else(|| asked().next())?;
        let name = first.name.escape_debug();
        let lack = if self.default.is_some() { "those that are set are of another kind" } else { "they are not set" };
        let told = match asking.len() {
            1 => format!("1 operation needs credentials, `{name}`, and {lack}"),
            count => format!("{count} operations need credentials, such as `{name}`, and {lack}"),
        };
        let names = || schemes().map(|scheme| scheme.name.as_ref());
        if let Some(unknown) = self.named.keys().find(|name| !names().any(|known| known == name.as_str())) {
            let meant = question(&nearest(unknown, names(), PROPOSED));
            return Some(format!(
                "{told}; there are some for `{}`, which no operation names{meant}",
                unknown.escape_debug()
            ));
        }
        let names_it = |way: &SecurityRequirement| way.schemes.iter().any(|scheme| scheme.name == first.name);
        let is_read = ways().any(|way| names_it(way) && self.may_read(way));
        let variables = if is_read { self.environment.variables_of(first) } else { Vec::new() };
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let beside = self.environment.beside(first).map(|variable| format!(" with `{variable}`")).unwrap_or_default();
        Some(if variables.is_empty() { told } else { format!("{told}: set {}{beside}", either(&variables)) })
    }

    /// The headers of the configuration that the credentials of an operation replace. `Cookie` is not among them: credentials
    /// are added to the other cookies.
    pub(in crate::http) fn headers(&self, operation: &str, binding: &HttpBinding) -> Vec<HeaderName> {
        let plan = self.plan(operation, binding).unwrap_or_default();
        plan.steps.iter().filter_map(Step::header).filter(|name| *name != COOKIE).collect()
    }

    /// True if the default credentials are sent to an operation.
    pub(in crate::http) fn sends_default(&self, operation: &str, binding: &HttpBinding) -> bool {
        let plan = self.plan(operation, binding).unwrap_or_default();
        let is_default = |step: &Step| self.default.as_ref().is_some_and(|own| Arc::ptr_eq(own, &step.source));
        plan.steps.iter().any(is_default)
    }
}

impl Plan {
    /// The schemes that the operation asks for, if the client has no credentials for them.
    pub(in crate::http) fn lacks(&self) -> Option<&str> {
        self.lacks.as_deref()
    }
}

/// True if an operation needs credentials that the client can have: not if it is public, or for certificates, or
/// if the document does not describe them.
fn asks(binding: &HttpBinding) -> bool {
    let is_known = |way: &&SecurityRequirement| way.schemes.iter().all(|scheme| scheme.kind != SecurityKind::UNKNOWN);
    let mut ways = binding.security.iter().filter(is_known).peekable();
    ways.peek().is_some() && ways.all(|way| way.schemes.iter().any(|scheme| !is_by_engine(scheme)))
}
