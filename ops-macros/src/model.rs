//! An operation as the macro understands it, between parsing and printing.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, Ident, Type, Visibility};

use crate::arguments::Arguments;
pub(crate) use crate::arguments::{ErrorCode, Kind, Resource, Retry};

pub(crate) struct Operation {
    /// What the attribute says.
    pub(crate) arguments: Arguments,
    /// The type that names the operation.
    pub(crate) ident: Ident,
    pub(crate) visibility: Visibility,
    /// The doc comment of the fn or struct, verbatim.
    pub(crate) docs: Vec<Attribute>,
    /// The name within the namespace, unless the attribute says otherwise.
    pub(crate) default_name: String,
    pub(crate) deprecated: bool,
    pub(crate) kind: Kind,
    pub(crate) input: Input,
    /// Where the input is in an HTTP request.
    pub(crate) binding: Option<Binding>,
    pub(crate) output: Output,
    /// Nothing for a unit struct, whose handler is registered apart.
    pub(crate) handler: Option<Handler>,
}

impl Operation {
    /// The type of the input.
    pub(crate) fn input_type(&self) -> TokenStream {
        match &self.input {
            Input::Fields(name, _) => name.to_token_stream(),
            Input::Whole(ty) => ty.to_token_stream(),
        }
    }

    /// True if it is bound to the method `HEAD`.
    pub(crate) fn is_head(&self) -> bool {
        self.arguments.http.as_ref().is_some_and(|http| http.method == "HEAD")
    }

    /// The path of the runtime.
    pub(crate) fn krate(&self) -> TokenStream {
        self.arguments.krate.as_ref().map_or_else(|| quote!(::ops_runtime), ToTokens::to_token_stream)
    }
}

pub(crate) enum Input {
    /// The parameters are the fields of a type that the macro makes.
    Fields(Ident, Vec<Field>),
    /// The type is there already.
    Whole(Type),
}

pub(crate) struct Field {
    pub(crate) ident: Ident,
    /// The owned type: `String` for a parameter of type `&str`.
    pub(crate) ty: Type,
    /// Doc comments, `#[serde(..)]` and `#[schemars(..)]`.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<DefaultValue>,
    /// What `#[input(header = "..")]` and the like say.
    pub(crate) place: Option<Placed>,
}

pub(crate) enum DefaultValue {
    /// `Default::default()`.
    OfType,
    Expr(Box<Expr>),
}

/// Where a parameter is in an HTTP request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

/// A place that was asked for, with the name there if it is not that of the property.
pub(crate) struct Placed {
    pub(crate) location: Location,
    pub(crate) name: Option<(String, Span)>,
    pub(crate) span: Span,
}

/// The places of an input in an HTTP request.
pub(crate) struct Binding {
    /// Each with its name in the request, and the property that it is.
    pub(crate) parameters: Vec<(Location, String, String)>,
    pub(crate) body: Option<Body>,
}

pub(crate) enum Body {
    /// The value of a property.
    Property(String, Box<Type>),
    /// An object of all that has no other place, with the types that are not of the standard library.
    Rest(Vec<Type>),
}

pub(crate) struct Output {
    /// The type of one result, without the `Result` and the envelope around it.
    pub(crate) ty: Type,
    pub(crate) form: Form,
    /// What a complaint about one result points at: its error type, if it has one.
    pub(crate) form_span: Span,
    pub(crate) stream: Option<Stream>,
    /// The whole return type.
    pub(crate) span: Span,
}

/// How one result is given.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Value,
    Result,
    Envelope,
    ResultEnvelope,
}

/// How a stream of results is given.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Plain,
    /// In a `Result`, with its error type.
    Fallible(Span),
}

pub(crate) struct Handler {
    pub(crate) name: Ident,
    pub(crate) arguments: Vec<Argument>,
}

/// What is passed to the fn, in the order of its parameters.
pub(crate) struct Argument {
    pub(crate) source: Source,
    pub(crate) by_reference: bool,
}

pub(crate) enum Source {
    Context,
    Field(Ident),
    WholeInput,
}
