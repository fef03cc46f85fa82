//! Credentials from environment variables, for the security schemes of operations.

use std::collections::BTreeMap;
use std::env;

use super::{Auth, Secret};
use crate::{SecurityKind, SecurityScheme};

/// The variables with a prefix, as they were when they were read.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Environment {
    prefix: String,
    variables: BTreeMap<String, Secret>,
}

impl Environment {
    pub(in crate::http) fn read(prefix: String) -> Self {
        let texts =
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::of(prefix, texts)
    }

    fn of(prefix: String, variables: impl Iterator<Item = (String, String)>) -> Self {
        let start = format!("{prefix}_");
        let own = variables.filter_map(|(name, value)| {
            let rest = name.strip_prefix(&start)?;
            // A value from a file ends with a line feed. A blank value is not a credential.
            match value.trim() {
                "" => None,
                value => Some((rest.to_owned(), Secret::from(value))),
            }
        });
        let variables = own.collect();
        Self { prefix, variables }
    }

    /// The credentials for a scheme, with the name of their variable.
    pub(in crate::http) fn auth(&self, scheme: &SecurityScheme) -> Option<(String, Auth)> {
        if self.variables.is_empty() {
            return None;
        }
        let own = variable(&scheme.name);
        let (found, auth) = match &scheme.kind {
            SecurityKind::Bearer | SecurityKind::OpenIdConnect { .. } => self.token(&own)?,
            SecurityKind::OAuth2 { .. } => {
                self.one(&own, Auth::bearer).or_else(|| self.client(&own)).or_else(|| self.token(&own)).or_else(
                    || {
                        let (id, secret) = (self.variables.get("CLIENT_ID")?, self.variables.get("CLIENT_SECRET")?);
                        Some(("CLIENT_SECRET".to_owned(), Auth::client_credentials(id.expose(), secret.clone())))
                    },
                )?
            }
            SecurityKind::ApiKey { .. } => {
                self.one(&own, Auth::api_key).or_else(|| self.one("API_KEY", Auth::api_key))?
            }
            SecurityKind::Basic => self.one(&own, |text| Auth::basic_of(&text)).or_else(|| {
                let (user, password) = (self.variables.get("USER")?, self.variables.get("PASSWORD")?);
                Some(("USER".to_owned(), Auth::basic(user.expose(), password.clone())))
            })?,
            SecurityKind::Other(_) => return None,
        };
        Some((format!("{}_{found}", self.prefix), auth))
    }

    /// The variable that is looked up first for a scheme; `None` if no environment was read.
    pub(super) fn variable_of(&self, scheme: &str) -> Option<String> {
        (!self.prefix.is_empty()).then(|| format!("{}_{}", self.prefix, variable(scheme)))
    }

    /// The variables of which one is sufficient for a scheme, in the form for a message; empty if no environment was
    /// read.
    pub(super) fn variables_of(&self, scheme: &SecurityScheme) -> Vec<String> {
        let plain = match &scheme.kind {
            _ if self.prefix.is_empty() => return Vec::new(),
            SecurityKind::ApiKey { .. } => "API_KEY",
            SecurityKind::Basic => "USER",
            SecurityKind::Other(_) => return Vec::new(),
            _ => "TOKEN",
        };
        let plain = format!("{}_{plain}", self.prefix);
        let own = self.variable_of(&scheme.name).filter(|own| *own != plain);
        own.into_iter().chain([plain]).collect()
    }

    fn one(&self, name: &str, make: impl FnOnce(Secret) -> Auth) -> Option<(String, Auth)> {
        Some((name.to_owned(), make(self.variables.get(name)?.clone())))
    }

    fn token(&self, own: &str) -> Option<(String, Auth)> {
        self.one(own, Auth::bearer).or_else(|| self.one("TOKEN", Auth::bearer))
    }

