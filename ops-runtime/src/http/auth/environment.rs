//! Credentials from environment variables, for the security schemes of operations.

use std::collections::BTreeMap;
use std::env;

use super::{Auth, Secret};
use crate::{SecurityKind, SecurityScheme};

/// The names of the variables for all schemes of a kind.
const PLAIN: [&str; 6] = ["TOKEN", "API_KEY", "USER", "PASSWORD", "CLIENT_ID", "CLIENT_SECRET"];

/// The variables with a prefix, as they were when they were read.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Environment {
    prefix: String,
    /// The prefixes of all documents.
    others: Vec<String>,
    variables: BTreeMap<String, Secret>,
}

impl Environment {
    /// The variables with this prefix, without those of other documents, whose prefixes are among `others`.
    pub(in crate::http) fn read(prefix: String, others: &[String]) -> Self {
        let texts =
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::of(prefix, others, texts)
    }

    fn of(prefix: String, others: &[String], variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut environment = Self { prefix, others: others.to_vec(), variables: BTreeMap::new() };
        for (name, value) in variables {
            let Some(rest) = after(&name, &environment.prefix).filter(|rest| environment.is_own(rest)) else {
                continue;
            };
            // A value from a file ends with a line feed. A blank value is not a credential.
            let value = value.trim();
            if !value.is_empty() {
                environment.variables.insert(rest.to_owned(), Secret::from(value));
            }
        }
        environment
    }

    /// True if the variable with this name after the prefix is for no other document.
    ///
    /// It is for the longest prefix. But `SHOP_API_KEY` is for `SHOP` although there is `SHOP_API`, since the name
    /// after `SHOP` is a plain one. No variable has a plain name after two prefixes.
    fn is_own(&self, rest: &str) -> bool {
        let name = format!("{}_{rest}", self.prefix);
        let takes = |other: &String| {
            after(&name, other).is_some_and(|rest| other.len() > self.prefix.len() || PLAIN.contains(&rest))
        };
        PLAIN.contains(&rest) || !self.others.iter().any(takes)
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

    /// The variable of a scheme alone; `None` if no environment was read, or if the variable is another document's.
    pub(super) fn variable_of(&self, scheme: &str) -> Option<String> {
        let own = Some(variable(scheme)).filter(|own| !self.prefix.is_empty() && self.is_own(own));
        own.map(|own| format!("{}_{own}", self.prefix))
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

    /// The variable that the last of these needs beside it; `None` if it suffices alone.
    pub(super) fn beside(&self, scheme: &SecurityScheme) -> Option<String> {
        matches!(scheme.kind, SecurityKind::Basic).then(|| format!("{}_PASSWORD", self.prefix))
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

/// What follows a prefix in the name of a variable.
fn after<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    name.strip_prefix(prefix)?.strip_prefix('_')
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
            Environment::of("SHOP".to_owned(), &[], variables)
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

    /// The names after a prefix that are read for it, if there are documents with these prefixes.
    fn read(prefix: &str, others: &[&str], names: &[&str]) -> Vec<String> {
        let others: Vec<String> = others.iter().map(|other| (*other).to_owned()).collect();
        let variables = names.iter().map(|name| ((*name).to_owned(), "t".to_owned()));
        Environment::of(prefix.to_owned(), &others, variables).variables.into_keys().collect()
    }

    #[test]
    fn a_variable_is_for_the_longest_prefix() {
        let names = ["MY_TOKEN", "MY_SHOP_TOKEN", "MY_SHOPTOKEN", "MY_SHOP_2_TOKEN", "MYSHOP_TOKEN"];
        let read = |prefix: &str| read(prefix, &["MY", "MY_SHOP", "MY_SHOP_2", "MYSHOP"], &names);
        assert_eq!(read("MY"), ["SHOPTOKEN", "TOKEN"]);
        assert_eq!(read("MY_SHOP"), ["TOKEN"]);
        assert_eq!(read("MY_SHOP_2"), ["TOKEN"]);
        assert_eq!(read("MYSHOP"), ["TOKEN"]);
    }

    #[test]
    fn a_plain_variable_is_for_the_prefix_before_it() {
        let names = ["SHOP_API_KEY", "SHOP_API_API_KEY", "SHOP_API_TOKEN", "SHOP_CLIENT_ID", "SHOP_CLIENT_SECRET"];
        let read = |prefix: &str| read(prefix, &["SHOP", "SHOP_API", "SHOP_CLIENT"], &names);
        assert_eq!(read("SHOP"), ["API_KEY", "CLIENT_ID", "CLIENT_SECRET"]);
        assert_eq!(read("SHOP_API"), ["API_KEY", "TOKEN"]);
        assert_eq!(read("SHOP_CLIENT"), [""; 0]);
    }

    #[test]
    fn no_variable_of_another_document_is_proposed() {
        let others = ["SHOP", "SHOP_API"].map(str::to_owned);
        let proposed = |prefix: &str, scheme: &'static str| {
            let kind = SecurityKind::ApiKey { location: ParameterLocation::Query, name: "k".into() };
            let environment = Environment::of(prefix.to_owned(), &others, std::iter::empty());
            environment.variables_of(&SecurityScheme::owned(scheme, kind))
        };
        assert_eq!(proposed("SHOP", "apiKey"), ["SHOP_API_KEY"]);
        assert_eq!(proposed("SHOP", "apiToken"), ["SHOP_API_KEY"]);
        assert_eq!(proposed("SHOP_API", "key"), ["SHOP_API_API_KEY"]);
        assert_eq!(proposed("SHOP_API", "other"), ["SHOP_API_OTHER", "SHOP_API_API_KEY"]);
    }
}
