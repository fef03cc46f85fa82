//! The rules that no single part of an operation can see.

use crate::arguments::retry::is_common;
use crate::errors::Errors;
use crate::model::{Kind, Operation};

pub(crate) fn check(operation: &Operation, errors: &mut Errors) {
    let arguments = &operation.arguments;
    retry(operation, errors);
    status(operation, errors);
    head(operation, errors);
    if operation.handler.is_some() {
        let instead =
            [("input", "the parameters of a fn are its input"), ("output", "a fn's output is what it returns")];
        for (name, instead) in instead {
            if let Some(span) = arguments.span(name) {
                errors.span(span, format!("`{name}` is for unit structs: remove it; {instead}"));
            }
        }
        kind(operation, errors);
    } else {
        for name in ["input", "output"] {
            if !arguments.seen(name) {
                let message = format!("an operation without a fn needs `{name} = ..`, a type");
                errors.tokens(&operation.ident, message);
            }
        }
        if let Some(span) = arguments.span("state") {
            let message = "`state` is for fns: remove it, and call `Registration::requires::<T>()` where the handler is \
                           registered";
            errors.span(span, message);
        }
    }
}

fn retry(operation: &Operation, errors: &mut Errors) {
    let arguments = &operation.arguments;
    let Some(retry) = &arguments.retry else { return };
    for error in &retry.errors {
        let code = &error.code;
        if !is_common(code) && !arguments.errors.iter().any(|declared| declared.code == *code) {
            errors.span(error.span, format!("`{code}` is no error of the operation: declare it in `errors(..)`, too"));
        }
    }
    if let (Kind::Subscription, Some(span)) = (operation.kind, arguments.span("retry")) {
        errors.span(span, "`retry` is for jobs, and a subscription cannot be one");
    }
}

fn status(operation: &Operation, errors: &mut Errors) {
    let arguments = &operation.arguments;
    let Some(span) = arguments.span("status") else { return };
    if !arguments.seen("http") {
        errors.span(span, "`status` is that of the response over HTTP: it needs `http = \"..\"`");
    } else if operation.kind == Kind::Subscription {
        errors.span(span, "`status` is for one response, and that of a subscription is 200");
    }
}

fn head(operation: &Operation, errors: &mut Errors) {
    if let (Kind::Subscription, Some(http), true) = (operation.kind, &operation.arguments.http, operation.is_head()) {
        errors.span(http.span, "a response to HEAD has no body: write `GET` for a stream");
    }
}

fn kind(operation: &Operation, errors: &mut Errors) {
    let Some((kind, span)) = operation.arguments.kind else { return };
    match (kind, operation.output.stream) {
        (Kind::Subscription, None) => {
            errors.span(operation.output.span, "a subscription returns `impl Stream<Item = ..>`");
        }
        (Kind::Query | Kind::Mutation, Some(_)) => {
            errors.span(span, "a fn that returns a stream is a subscription");
        }
        _ => {}
    }
}
