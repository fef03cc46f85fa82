//! Security: whether credentials that sufficed still suffice.

use super::{Comparison, Part};
use crate::{SecurityKind, SecurityRequirement, SecurityScheme};

impl Comparison<'_> {
    pub(super) fn security(&mut self, old: &[SecurityRequirement], new: &[SecurityRequirement]) {
        // Anyone may call without requirements, as with an empty one.
        let anyone = [SecurityRequirement::default()];
        let or_anyone = |ways: &'_ [SecurityRequirement]| if ways.is_empty() { anyone.to_vec() } else { ways.to_vec() };
        let (old, new) = (or_anyone(old), or_anyone(new));
        let broken: Vec<&SecurityRequirement> =
            old.iter().filter(|way| !new.iter().any(|new| suffices(way, new))).collect();
        for way in &broken {
            let moved_to = new.iter().find(|new| suffices_by(way, new, is_alike)).map(|new| moved(way, new));
            let message = match moved_to {
                _ if way.schemes.is_empty() => format!("it needs credentials now: {}", ways(&new)),
                Some(moved) => moved,
                None => format!("{} does not suffice any more, but {}", words(way), ways(&new)),
            };
            self.tell(Part::Operation, "security", "/security", &message, true);
        }
        let is_new = |way: &&SecurityRequirement| !old.iter().any(|old| suffices(old, way) && suffices(way, old));
        for way in new.iter().filter(is_new).filter(|_| broken.is_empty()) {
            let message = match way.schemes.as_ref() {
                [] => "it needs no credentials any more".to_owned(),
                _ => format!("{} suffices now", words(way)),
            };
            self.tell(Part::Operation, "security", "/security", &message, false);
        }
    }
}

/// True if the credentials of one way are enough for another.
fn suffices(have: &SecurityRequirement, needed: &SecurityRequirement) -> bool {
    suffices_by(have, needed, |have, needed| have == needed)
}

/// True if the credentials of one way are enough for another, with such kinds of schemes taken for the same.
fn suffices_by(
    have: &SecurityRequirement,
    needed: &SecurityRequirement,
    is_same: fn(&SecurityKind, &SecurityKind) -> bool,
) -> bool {
    let covers = |have: &SecurityScheme, needed: &SecurityScheme| {
        let holds = |scope: &str| have.scopes.iter().any(|held| held == scope);
        have.name == needed.name && is_same(&have.kind, &needed.kind) && needed.scopes.iter().all(holds)
    };
    needed.schemes.iter().all(|needed| have.schemes.iter().any(|have| covers(have, needed)))
}

/// True if two kinds differ in nothing but a URL.
fn is_alike(old: &SecurityKind, new: &SecurityKind) -> bool {
    old == new || urls(old, new).is_some()
}

/// What the URLs of a scheme are for, and the old and the new one.
fn urls<'k>(old: &'k SecurityKind, new: &'k SecurityKind) -> Option<(&'static str, Option<&'k str>, Option<&'k str>)> {
    match (old, new) {
        (SecurityKind::OAuth2 { token_url: old }, SecurityKind::OAuth2 { token_url: new }) => {
            Some(("token URL", old.as_deref(), new.as_deref()))
        }
        (SecurityKind::OpenIdConnect { url: old }, SecurityKind::OpenIdConnect { url: new }) => {
            Some(("URL", Some(&**old), Some(&**new)))
        }
        _ => None,
    }
}

/// The schemes of a way that have another URL in the new one. Secrets are sent there.
fn moved(old: &SecurityRequirement, new: &SecurityRequirement) -> String {
    let shown = |url: Option<&str>| url.map_or("not named".to_owned(), |url| format!("`{url}`"));
    let sentence = |new: &SecurityScheme| {
        let old = old.schemes.iter().find(|old| old.name == new.name)?;
        let (what, was, is) = urls(&old.kind, &new.kind).filter(|(_, was, is)| was != is)?;
        Some(format!("the {what} of `{}` is {} now, and was {}", new.name, shown(is), shown(was)))
    };
    new.schemes.iter().filter_map(sentence).collect::<Vec<_>>().join(", and ")
}

fn ways(ways: &[SecurityRequirement]) -> String {
    ways.iter().map(words).collect::<Vec<_>>().join(" or ")
}

fn words(way: &SecurityRequirement) -> String {
    let scheme = |scheme: &SecurityScheme| {
        let kind = match &scheme.kind {
            SecurityKind::Basic => "basic".to_owned(),
            SecurityKind::Bearer => "bearer".to_owned(),
            SecurityKind::ApiKey { location, name } => format!("the {} `{name}`", super::binding::location(*location)),
            SecurityKind::OAuth2 { .. } => "OAuth 2".to_owned(),
            SecurityKind::OpenIdConnect { .. } => "OpenID Connect".to_owned(),
            SecurityKind::Other(other) => other.to_string(),
        };
        let scopes = scheme.scopes.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(", ");
        let scopes = if scopes.is_empty() { scopes } else { format!(" for {scopes}") };
        format!("`{}` ({kind}){scopes}", scheme.name)
    };
    match way.schemes.as_ref() {
        [] => "no credentials".to_owned(),
        schemes => schemes.iter().map(scheme).collect::<Vec<_>>().join(" with "),
    }
}
