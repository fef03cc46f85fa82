//! Paginated lists, as a stream of pages.
//!
//! [`Execute::pages`], on the methods of generated code, runs an operation repeatedly. A function makes the next input from
//! each page: from its cursor, from the next offset or page number, or from the `Link` header. It works with any
//! [`Caller`].
//!
//! ```
//! use futures_util::{StreamExt, TryStreamExt};
//! use ops_runtime::http::pages::link_parameter;
//! use ops_runtime::registry::Execute;
//! use ops_runtime::spec::OperationSpec;
//! use ops_runtime::{Call, CallError, Caller, Operation};
//! use serde_json::{Value, json};
//!
//! struct ListPets;
//! impl Operation for ListPets {
//!     type Input = Value;
//!     type Output = Value;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.list");
//! }
//! impl Call for ListPets {}
//!
//! // As the generator writes it.
//! trait Methods: Caller + Sized {
//!     fn list_pets(&self, input: impl Into<Value>) -> Execute<'_, Self, ListPets> {
//!         Execute::new(self, input)
//!     }
//! }
//! impl<C: Caller> Methods for C {}
//!
//! async fn all(client: &impl Caller) -> Result<Vec<Value>, CallError> {
//!     // By a cursor in the page; by a page number it would be `input["page"] = json!(number)`.
//!     let pages = client.list_pets(json!({})).pages(|input, page| {
//!         input["cursor"] = page.data["next"].clone();
//!         !input["cursor"].is_null()
//!     });
//!     pages.map_ok(|page| page.data).try_collect().await
//! }
//!
//! async fn by_link(client: &impl Caller) -> usize {
//!     // By the header `Link: <https://api.example.com/pets?page=2>; rel="next"`.
//!     let pages = client.list_pets(json!({})).pages(|input, page| {
//!         let next = link_parameter(page, "page");
//!         input["page"] = json!(next);
//!         next.is_some()
//!     });
//!     pages.count().await
//! }
//! ```

use futures_core::Stream;
use futures_util::stream;
use serde_json::Value;

use crate::model::body::handover;
use crate::model::futures::BoxStream;
use crate::model::parameters::{end_of_part, parameter};
use crate::model::text::readable;
use crate::run::method::Execute;
use crate::{Body, Call, CallError, CallOptions, Caller, OperationSpec, ResponseEnvelope};

/// Limit of the pages of a stream of [`pages`].
const MAX_PAGES: usize = 10_000;

/// Limit of a cursor in an error, in characters.
const MAX_SHOWN: usize = 100;

impl<'c, C: Caller, Op: Call> Execute<'c, C, Op>
where
    Op::Input: Clone,
{
    /// The pages of a list, one call each, all with the same options. A timeout or a deadline among them counts for all pages
    /// together, from when it was set. Without one, the client's own timeout limits each page.
    ///
    /// `next` changes the input of a page to that of the page after it, and returns `false` if there is none. A failed
    /// call is the last item. So is an error if an input equals the one before, or after 10,000 pages, since such a
    /// list would not end.
    pub fn pages(
        self,
        mut next: impl FnMut(&mut Op::Input, &ResponseEnvelope<Op::Output>) -> bool + Send + 'c,
    ) -> BoxStream<'c, Result<ResponseEnvelope<Op::Output>, CallError>> {
        let (caller, first, options) = self.into_parts();
        let mut input = first.as_ref().ok().cloned();
        let next = move |page: &_| {
            let input = input.as_mut()?;
            next(input, page).then(|| input.clone())
        };
        Box::pin(run::<Op, C, _>(caller, options, first, next, MAX_PAGES))
    }
}

/// The pages of a list, one call each; `next` makes the input of the next page, or ends the list.
///
/// A failed call is the last item. So is an error if an input equals the one before, or after 10,000 pages, since such
/// a list would not end. [`pages_up_to`] sets another limit.
pub fn pages<'a, Op, C, N>(
    caller: &'a C,
    first: Op::Input,
    next: N,
) -> impl Stream<Item = Result<ResponseEnvelope<Op::Output>, CallError>> + 'a
where
    Op: Call,
    C: Caller,
    N: FnMut(&ResponseEnvelope<Op::Output>) -> Option<Op::Input> + 'a,
{
    pages_up_to::<Op, C, N>(caller, first, next, MAX_PAGES)
}

/// Like [`pages`], with an error after `limit` pages if there are more.
pub fn pages_up_to<'a, Op, C, N>(
    caller: &'a C,
    first: Op::Input,
    next: N,
    limit: usize,
) -> impl Stream<Item = Result<ResponseEnvelope<Op::Output>, CallError>> + 'a
where
    Op: Call,
    C: Caller,
    N: FnMut(&ResponseEnvelope<Op::Output>) -> Option<Op::Input> + 'a,
{
    run::<Op, C, N>(caller, CallOptions::default(), Ok(first), next, limit)
}

