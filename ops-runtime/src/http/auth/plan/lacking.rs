//! Missing credentials, reported before the first call.

use super::{Credentials, PROPOSED, Plan, is_by_engine};
use crate::HttpBinding;
use crate::model::nearest::{either, nearest, question};

impl Credentials {
    /// What to set, if operations need credentials and the configured ones suffice for none of them.
    pub(in crate::http) fn lacking<'a>(&self, bindings: impl Iterator<Item = &'a HttpBinding>) -> Option<String> {
        let asking: Vec<&HttpBinding> = bindings.filter(|binding| asks(binding)).collect();
        let suffices = |binding: &&HttpBinding| binding.security.iter().any(|way| self.satisfy(way).is_some());
        if asking.iter().any(suffices) {
            return None;
        }
        let schemes = || asking.iter().flat_map(|binding| binding.security.iter()).flat_map(|way| way.schemes.iter());
        let first = schemes().find(|scheme| !is_by_engine(scheme))?;
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
        let variables = self.environment.variables_of(first);
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        Some(if variables.is_empty() { told } else { format!("{told}: set {}", either(&variables)) })
    }
}

impl Plan {
    /// The schemes that the operation asks for, if the client has no credentials for them.
    pub(in crate::http) fn lacks(&self) -> Option<&str> {
        self.lacks.as_deref()
    }
}

/// True if an operation needs credentials that the client can have: not if it is public, or for certificates.
fn asks(binding: &HttpBinding) -> bool {
    let ways = &binding.security;
    !ways.is_empty() && ways.iter().all(|way| way.schemes.iter().any(|scheme| !is_by_engine(scheme)))
}
