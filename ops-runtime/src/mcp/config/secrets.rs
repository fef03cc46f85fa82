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
}

/// Adds the value of an environment variable, unless its name shows that it is not secret.
fn add_variable(secrets: &mut Secrets, name: &str, value: &str) {
    let name = name.to_ascii_uppercase();
    if names_a_secret(&name) || !PLAIN.iter().any(|end| name.ends_with(end)) {
        secrets.add_setting(&name, value);
    }
}
