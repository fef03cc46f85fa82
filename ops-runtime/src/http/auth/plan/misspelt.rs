//! Credentials for schemes that no operation names, whose names are probably misspelt.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::{Credentials, PROPOSED};
use crate::HttpBinding;
use crate::model::nearest::{closest, either, nearest};

impl Credentials {
    /// Notes which schemes operations name, and logs the credentials without a scheme.
    pub(in crate::http) fn meet<'a>(&self, bindings: impl Iterator<Item = &'a HttpBinding>) {
        if self.named.is_empty() {
            return;
        }
        let mut names = BTreeSet::new();
        bindings.for_each(|binding| names.extend(self.schemes(binding)));
        for name in self.unknown() {
            let there_are = either(&closest(name, names.iter().copied(), PROPOSED));
            tracing::warn!(
                "no operation names the security scheme `{name}`, which has credentials: there is {there_are}"
            );
        }
    }

    /// The schemes that an operation names, which are known from now on.
    pub(super) fn schemes<'a>(&self, binding: &'a HttpBinding) -> impl Iterator<Item = &'a str> {
        let schemes = binding.security.iter().flat_map(|requirement| requirement.schemes.iter());
        schemes.map(|scheme| {
            if let Some(named) = self.named.get(scheme.name.as_ref()) {
                named.is_known.store(true, Ordering::Relaxed);
            }
            scheme.name.as_ref()
        })
    }

    /// The schemes with credentials that no operation names.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        let unknown = self.named.iter().filter(|(_, named)| !named.is_known.load(Ordering::Relaxed));
        unknown.map(|(name, _)| name.as_str())
    }

    /// Credentials that no operation names, and those of these schemes without credentials for which they may be meant.
    pub(super) fn misspelt<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Option<(&str, String)> {
        let own = |name: &&str| self.named.contains_key(*name);
        self.unknown().find_map(|unknown| {
            let meant = nearest(unknown, names.clone().filter(|name| !own(name)), PROPOSED);
            (!meant.is_empty()).then(|| (unknown, either(&meant)))
        })
    }

    /// Logs once that the default credentials are sent for schemes for which others seem to be meant.
    pub(super) fn tell_misspelt<'n>(&self, operation: &str, names: impl Iterator<Item = &'n str> + Clone) {
        let Some((unknown, meant)) = self.default.as_ref().and_then(|_| self.misspelt(names)) else { return };
        if self.named.get(unknown).is_some_and(|named| !named.is_told.swap(true, Ordering::Relaxed)) {
            tracing::warn!(
                operation,
                "the default credentials are used: no operation names `{unknown}`, which has some: did you mean {meant}?"
            );
        }
    }
}
