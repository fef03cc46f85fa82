//! What everything on NATS connects by: the addresses of the servers, how to log in, and whom to trust.

use std::fmt;
#[cfg(feature = "tls")]
use std::sync::Arc;

use async_nats::ConnectOptions;

use crate::CallError;

/// How to log in to a NATS server, and whom to believe that it is that server.
#[derive(Clone, Default)]
pub(crate) struct Access {
    pub(crate) login: Login,
    /// The authorities of a PEM text, in place of those of the system.
    #[cfg(feature = "tls")]
    pub(crate) authorities: Option<Arc<[u8]>>,
}

impl Access {
    /// Options of a connection to these URLs.
    ///
    /// # Errors
    /// If the credentials or the authorities can't be read.
    pub(crate) fn options(&self, urls: &str) -> Result<ConnectOptions, CallError> {
        let options = self.login.options(urls)?;
        #[cfg(feature = "tls")]
        if let Some(pem) = &self.authorities {
            // What the authorities protect is sent in the clear to no server.
            return Ok(options.require_tls(true).tls_client_config(crate::tls::of_authorities(pem)?));
        }
        Ok(options)
    }
}

/// Shows the kind of the login only.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.login.fmt(f)
    }
}

/// The methods of a configuration that set its field `access`, with the name of the function that connects by it.
macro_rules! login_setters {
    ($connect:literal) => {
        /// Logs in by a token.
        #[must_use]
        pub fn with_token(mut self, token: impl Into<String>) -> Self {
            self.access.login = $crate::nats::Login::Token(token.into());
            self
        }

        /// Logs in by a name and a password.
        #[must_use]
        pub fn with_user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
            self.access.login = $crate::nats::Login::User(name.into(), password.into());
            self
        }

        /// Logs in by the text of a file of credentials (`.creds`), which names an account: a JWT, and the seed of its key.
        #[cfg(feature = "nkeys")]
        #[must_use]
        pub fn with_credentials(mut self, text: impl Into<String>) -> Self {
            self.access.login = $crate::nats::Login::Credentials(text.into());
            self
        }

        /// Trusts the root certificates of a PEM text in place of those of the system, and connects to no server without
        #[doc = concat!("encryption. A text without any is refused by [`", $connect, "`](super::", $connect, ").")]
        #[cfg(feature = "tls")]
        #[must_use]
        pub fn with_root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
            self.access.authorities = Some(pem.as_ref().into());
            self
        }
    };
}

pub(crate) use login_setters;

/// How to log in.
#[derive(Clone, Default)]
pub(crate) enum Login {
    /// By the credentials of the URL, if it has some.
    #[default]
    None,
    Token(String),
    User(String, String),
    /// By the text of a file of credentials: a JWT, and the seed of the key that signs for it.
    #[cfg(feature = "nkeys")]
    Credentials(String),
}

impl Login {
    fn options(&self, urls: &str) -> Result<ConnectOptions, CallError> {
        let login = match self {
            Self::None => Self::of(urls),
            login => login.clone(),
        };
        Ok(match login {
            Self::None => ConnectOptions::new(),
            Self::Token(token) => ConnectOptions::with_token(token),
            Self::User(name, password) => ConnectOptions::with_user_and_password(name, password),
            #[cfg(feature = "nkeys")]
            Self::Credentials(text) => ConnectOptions::with_credentials(&text).map_err(|error| {
                CallError::execution(format!(
                    "the text given to `with_credentials` cannot be used ({error}): give what a file `.creds` holds, a JWT and \
                     the seed of its key"
                ))
            })?,
        })
    }

    /// The first credentials in URLs that are joined by commas: a name and a password, or a token alone.
    ///
    /// The client itself ignores those of URLs.
    fn of(urls: &str) -> Self {
        for url in urls.split(',') {
            let authority = url.split_once("//").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
            let Some((login, _)) = authority.trim().rsplit_once('@') else { continue };
            return match login.split_once(':') {
                Some((name, password)) => Self::User(decoded(name), decoded(password)),
                None => Self::Token(decoded(login)),
            };
        }
        Self::None
    }
}

/// A part of a URL without its percent-encoding.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let encoded = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match encoded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shows the kind of the login only.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Token(_) => "token",
            Self::User(..) => "user",
            #[cfg(feature = "nkeys")]
            Self::Credentials(_) => "credentials",
        })
    }
}

/// The schemes of addresses.
const SCHEMES: [&str; 4] = ["nats://", "tls://", "ws://", "wss://"];

/// The addresses of a text in which they are joined by commas. The client takes them as a list only.
///
/// # Errors
/// If there is none, or if a comma may be part of a password, because errors would name parts of the password as servers.
pub(crate) fn servers(urls: &str) -> Result<Vec<&str>, CallError> {
    let begins = |url: &str| SCHEMES.iter().any(|own| url.trim_start().starts_with(own));
    if urls.split(',').skip(1).any(|url| url.contains('@') && !begins(url)) {
        return Err(CallError::execution(
            "the NATS server can't be used: write `,` in a password or a token as `%2C`, and begin each address that has \
             credentials with its scheme, such as `nats://`",
        ));
    }
    let servers: Vec<&str> = urls.split(',').map(str::trim).filter(|url| !url.is_empty()).collect();
    if servers.is_empty() {
        return Err(CallError::execution(
            "no NATS server is named: write `nats://HOST:PORT`, several joined by commas",
        ));
    }
    Ok(servers)
}

