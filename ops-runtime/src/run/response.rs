//! What a handler says of the HTTP response to its call, beside the result.

mod parts;

use crate::{Context, HttpMeta};

pub(crate) use self::parts::ResponseParts;

impl Context {
    /// Sets the status of the HTTP response to this call, if the call succeeds: 200 to 599.
    ///
    /// A stream of a subscription has 200 in any case.
    ///
    /// ```
    /// use ops_runtime::Context;
    ///
    /// /// Keeps a pet, and says where it is.
    /// async fn keep_pet(context: Context, name: String) -> String {
    ///     context.set_response_status(201);
    ///     context.set_response_header("Location", "/pets/7");
    ///     context.add_response_cookie("last=7; HttpOnly");
    ///     name
    /// }
    /// ```
    ///
    /// `HttpServer` sends it. A call that came in another way has no response: nothing happens then, and nothing happens in a
    /// call that this handler makes.
    pub fn set_response_status(&self, status: u16) {
        self.say(|said| said.status_code = status);
    }

    /// Sets a header of the HTTP response to this call, whether the call succeeds or fails.
    ///
    /// A header of that name that was set before, in any case, is replaced. Headers of the connection, the length and the content
    /// type are the server's, and so is `x-request-id`. What describes the form of the result, such as `etag` and the other
    /// `content-` headers, is not sent with a failure or an envelope. A subscription sets headers before it returns its stream. See
    /// [`set_response_status`](Self::set_response_status) for an example, and for calls without a response.
    pub fn set_response_header(&self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into().to_ascii_lowercase(), value.into());
        self.say(|said| drop(said.headers.insert(name, value)));
    }

    /// Adds a cookie to the HTTP response to this call: the value of a `Set-Cookie` header (RFC 6265, section 4.1).
    ///
    /// See [`set_response_status`](Self::set_response_status) for an example, and for calls without a response.
    pub fn add_response_cookie(&self, cookie: impl Into<String>) {
        let cookie = cookie.into();
        self.say(|said| said.set_cookie.push(cookie));
    }

    fn say(&self, what: impl FnOnce(&mut HttpMeta)) {
        if let Some(response) = self.extra.as_ref().and_then(|extra| extra.response.as_ref()) {
            response.with(what);
        }
    }
}
