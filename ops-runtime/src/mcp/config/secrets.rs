//! The secrets in the configuration of a server.

use super::{Http, McpServerConfig, Stdio, Target};
use crate::model::secrets::{KeepsSecrets, Secrets, names_a_secret};

/// Suffixes of the names of variables that are not secret; errors are hard to read without their values.
const PLAIN: [&str; 14] =
    ["PATH", "DIR", "HOME", "ROOT", "CWD", "FILE", "HOST", "PORT", "REGION", "ENV", "MODE", "LEVEL", "LANG", "TZ"];

impl KeepsSecrets for McpServerConfig {
    fn collect(&self, secrets: &mut Secrets) {
        match &self.target {
            Target::Stdio(stdio) => stdio.collect(secrets),
            Target::Http(http) => http.collect(secrets),
        }
        self.filled.iter().for_each(|(name, value)| add_variable(secrets, name, value));
        #[cfg(feature = "mcp-auth")]
        self.add_client_secret(secrets);
    }
}

impl McpServerConfig {
    /// The settings that are credentials by what they are, or by their names. The others may be parts of a server's URLs, and so
    /// may those in the host or the path of its own URL, whatever their names.
    #[cfg(feature = "mcp-http")]
    pub(in crate::mcp) fn credentials(&self) -> Secrets {
        let (mut secrets, mut place) = (Secrets::default(), "");
        if let Target::Http(http) = &self.target {
            place = http.place();
            http.bearer.iter().for_each(|token| secrets.add(token));
            http.headers.iter().for_each(|(name, value)| add_named(&mut secrets, place, name, value));
        }
        self.filled.iter().for_each(|(name, value)| add_named(&mut secrets, place, name, value));
        #[cfg(feature = "mcp-auth")]
        self.add_client_secret(&mut secrets);
        secrets
    }

    #[cfg(feature = "mcp-auth")]
    fn add_client_secret(&self, secrets: &mut Secrets) {
        if let Some((_, Some(secret))) = self.oauth.as_ref().and_then(|oauth| oauth.client.as_ref()) {
            secrets.add(secret.expose());
        }
    }
}

impl Stdio {
    fn collect(&self, secrets: &mut Secrets) {
        self.env.iter().for_each(|(name, value)| add_variable(secrets, name, value));
        if self.inherit_env {
            let inherited = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
            for (name, value) in inherited.filter(|(name, _)| names_a_secret(name)) {
                add_variable(secrets, &name, &value.to_string_lossy());
            }
        }
    }
}

impl Http {
    fn collect(&self, secrets: &mut Secrets) {
        self.headers.iter().for_each(|(name, value)| secrets.add_header(name, value));
        self.bearer.iter().for_each(|token| secrets.add(token));
        secrets.add_url(&self.url);
    }

    /// The host and the path of the URL. The user and the query, which may be credentials, are no part of it.
    #[cfg(feature = "mcp-http")]
    fn place(&self) -> &str {
        let after = self.url.split_once("://").map_or(self.url.as_str(), |(_, after)| after);
        let place = after.split(['?', '#']).next().unwrap_or_default();
        let authority = place.split('/').next().unwrap_or_default();
        authority.rfind('@').and_then(|at| place.get(at..)).unwrap_or(place)
    }
}

/// Adds the value of a header or a variable if its name shows that it is secret. A URL may be that of the authorization server,
/// whatever its name. What is part of the server's place is part of the URLs that the server names, too.
#[cfg(feature = "mcp-http")]
fn add_named(secrets: &mut Secrets, place: &str, name: &str, value: &str) {
    if names_a_secret(name) && !value.contains("://") && !place.contains(value.trim()) {
        secrets.add_setting(name, value);
    }
}

/// Adds the value of an environment variable, unless its name shows that it is not secret.
fn add_variable(secrets: &mut Secrets, name: &str, value: &str) {
    let name = name.to_ascii_uppercase();
    if names_a_secret(&name) || !PLAIN.iter().any(|end| name.ends_with(end)) {
        secrets.add_setting(&name, value);
    }
}