/// The error of servers that can't be connected to. They are named without their credentials.
pub(crate) fn refused(urls: &str, error: &dyn std::error::Error) -> CallError {
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        host.split(['/', '?', '#']).next().unwrap_or_default().trim().to_owned()
    };
    let hosts: Vec<String> = urls.split(',').map(host).filter(|host| !host.is_empty()).collect();
    unusable(&format!("the NATS server can't be used: {}", hosts.join(", ")), error)
}

/// The error of something that can't be done, with its causes.
pub(crate) fn unusable(what: &str, error: &dyn std::error::Error) -> CallError {
    let mut text = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some errors tell their cause themselves.
        let reason = error.to_string();
        if !text.contains(&reason) {
            text.push_str(&format!(": {reason}"));
        }
        cause = error.source();
    }
    CallError::execution(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_joined_by_commas() {
        assert_eq!(servers("nats://a:1").unwrap(), ["nats://a:1"]);
        assert_eq!(servers(" nats://a:1, nats://b:2,").unwrap(), ["nats://a:1", "nats://b:2"]);
        for none in ["", " , "] {
            assert!(servers(none).unwrap_err().to_string().contains("nats://HOST:PORT"), "{none:?}");
        }
    }

    #[test]
    fn a_comma_may_be_that_of_a_password() {
        for urls in [
            "nats://ann:pa,ss@10.0.0.1:4222",
            "nats://top,secret,word@10.0.0.1",
            "nats://ann:pa, ss@10.0.0.1",
            "ann:p//a,s@s@10.0.0.1",
            "nats://10.0.0.1,ann:pass@10.0.0.2",
            "10.0.0.1, ann:pass@10.0.0.2",
        ] {
            let error = servers(urls).unwrap_err();
            let expected = "the NATS server can't be used: write `,` in a password or a token as `%2C`, and begin each \
                            address that has credentials with its scheme, such as `nats://`";
            assert_eq!(error.message(), expected, "{urls}");
        }
        for urls in [
            "nats://ann:pa%2Css@10.0.0.1",
            "nats://ann:pass@10.0.0.1,10.0.0.2",
            "nats://ann:pass@10.0.0.1,tls://ann:pass@10.0.0.2",
            "10.0.0.1, nats://ann:pass@10.0.0.2",
        ] {
            assert!(servers(urls).is_ok(), "{urls}");
        }
    }

    #[test]
    fn credentials_of_urls() {
        for (urls, expected) in [
            ("nats://10.0.0.1:4222", "none"),
            ("nats://10.0.0.1, nats://ann:s%40c:ret@10.0.0.2:4222", "ann s@c:ret"),
            ("tls://t0%6ben@10.0.0.1", "token t0ken"),
            ("ann:100%@10.0.0.1", "ann 100%"),
            ("nats://10.0.0.1/x@y", "none"),
            ("", "none"),
        ] {
            let login = match Login::of(urls) {
                Login::None => "none".to_owned(),
                Login::Token(token) => format!("token {token}"),
                Login::User(name, password) => format!("{name} {password}"),
                #[cfg(feature = "nkeys")]
                Login::Credentials(_) => unreachable!("URLs have none"),
            };
            assert_eq!(login, expected, "{urls}");
        }
    }

    #[test]
    fn logins_are_not_shown() {
        let logins = [Login::None, Login::Token("hush".into()), Login::User("ann".into(), "hush".into())];
        assert_eq!(format!("{logins:?}"), "[none, token, user]");
    }

    #[tokio::test]
    async fn errors_hold_no_credentials() {
        for urls in [
            "nats://ann:hush@127.0.0.1:1",
            "nats://hush@127.0.0.1:1",
            "nats://ann:hush@[bad",
            "nats://ann:hush@127.0.0.1:99999",
            "other://ann:hush@127.0.0.1:1",
            "ann:hush@127.0.0.1:1",
            "nats://127.0.0.1:1, nats://ann:hush@ ",
        ] {
            let mut errors = Vec::new();
            #[cfg(feature = "nats")]
            errors.push(
                crate::call::nats::Nats::connect(urls, crate::call::nats::NatsConfig::new())
                    .await
                    .map(drop)
                    .unwrap_err(),
            );
            #[cfg(feature = "jetstream")]
            errors.push(
                crate::durable::jetstream::JetStream::connect(urls, Default::default()).await.map(drop).unwrap_err(),
            );
            for error in errors {
                let told = format!("{error} {error:?}");
                assert!(told.contains("NATS server can't be used") && !told.contains("hush"), "{urls}: {told}");
                assert!(told.contains("127.0.0.1") || urls.contains("bad"), "{urls}: {told}");
            }
        }
    }
}
