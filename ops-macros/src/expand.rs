//! The pipeline: parse, make the model, check, render; stops where something is wrong, and keeps the user's item.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Ident};

use crate::arguments::{Arguments, Http};
use crate::errors::Errors;
use crate::item::{Function, Item, Unit};
use crate::model::{Handler, Input, Kind, Operation, Output};
use crate::{binding, check, names, render, signature};

pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let arguments = Arguments::parse(arguments, &mut errors);
    let Some(parsed) = errors.take(syn::parse2::<Item>(item.clone())) else {
        let errors = errors.render();
        return quote!(#item #errors);
    };
    let operation = match &parsed {
        Item::Function(function) => of_function(arguments, function, &mut errors),
        Item::Unit(unit) => of_unit(arguments, unit, &mut errors),
    };
    if let Some(operation) = &operation {
        check::check(operation, &mut errors);
    }
    let rest = match &operation {
        Some(operation) if errors.is_empty() => render::operation(operation),
        // Without the runtime's path nothing can stand in.
        Some(operation) if operation.arguments.krate.is_none() && operation.arguments.seen("crate") => {
            TokenStream::new()
        }
        Some(operation) => render::fallback(operation),
        None => TokenStream::new(),
    };
    let errors = errors.render();
    quote!(#parsed #errors #rest)
}

/// Nothing if there is no usable name for the operation's type, or if the fn is a method, beside which no type can stand.
fn of_function(arguments: Arguments, function: &Function, errors: &mut Errors) -> Option<Operation> {
    let signature = &function.signature;
    let name = &signature.ident;
    signature::qualifiers(signature, errors);
    let ident = names::upper_camel(name).filter(|ident| ident != name);
    if ident.is_none() {
        let message = "can't name the operation's type after this fn: rename the fn in snake_case, such as `find_pet` for \
                       `FindPet`";
        errors.tokens(name, message);
    }
    let ident = ident?;
    let hiding = |what: &str, ident: &Ident| {
        format!(
            "the {what} type would be called `{ident}` and hide the `{ident}` that code here names: rename the fn, and \
             keep the id by `name = \"{}\"`",
            names::verbatim(name)
        )
    };
    if signature::hides(&ident, signature) {
        errors.tokens(name, hiding("operation's", &ident));
        return None;
    }
    let input_name = quote::format_ident!("{ident}Input");
    let (mut input, passed) = signature::parameters(signature, input_name, errors);
    // As its own field, the type would have no end.
    if let Input::Fields(ident, _) = &input
        && signature::takes(signature, ident)
    {
        errors.tokens(name, hiding("input's", ident));
        return None;
    }
    let mut output = Output::parse(&signature.output, name.span(), errors);
    if signature.receiver().is_some() {
        return None;
    }
    let generics = signature::generic_names(signature);
    if let Input::Fields(_, fields) = &mut input {
        fields.retain(|field| !crate::types::mentions(&field.ty, &generics));
    }
    if crate::types::mentions(&output.ty, &generics) {
        output = Output::unit(output.span);
    }
    let kind = match (&arguments.kind, output.stream) {
        (Some((kind, _)), _) => *kind,
        (None, Some(_)) => Kind::Subscription,
        (None, None) => default_kind(&arguments),
    };
    Some(Operation {
        binding: binding::bind(&arguments, &mut input, errors),
        deprecated: arguments.deprecated || has(&function.attributes, "deprecated"),
        arguments,
        ident,
        visibility: function.visibility.clone(),
        docs: docs(&function.attributes),
        default_name: names::verbatim(name),
        kind,
        input,
        output,
        handler: Some(Handler { name: name.clone(), arguments: passed }),
    })
}

fn of_unit(arguments: Arguments, unit: &Unit, errors: &mut Errors) -> Option<Operation> {
    if unit.rest.to_string() != ";" {
        errors.tokens(&unit.rest, "an operation without a fn is a unit struct: write `;` here");
        return None;
    }
    let unit_type = || syn::parse_quote!(());
    // What is said of the type is about one that stands there.
    let is_given = arguments.input.is_some();
    let mut input = Input::Whole(arguments.input.clone().unwrap_or_else(unit_type));
    Some(Operation {
        binding: if is_given { binding::bind(&arguments, &mut input, errors) } else { None },
        deprecated: arguments.deprecated || has(&unit.attributes, "deprecated"),
        ident: unit.ident.clone(),
        visibility: unit.visibility.clone(),
        docs: docs(&unit.attributes),
        default_name: names::verbatim(&unit.ident),
        kind: arguments.kind.map_or_else(|| default_kind(&arguments), |(kind, _)| kind),
        input,
        output: Output::value(arguments.output.clone().unwrap_or_else(unit_type)),
        handler: None,
        arguments,
    })
}

/// The kind of an operation that gives one result: a request that only reads is a query.
fn default_kind(arguments: &Arguments) -> Kind {
    if arguments.http.as_ref().is_some_and(Http::is_read) { Kind::Query } else { Kind::Mutation }
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}
