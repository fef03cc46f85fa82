//! The credentials of calls of HTTP APIs: what is sent, to which hosts, and what to set if there are none.

use std::env::VarError;
use std::io::Write;
use std::time::Duration;

use ops_runtime::binding::{HttpBinding, SecurityKind, SecurityScheme};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, HttpClient, HttpConfig};
use serde_json::Value;
use url::Url;

use crate::advice::TOKEN_IN_FILE;
use crate::arguments::CallCredentials;
use crate::failure::Failure;
use crate::modules::is_url;
use crate::report::{clean, label};
use crate::shell::quoted;

/// The value of an environment variable; `None` if it is not set.
///
/// # Errors
/// If the value is not UTF-8. It is set, so it is not ignored.
pub(crate) fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("the environment variable `{name}` is not UTF-8")),
    }
}

/// How HTTP operations are called.
pub(crate) fn config(
    base_url: Option<&str>,
    credentials: &CallCredentials,
    timeout: u64,
) -> Result<HttpConfig, Failure> {
    let mut config = HttpConfig::new().with_timeout(Duration::from_secs(timeout));
    if let Some(url) = base_url {
        config = config.with_base_url(url);
    }
    for (name, value) in credentials.given.headers()? {
        config = config.with_header(name, value);
    }
    if let Some(auth) = credentials.given.auth()? {
        config = config.with_auth(auth);
    }
    Ok(match &credentials.credentials_env {
        Some(prefix) => config.with_credentials_from_env(prefix.trim_end_matches('_')),
        None => config,
    })
}

/// Withholds credentials from a host that only a document from the network names.
pub(crate) fn guard(
    base_url: Option<&str>,
    credentials: &CallCredentials,
    document: &str,
    spec: &OperationSpec,
) -> Result<(), Failure> {
    if base_url.is_some() || !credentials.is_given() || !is_url(document) {
        return Ok(());
    }
    let server = spec.http().and_then(|http| http.server.as_deref()).unwrap_or_default();
    let server = crate::report::line(server);
    let server = server.as_str();
    // The value of a variable may be anything, including a host; and user information may look like a host.
    let host = server.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#', '\\']).next());
    let is_plain = host.is_some_and(|host| !host.contains(['{', '}', '@']));
    if is_plain && is_same_origin(server, document) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the document sends this call, and your credentials with it, to `{server}`, which is another host than its own: \
         pass `--base-url {}` if you trust it",
        quoted(server)
    )))
}

/// True if two URLs have the same origin.
fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |url: &str| Url::parse(url).map(|url| url.origin());
    origin(one).is_ok_and(|one| origin(other).is_ok_and(|other| one == other))
}

impl CallCredentials {
    /// What the user must set if a server refuses to send its document. The credentials for calls are also sent for the
    /// document, but only if it has the origin of the base URL.
    pub(crate) fn lack_of_document(&self, base_url: Option<&str>, document: &str) -> Lack {
        match self.is_given() && base_url.is_some_and(|base_url| is_same_origin(base_url, document)) {
            true => Lack::default(),
            false => Lack::of_document(),
        }
    }

    /// True if there are credentials to protect.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_given() || self.credentials_env.is_some()
    }

    /// Warns of each `--header` that a credential for these operations replaces, or their input.
    fn warn_of_replaced<'a>(
        &self,
        client: &HttpClient,
        operations: impl IntoIterator<Item = &'a OperationSpec> + Clone,
    ) -> Result<(), Failure> {
        let mut bindings = operations.clone().into_iter().filter_map(OperationSpec::http);
        let has_body = bindings.any(|http| !http.bodies.is_empty());
        for (name, _) in self.given.headers()? {
            if has_body && name.eq_ignore_ascii_case("content-type") {
                warn("the input decides the header `Content-Type`, not `--header`");
            }
            let mut replaced = operations.clone().into_iter().flat_map(|spec| client.replaced_headers(spec));
            if replaced.any(|own| own.as_str().eq_ignore_ascii_case(name)) {
                let name = clean(name);
                warn(&format!("a credential in the header `{name}` replaces the one of `--header`: pass one of them"));
            }
        }
        Ok(())
    }

    /// Warns of a token that is sent to none of these operations.
    fn warn_of_unsent<'a>(&self, client: &HttpClient, operations: impl IntoIterator<Item = &'a OperationSpec> + Clone) {
        let mut bindings = operations.clone().into_iter().filter_map(OperationSpec::http);
        if !self.given.has_bearer() || operations.into_iter().any(|spec| client.sends_auth(spec)) {
            return;
        }
        let is_open = |http: &HttpBinding| http.security.iter().any(|way| way.schemes.is_empty());
        let instead = match bindings.all(is_open) {
            true => "needs no credentials",
            // The operations need credentials, so the token would be sent if the environment had none for them.
            false => "`--credentials-env` has what it asks for",
        };
        warn(&format!("the token is not sent: what is called takes none, and {instead}"));
    }
}

