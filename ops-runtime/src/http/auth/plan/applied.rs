//! Credentials in a request.

use std::sync::PoisonError;

use http::header::COOKIE;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use percent_encoding::utf8_percent_encode;
use url::Url;

use super::{Credentials, Source};
use crate::CallError;
use crate::http::auth::Secret;
use crate::http::auth::secret::sensitive;
use crate::http::style::{COMPONENT, cookie_name, cookie_value};
use crate::model::secrets::Secrets;

impl Credentials {
    /// Adds all secrets of the client, with the tokens that it has at present.
    pub(in crate::http) fn collect(&self, secrets: &mut Secrets) {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
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
            let pairs = value.split(';').map(str::trim).filter(|pair| !pair.is_empty());
            self.cookies.extend(pairs.map(Secret::from));
        } else {
            self.headers.push((name, sensitive(value)?));
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
            std::str::from_utf8(value.as_bytes()).is_ok_and(|value| value.split("; ").all(|pair| self.has_cookie(pair)))
        };
        headers.get_all(COOKIE).iter().all(is_own)
    }

    /// True if a pair of `Cookie` carries one of the credentials.
    fn has_cookie(&self, pair: &str) -> bool {
        self.cookies.iter().any(|own| name_of(own.expose()) == name_of(pair))
    }

    /// Puts the credentials into a request; they replace what the operation's own parameters put there.
    pub(in crate::http) fn put<B>(&self, request: &mut Request<B>) -> Result<(), CallError> {
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
            let kept =
                request.headers().get_all(COOKIE).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
            let kept = kept.flat_map(|value| value.split("; ")).filter(|pair| !self.has_cookie(pair));
            let mut pairs: Vec<_> = kept.map(str::to_owned).collect();
            pairs.extend(self.cookies.iter().map(|pair| pair.expose().to_owned()));
            request.headers_mut().insert(COOKIE, sensitive(&pairs.join("; "))?);
        }
        Ok(())
    }

    /// Puts the keys of the query into a URL, replacing parameters of the same names.
    pub(in crate::http) fn put_query(&self, url: &mut Url) {
        self.take_query(url);
        let escape = |text: &str| utf8_percent_encode(text, COMPONENT).to_string();
        let own = self.query.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value.expose())));
        let kept = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let all: Vec<_> = kept.into_iter().chain(own).collect();
        if !all.is_empty() {
            url.set_query(Some(&all.join("&")));
        }
    }

    /// Removes the keys from a URL's query, before it goes to another origin.
    pub(in crate::http) fn take_query(&self, url: &mut Url) {
        let Some(query) = url.query().filter(|_| !self.query.is_empty()) else { return };
        let is_own = |pair: &str| {
            let name = url::form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.into_owned());
            name.is_some_and(|name| self.query.iter().any(|(own, _)| *own == name))
        };
        let kept: Vec<_> = query.split('&').filter(|pair| !is_own(pair)).collect();
        let kept = (!kept.is_empty()).then(|| kept.join("&"));
        url.set_query(kept.as_deref());
    }
}

/// The name in a pair of `Cookie`.
fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}
