//! Credentials in a request.

use http::header::COOKIE;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use percent_encoding::utf8_percent_encode;
use url::Url;

use super::{Credentials, Source};
use crate::CallError;
use crate::http::auth::Secret;
use crate::http::auth::secret::sensitive;
use crate::http::cookies::{cookies, pairs, set_in};
use crate::http::style::{COMPONENT, cookie_name, cookie_value};
use crate::model::lock::lock;
use crate::model::secrets::Secrets;

impl Credentials {
    /// Adds all secrets of the client, with the tokens that it has at present.
    pub(in crate::http) fn collect(&self, secrets: &mut Secrets) {
        let found = lock(&self.found);
        let named = self.named.values().map(|named| &named.source);
        self.default.iter().chain(named).chain(found.values()).for_each(|source| source.collect(secrets));
    }
}

impl Source {
    fn collect(&self, secrets: &mut Secrets) {
        self.auth.collect(secrets);
        self.tokens.collect(secrets);
    }
}

/// Credentials that are ready to be put into a request.
#[derive(Default)]
pub(in crate::http) struct Applied {
    /// Those without `Cookie`, whose pairs are added to the other cookies of a request.
    headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) query: Vec<(String, Secret)>,
    /// Pairs such as `sid=1`, as they are sent.
    cookies: Vec<Secret>,
    pub(super) tokens: Vec<Option<Secret>>,
}

impl Applied {
    /// Adds credentials in a header, or those in the pairs of the header `Cookie`.
    ///
    /// # Errors
    /// If the header cannot have the value.
    pub(super) fn add_header(&mut self, name: HeaderName, value: &str) -> Result<(), CallError> {
        if name == COOKIE {
            self.cookies.extend(pairs(value).map(Secret::from));
        } else {
            let value = sensitive(format_args!("the value of `{name}`"), value)?;
            self.headers.push((name, value));
        }
        Ok(())
    }

    /// Adds credentials in a cookie of that name.
    pub(super) fn add_cookie(&mut self, name: &str, value: &str) {
        self.cookies.push(format!("{}={}", cookie_name(name), cookie_value(value)).into());
    }

    /// True if the tokens are those that were rejected before.
    pub(in crate::http) fn same_tokens(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }

    /// Adds the tokens, and the pairs of `Cookie` with their values: a server may repeat each by itself.
    pub(in crate::http) fn collect(&self, secrets: &mut Secrets) {
        self.tokens.iter().flatten().for_each(|token| secrets.add(token.expose()));
        for pair in self.cookies.iter().map(Secret::expose) {
            secrets.add(pair);
            secrets.add(pair.split_once('=').map_or("", |(_, value)| value));
        }
    }

    /// True if a header of this name carries one of the credentials.
    pub(in crate::http) fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|(own, _)| own == name)
    }

    /// True if all cookies in the headers are credentials, or if there are none.
    pub(in crate::http) fn has_all_cookies(&self, headers: &HeaderMap) -> bool {
        let is_own = |value: &HeaderValue| {
            std::str::from_utf8(value.as_bytes()).is_ok_and(|value| pairs(value).all(|pair| self.has_cookie(pair)))
        };
        headers.get_all(COOKIE).iter().all(is_own)
    }

    /// True if a pair of `Cookie` carries one of the credentials.
    fn has_cookie(&self, pair: &str) -> bool {
        set_in(self.cookies.iter().map(Secret::expose), pair)
    }

    /// Puts the credentials into a request. They replace what the operation's own parameters put there, but no cookie in the
    /// call's `own` headers. It may be a user's session; with the client's cookie, the response would hold another account's
    /// data.
    pub(in crate::http) fn put<B>(&self, request: &mut Request<B>, own: &HeaderMap) -> Result<(), CallError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        if !self.query.is_empty() {
            let mut url = Url::parse(&request.uri().to_string()).map_err(|_| CallError::execution("no URL"))?;
            self.put_query(&mut url);
            let uri = url.as_str().parse();
            *request.uri_mut() = uri.map_err(|_| CallError::execution("the URL cannot be requested"))?;
        }
        if !self.cookies.is_empty() {
            let own: Vec<&str> = cookies(own).collect();
            let kept = cookies(request.headers()).filter(|pair| own.contains(pair) || !self.has_cookie(pair));
            let keys = self.cookies.iter().map(Secret::expose).filter(|key| !set_in(own.iter().copied(), key));
            let value = sensitive("the value of `cookie`", &kept.chain(keys).collect::<Vec<_>>().join("; "))?;
            request.headers_mut().insert(COOKIE, value);
        }
        Ok(())
    }

    /// Puts the keys of the query into a URL, replacing parameters of the same names.
    fn put_query(&self, url: &mut Url) {
        self.without_pairs(url, |own, _, name, _| own == name);
        self.add_query(url);
    }

    /// Adds the keys of the query to a URL that a server leads to on its own origin. A parameter of the same name is the
    /// server's own, such as a token that is good for one download, and stays.
    pub(in crate::http) fn add_query(&self, url: &mut Url) {
        let taken: Vec<String> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        let escape = |text: &str| utf8_percent_encode(text, COMPONENT).to_string();
        let own = self.query.iter().filter(|(name, _)| !taken.contains(name));
        let own = own.map(|(name, value)| format!("{}={}", escape(name), escape(value.expose())));
        let kept = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let all: Vec<_> = kept.into_iter().chain(own).collect();
        if !all.is_empty() {
            url.set_query(Some(&all.join("&")));
        }
    }

    /// Removes the keys from a URL's query, before it goes to another origin. A parameter of the same name with another value
    /// is the server's own, and stays.
    pub(in crate::http) fn take_query(&self, url: &mut Url) {
        // Not all servers escape a `+`, which is then read as a blank.
        let same = |a: &str, b: &str| a.replace(' ', "+") == b.replace(' ', "+");
        self.without_pairs(url, |own, secret, name, value| own == name && same(secret, value));
    }

    /// Removes the pairs from a URL's query that one of the keys, by its name and value, is said to be.
    fn without_pairs(&self, url: &mut Url, is_key: impl Fn(&str, &str, &str, &str) -> bool) {
        let Some(query) = url.query().filter(|_| !self.query.is_empty()) else { return };
        let is_own = |pair: &str| {
            let pair = url::form_urlencoded::parse(pair.as_bytes()).next();
            pair.is_some_and(|(name, value)| {
                self.query.iter().any(|(own, secret)| is_key(own, secret.expose(), &name, &value))
            })
        };
        let kept: Vec<_> = query.split('&').filter(|pair| !is_own(pair)).collect();
        let kept = (!kept.is_empty()).then(|| kept.join("&"));
        url.set_query(kept.as_deref());
    }
}