fn warn(message: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(anstream::stderr().lock(), "{}: {message}", label("warning"));
}

/// The advice for a call or a document that the server refuses for want of credentials. `None` if credentials are set.
#[derive(Default)]
pub(crate) struct Lack(Option<String>);

impl Lack {
    /// For a server or a document that the command line names, if no option sets credentials.
    pub(crate) fn of_request() -> Self {
        Self(Some(format!("no credentials are set: pass {BEARER}")))
    }

    /// For a server in a configuration file that sets no credentials.
    pub(crate) fn of_server_in_file() -> Self {
        Self(Some(format!("no credentials are set: {TOKEN_IN_FILE}")))
    }

    /// For a document that is fetched without credentials.
    pub(crate) fn of_document() -> Self {
        Self(Some(format!("`ops add` fetches a document with credentials: pass it {BEARER}")))
    }

    /// Warns of headers that credentials replace, and of a token that is not sent.
    ///
    /// # Errors
    /// If credentials are to be read from the environment, and it has none that suffice for any of the operations.
    pub(crate) fn of<'a>(
        config: HttpConfig,
        credentials: &CallCredentials,
        operations: impl IntoIterator<Item = &'a OperationSpec> + Clone,
    ) -> Result<Self, Failure> {
        let client = HttpClient::new(config).map_err(|error| Failure::Usage(error.message().to_owned()))?;
        credentials.warn_of_replaced(&client, operations.clone())?;
        let Some(told) = client.without_credentials(operations.clone()) else {
            credentials.warn_of_unsent(&client, operations);
            return Ok(Self(None));
        };
        if credentials.credentials_env.is_some() {
            return Err(Failure::Usage(told));
        }
        let schemes = operations.into_iter().filter_map(OperationSpec::http).flat_map(|http| http.security.iter());
        let first = schemes.flat_map(|way| way.schemes.iter()).find_map(option);
        Ok(Self(first.map(|option| format!("{told}: pass {option}"))))
    }

    /// A failure, with what to set if a server has refused the call for want of credentials.
    pub(crate) fn beside(&self, error: &CallError, failure: Failure) -> Failure {
        let refused =
            [401, 403].into_iter().any(|status| error.details().get("statusCode") == Some(&Value::from(status)));
        match &self.0 {
            Some(told) if refused => failure.with_advice(told),
            _ => failure,
        }
    }
}

/// The option that sends a token.
const BEARER: &str = "`--bearer-env VAR`, with the token in that variable";

/// The option that sends credentials for a scheme.
fn option(scheme: &SecurityScheme) -> Option<&'static str> {
    match scheme.kind {
        SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. } => Some(BEARER),
        SecurityKind::ApiKey { .. } => Some("`--credentials-env PREFIX`, with the key in `PREFIX_API_KEY`"),
        SecurityKind::Basic => Some("`--credentials-env PREFIX`, with `PREFIX_USER` and `PREFIX_PASSWORD`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Credentials;

    #[test]
    fn a_server_that_a_document_names_is_one_word() {
        let given = Credentials { bearer_env: Some("TOKEN".to_owned()), ..Credentials::default() };
        let credentials = CallCredentials { given, credentials_env: None };
        let advised = |server: &'static str| {
            let spec = OperationSpec::query("x.y").with_http(HttpBinding::new("GET", "/").with_server(server));
            match guard(None, &credentials, "https://docs.example/x.json", &spec) {
                Err(Failure::Usage(told)) => told.rsplit_once(": pass ").unwrap().1.to_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(advised("https://x.example/v1"), "`--base-url https://x.example/v1` if you trust it");
        assert_eq!(
            advised("https://x.example/ --output=.bashrc;id"),
            "`--base-url 'https://x.example/ --output=.bashrc;id'` if you trust it"
        );
    }
}