    fn client(&self, own: &str) -> Option<(String, Auth)> {
        let secret = format!("{own}_CLIENT_SECRET");
        let id = self.variables.get(&format!("{own}_CLIENT_ID"))?.expose();
        let auth = Auth::client_credentials(id, self.variables.get(&secret)?.clone());
        Some((secret, auth))
    }
}

/// The name of a scheme in the notation of environment variables: `petStoreAuth` is `PET_STORE_AUTH`.
fn variable(scheme: &str) -> String {
    let mut name = String::with_capacity(scheme.len() + 4);
    let mut before = ' ';
    for c in scheme.chars() {
        if c.is_ascii_alphanumeric() {
            let starts = c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
            if starts || (!before.is_ascii_alphanumeric() && !name.is_empty()) {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        before = c;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParameterLocation;

    #[test]
    fn names() {
        for (scheme, expected) in [
            ("petStoreAuth", "PET_STORE_AUTH"),
            ("api_key", "API_KEY"),
            ("OAuth2", "OAUTH2"),
            ("oauth2Token", "OAUTH2_TOKEN"),
            ("  a.b--c ", "A_B_C"),
            ("", ""),
        ] {
            assert_eq!(variable(scheme), expected, "{scheme}");
        }
    }

    #[test]
    fn what_is_found_for_a_scheme() {
        let environment = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Environment::of("SHOP".to_owned(), variables)
        };
        let key = || SecurityKind::ApiKey { location: ParameterLocation::Query, name: "k".into() };
        let oauth = || SecurityKind::OAuth2 { token_url: None };
        let found = |name: &str, auth: Auth| Some((name.to_owned(), auth));
        for (variables, kind, expected) in [
            (
                &[("SHOP_MY_AUTH", "a"), ("SHOP_TOKEN", "b")][..],
                SecurityKind::Bearer,
                found("SHOP_MY_AUTH", Auth::bearer("a")),
            ),
            (
                &[("SHOP_MY_AUTH", " \n"), ("SHOP_TOKEN", "b\n")],
                SecurityKind::Bearer,
                found("SHOP_TOKEN", Auth::bearer("b")),
            ),
            (&[("SHOP_TOKEN", "b")], key(), None),
            (&[("SHOP_API_KEY", "k"), ("API_KEY", "x")], key(), found("SHOP_API_KEY", Auth::api_key("k"))),
            (&[("OTHER_TOKEN", "b"), ("SHOPTOKEN", "b")], SecurityKind::Bearer, None),
            (&[("SHOP_MY_AUTH", "ann:p:w")], SecurityKind::Basic, found("SHOP_MY_AUTH", Auth::basic("ann", "p:w"))),
            (
                &[("SHOP_USER", "ann"), ("SHOP_PASSWORD", "p")],
                SecurityKind::Basic,
                found("SHOP_USER", Auth::basic("ann", "p")),
            ),
            (&[("SHOP_USER", "ann")], SecurityKind::Basic, None),
            (
                &[("SHOP_MY_AUTH_CLIENT_ID", "i"), ("SHOP_MY_AUTH_CLIENT_SECRET", "s"), ("SHOP_TOKEN", "t")],
                oauth(),
                found("SHOP_MY_AUTH_CLIENT_SECRET", Auth::client_credentials("i", "s")),
            ),
            (
                &[("SHOP_CLIENT_ID", "i"), ("SHOP_CLIENT_SECRET", "s")],
                oauth(),
                found("SHOP_CLIENT_SECRET", Auth::client_credentials("i", "s")),
            ),
            (&[("SHOP_MY_AUTH", "t")], SecurityKind::Other("mutualTLS".into()), None),
        ] {
            let scheme = SecurityScheme::owned("myAuth", kind);
            assert_eq!(environment(variables).auth(&scheme), expected, "{variables:?}");
        }
        assert!(!format!("{:?}", environment(&[("SHOP_TOKEN", "hush")])).contains("hush"));
    }
}
