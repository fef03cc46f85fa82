//! The operations that a caller may call.

use crate::{AccessControl, Identity, OperationSpec, SecurityKind, SecurityScheme};

/// What a caller lacks for an operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// An identity.
    Identity,
    /// Scopes, or rights to a resource.
    Rights,
}

/// Checks that a caller may run an operation, by its access rules and by the security of its binding.
///
/// A security scheme is satisfied by an identity that has its scopes; the authenticator checks by which credentials it
/// was obtained. No identity satisfies a scheme that the document does not describe: what it requires is not known.
pub(super) fn check(spec: &OperationSpec, identity: Option<&Identity>) -> Result<(), Lack> {
    let ways = spec.http().map_or(&[][..], |binding| &binding.security);
    let is_anonymous = ways.is_empty() || ways.iter().any(|way| way.schemes.is_empty());
    let Some(identity) = identity else {
        return if is_anonymous && spec.access.is_open() { Ok(()) } else { Err(Lack::Identity) };
    };
    let holds = |scope: &str| identity.scopes.iter().any(|own| own == scope);
    let is_met_by = |scheme: &SecurityScheme| scheme.kind != SecurityKind::UNKNOWN && scheme.scopes.iter().all(holds);
    let is_met = ways.iter().any(|way| way.schemes.iter().all(is_met_by));
    if (is_anonymous || is_met) && spec.access.allows(identity) { Ok(()) } else { Err(Lack::Rights) }
}

/// What an operation requires of its callers.
#[derive(Default)]
pub(super) struct Needs<'a> {
    /// The scopes of which it requires all.
    pub(super) all: Vec<&'a str>,
    /// The scopes of which it requires one.
    pub(super) any: Vec<&'a str>,
    /// The right to an action on a kind of resource.
    pub(super) right: Option<(&'a str, &'a str)>,
}

impl<'a> Needs<'a> {
    pub(super) fn of(spec: &'a OperationSpec) -> Self {
        let (all, any) = scopes(spec);
        let access = &spec.access;
        Self { all, any, right: access.resource_action.as_deref().zip(access.resource_type.as_deref()) }
    }

    /// The scopes that a caller has to ask for; empty if no list of scopes would help for certain.
    pub(super) fn missing_scopes(&self, identity: Option<&Identity>) -> &[&'a str] {
        let holds = |scope: &&str| identity.is_some_and(|identity| identity.scopes.iter().any(|own| own == *scope));
        if self.any.is_empty() && !self.all.iter().all(holds) { &self.all } else { &[] }
    }
}

/// The scopes of which an operation requires all, and those of which it requires one.
fn scopes(spec: &OperationSpec) -> (Vec<&str>, Vec<&str>) {
    let mut all: Vec<&str> = spec.access.required_scopes.iter().collect();
    // Of several ways to authenticate, each may require others.
    if let [way] = spec.http().map_or(&[][..], |binding| &binding.security) {
        for scope in way.schemes.iter().flat_map(|scheme| scheme.scopes.iter()) {
            if !all.contains(&scope) {
                all.push(scope);
            }
        }
    }
    (all, spec.access.required_scopes_any.iter().collect())
}

/// Checks only the access rules.
pub(super) fn allows(access: &AccessControl, identity: Option<&Identity>) -> Result<(), Lack> {
    match identity {
        None if access.is_open() => Ok(()),
        None => Err(Lack::Identity),
        Some(identity) if access.allows(identity) => Ok(()),
        Some(_) => Err(Lack::Rights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpBinding, SecurityRequirement};

    #[test]
    fn ways_and_rules() {
        const READ: SecurityScheme = SecurityScheme::new("a", SecurityKind::Bearer).with_scopes(&["read"]);
        const WRITE: SecurityScheme = SecurityScheme::new("b", SecurityKind::Bearer).with_scopes(&["write"]);
        const ANY: SecurityScheme = SecurityScheme::new("k", SecurityKind::Basic);
        const UNKNOWN: SecurityScheme = SecurityScheme::new("u", SecurityKind::UNKNOWN);
        let spec = |ways: &'static [SecurityRequirement], access: AccessControl| {
            let mut spec = OperationSpec::query("t.t").with_http(HttpBinding::new("GET", "/").with_security(ways));
            spec.access = access;
            spec
        };
        let own = AccessControl::NONE.with_scopes(&["own"]);
        let table = [
            (spec(&[], AccessControl::NONE), vec![], None, Ok(())),
            (spec(&[], own.clone()), vec![], None, Err(Lack::Identity)),
            (spec(&[], own.clone()), vec![], Some(()), Err(Lack::Rights)),
            (spec(&[], own.clone()), vec!["own"], Some(()), Ok(())),
            (
                spec(const { &[SecurityRequirement::new(const { &[ANY] })] }, AccessControl::NONE),
                vec![],
                None,
                Err(Lack::Identity),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[ANY] })] }, AccessControl::NONE),
                vec![],
                Some(()),
                Ok(()),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[READ, WRITE] })] }, AccessControl::NONE),
                vec!["read"],
                Some(()),
                Err(Lack::Rights),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[WRITE] })] },
                    AccessControl::NONE,
                ),
                vec!["write"],
                Some(()),
                Ok(()),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[] })] },
                    AccessControl::NONE,
                ),
                vec![],
                None,
                Ok(()),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[READ] }), SecurityRequirement::new(const { &[] })] },
                    AccessControl::NONE,
                ),
                vec![],
                Some(()),
                Ok(()),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[UNKNOWN] })] }, AccessControl::NONE),
                vec![],
                None,
                Err(Lack::Identity),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[UNKNOWN] })] }, AccessControl::NONE),
                vec!["u"],
                Some(()),
                Err(Lack::Rights),
            ),
            (
                spec(
                    const { &[SecurityRequirement::new(const { &[UNKNOWN] }), SecurityRequirement::new(const { &[READ] })] },
                    AccessControl::NONE,
                ),
                vec!["read"],
                Some(()),
                Ok(()),
            ),
            (
                spec(const { &[SecurityRequirement::new(const { &[READ] })] }, own),
                vec!["read"],
                Some(()),
                Err(Lack::Rights),
            ),
        ];
        for (at, (spec, scopes, identity, expected)) in table.into_iter().enumerate() {
            let identity =
                identity.map(|()| scopes.iter().fold(Identity::new("ann"), |own, scope| own.with_scope(*scope)));
            assert_eq!(check(&spec, identity.as_ref()), expected, "row {at}");
        }
    }
}