fn run<'a, Op, C, N>(
    caller: &'a C,
    options: CallOptions,
    first: Result<Op::Input, CallError>,
    next: N,
    limit: usize,
) -> impl Stream<Item = Result<ResponseEnvelope<Op::Output>, CallError>> + 'a
where
    Op: Call,
    C: Caller,
    N: FnMut(&ResponseEnvelope<Op::Output>) -> Option<Op::Input> + 'a,
{
    let step = move |(input, mut next, count, before): (Option<Result<_, _>>, N, usize, Option<Asked>)| {
        let options = options.clone();
        async move {
            let input = match input? {
                Ok(_) if count >= limit => {
                    let error = CallError::execution(format!("the list has more than {limit} pages"));
                    Err(error.with_operation(Op::SPEC.id.clone()))
                }
                input => input,
            };
            let (asked, page) = match input {
                Ok(input) => (as_json(&input), caller.execute_with::<Op>(input, options).await),
                Err(error) => (None, Err(error)),
            };
            let following = page.as_ref().ok().and_then(&mut next).map(|input| {
                let again = asked.is_some() && as_json(&input) == asked;
                if !again {
                    return Ok(input);
                }
                let error = endless(Op::SPEC, before.as_ref(), asked.as_ref());
                Err(match &page {
                    // A server may repeat what it was sent, even as a cursor.
                    Ok(page) => page.meta.told(error),
                    Err(_) => error,
                })
            });
            Some((page, (following, next, count + 1, asked)))
        }
    };
    stream::unfold((Some(first), next, 0, None), step)
}

/// The error of a page that the next page has the input of; `before` is the input of the page before it.
fn endless(spec: &OperationSpec, before: Option<&Asked>, input: Option<&Asked>) -> CallError {
    // Only what leads to the next page is shown: other members may be secret.
    let cursor = before.zip(input).and_then(|((before, _), (input, _))| {
        input.as_object()?.iter().find(|(name, value)| before.get(name.as_str()) != Some(*value))
    });
    let message = match cursor {
        Some((name, value)) => {
            let name = readable(name, MAX_SHOWN);
            // An object has other members beside it.
            let shown = if value.is_string() || value.is_number() { format!(", {value}") } else { String::new() };
            let shown = readable(&shown, MAX_SHOWN);
            format!("a page of the list leads to itself: the page after it has the same `{name}`{shown}")
        }
        None => "a page of the list leads to itself: the input of the page after it is the same".to_owned(),
    };
    CallError::execution(message).with_operation(spec.id.clone())
}

/// An input as JSON, and the bodies in it, which are `null` there.
type Asked = (Value, Vec<Body>);

/// An input in a form that can be compared with another.
///
/// It uses the serializer of calls: another one would compile the types of the input once more.
fn as_json<T: serde_core::Serialize>(input: &T) -> Option<Asked> {
    let (value, bodies) = handover::scoped(|| crate::record::to_value(input));
    Some(bodies.apart(value.ok()?))
}

/// The URL of the next page by the page's `Link` header (RFC 8288), unchanged.
pub fn next_link<T>(page: &ResponseEnvelope<T>) -> Option<&str> {
    let header = page.header("link")?;
    links(header).find(|(_, relations)| relations.iter().any(|r| r.eq_ignore_ascii_case("next"))).map(|(url, _)| url)
}

/// The value of a query parameter in the URL of the next page by the page's `Link` header.
pub fn link_parameter<T>(page: &ResponseEnvelope<T>, name: &str) -> Option<String> {
    let url = next_link(page)?;
    let (_, query) = url.split('#').next()?.split_once('?')?;
    url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The links of a header with their relations.
fn links(header: &str) -> impl Iterator<Item = (&str, Vec<String>)> {
    let mut rest = header;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once('<')?;
        let (url, after) = after.split_once('>')?;
        // The parameters end at a comma that is not inside quotation marks.
        let (parameters, after) = after.split_at(end_of_part(after, ','));
        rest = after;
        let relations = parameter(parameters, "rel").unwrap_or_default();
        Some((url.trim(), relations.split_ascii_whitespace().map(str::to_owned).collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpMeta;

    #[test]
    fn link_headers() {
        let page = |link: &str| {
            let mut meta = HttpMeta::new(200, "application/json");
            meta.headers.insert("link".to_owned(), link.to_owned());
            ResponseEnvelope::http((), meta)
        };
        let table = [
            (r#"<https://h.test/a?page=2&x=a%20b>; rel="next", <https://h.test/a?page=9>; rel="last""#, Some("2")),
            (r#"<https://h.test/a?page=1>; title="a, b; c"; rel=prev, </a?page=3#f>; REL="nofollow Next""#, Some("3")),
            (r#"<https://h.test/a?page=1>; rel="prev""#, None),
            ("<https://h.test/a>; rel=next", None),
            ("nonsense", None),
            ("<", None),
        ];
        for (header, expected) in table {
            assert_eq!(link_parameter(&page(header), "page").as_deref(), expected, "{header}");
        }
        assert_eq!(link_parameter(&page(table[0].0), "x").unwrap(), "a b");
    }
}
