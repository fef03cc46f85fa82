//! Parses what stands in the parentheses of `#[operation(..)]`.

mod http;
mod parts;
pub(crate) mod retry;
mod values;

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, LitStr, Path, Token, Type};

use crate::errors::Errors;
pub(crate) use http::Http;
pub(crate) use parts::{ErrorCode, Kind, Resource, Retry};

const KNOWN: &str = "`namespace`, `name`, `kind`, `http`, `status`, `title`, `version`, `timeout`, `retry`, `tags`, `scopes`, `scopes_any`, \
    `resource`, `errors`, `state`, `deprecated`, `input`, `output`, `crate`";

/// The arguments as they were written; what was left out is empty.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) namespace: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) kind: Option<(Kind, Span)>,
    pub(crate) http: Option<Http>,
    /// The HTTP status of a success.
    pub(crate) status: Option<u16>,
    pub(crate) title: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    /// In milliseconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) retry: Option<Retry>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) scopes: Vec<LitStr>,
    pub(crate) scopes_any: Vec<LitStr>,
    pub(crate) resource: Option<Resource>,
    pub(crate) errors: Vec<ErrorCode>,
    pub(crate) state: Vec<Type>,
    pub(crate) deprecated: bool,
    pub(crate) krate: Option<Path>,
    pub(crate) input: Option<Type>,
    pub(crate) output: Option<Type>,
    seen: Vec<Ident>,
}

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut arguments = Self::default();
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                let result = arguments.argument(input).and_then(|()| values::comma(input));
                if errors.take(result).is_none() {
                    skip(input);
                }
            }
            Ok(())
        };
        // The parser itself reports its errors one by one and always succeeds.
        let _ = parser.parse2(tokens);
        if !arguments.seen("namespace") {
            let message = "`#[operation]` needs `namespace = \"..\"`: the id of an operation is `namespace.name`";
            errors.span(Span::call_site(), message);
        }
        arguments
    }

    /// Whether the argument was given, even wrongly.
    pub(crate) fn seen(&self, name: &str) -> bool {
        self.span(name).is_some()
    }

    /// Where the argument stands.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.seen.iter().find(|seen| *seen == name).map(Ident::span)
    }

    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let key = Ident::parse_any(input)?;
        if self.seen.contains(&key) {
            return Err(syn::Error::new(key.span(), format!("`{key}` is given twice")));
        }
        self.seen.push(key.clone());
        match key.to_string().as_str() {
            "namespace" => self.namespace = Some(values::namespace(input)?),
            "name" => self.name = Some(values::text(input)?),
            "kind" => self.kind = Some(values::kind(input)?),
            "http" => self.http = Some(Http::of(&values::text(input)?)?),
            "status" => self.status = Some(values::success(input)?),
            "title" => self.title = Some(values::text(input)?),
            "version" => self.version = Some(values::text(input)?),
            "timeout" => self.timeout = Some(values::timeout(input)?),
            "retry" => self.retry = Some(retry::retry(input)?),
            "tags" => self.tags = values::texts(input, &key)?,
            "scopes" => self.scopes = values::texts(input, &key)?,
            "scopes_any" => self.scopes_any = values::texts(input, &key)?,
            "resource" => self.resource = Some(values::resource(input)?),
            "errors" => self.errors = values::errors(input)?,
            "state" => self.state = values::types(input, &key)?,
            "deprecated" if input.peek(Token![=]) => {
                return Err(input.error("`deprecated` stands alone: leave the value out"));
            }
            "deprecated" => self.deprecated = true,
            "input" => self.input = Some(values::value(input)?),
            "output" => self.output = Some(values::value(input)?),
            "crate" => {
                input.parse::<Token![=]>()?;
                self.krate = Some(input.call(Path::parse_mod_style)?);
            }
            "description" | "summary" => {
                self.seen.pop();
                let message = "the doc comment is the description; a short name for people is the `title`";
                return Err(syn::Error::new(key.span(), message));
            }
            _ => {
                self.seen.pop();
                return Err(syn::Error::new(
                    key.span(),
                    format!("unknown argument `{key}`; the known ones are {KNOWN}"),
                ));
            }
        }
        Ok(())
    }
}

/// Goes on behind the next comma, so that one bad argument does not hide the mistakes in the others.
fn skip(input: ParseStream<'_>) {
    while !input.is_empty() {
        if input.parse::<Option<Token![,]>>().is_ok_and(|comma| comma.is_some()) {
            return;
        }
        if input.parse::<proc_macro2::TokenTree>().is_err() {
            return;
        }
    }
}
