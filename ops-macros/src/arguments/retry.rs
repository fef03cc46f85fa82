//! The argument `retry(..)`.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitInt, parenthesized};

use super::parts::{ErrorCode, Retry};
use super::values;

/// The first and the longest wait of a policy that does not say, in milliseconds: those of `RetryPolicy::new`.
pub(crate) const BACKOFF: u64 = 1_000;
pub(crate) const MAX_BACKOFF: u64 = 300_000;

/// Errors that the argument refuses. A `VALIDATION_ERROR` is mostly one of the input, which no repetition changes. A
/// policy retries it only for responses that do not fit, and only if it is set where the job is submitted.
const NEVER: [&str; 3] = ["VALIDATION_ERROR", "ACCESS_DENIED", "OPERATION_NOT_FOUND"];
/// Codes that any operation may fail with.
const COMMON: [&str; 5] = ["EXECUTION_ERROR", "UNKNOWN_ERROR", "TIMEOUT", "ABORTED", "TOOL_ERROR"];

/// `retry(attempts = 5, backoff = "1s", max_backoff = "1m", factor = 2, deadline = "1h", errors(Busy))`.
pub(super) fn retry(input: ParseStream<'_>) -> syn::Result<Retry> {
    values::in_parentheses(input, "retry(attempts = 5)")?;
    let content;
    let parentheses = parenthesized!(content in input);
    let mut retry = Retry::default();
    let mut seen: Vec<Ident> = Vec::new();
    while !content.is_empty() {
        let key = Ident::parse_any(&content)?;
        if seen.contains(&key) {
            return Err(syn::Error::new(key.span(), format!("`{key}` is given twice")));
        }
        match key.to_string().as_str() {
            "attempts" => retry.attempts = number(&content, "the first attempt counts: at least 1")?,
            "backoff" => retry.backoff = Some(values::wait(&content)?),
            "max_backoff" => retry.max_backoff = Some(values::wait(&content)?),
            "factor" => retry.factor = Some(number(&content, "a factor of 0 would leave no wait: at least 1")?),
            "deadline" => retry.deadline = Some(values::timeout(&content)?),
            "errors" => retry.errors = codes(&content)?,
            _ => {
                let known = "`attempts`, `backoff`, `max_backoff`, `factor`, `deadline` and `errors`";
                return Err(syn::Error::new(key.span(), format!("`retry` has no `{key}`; it has {known}")));
            }
        }
        seen.push(key);
        values::comma(&content)?;
    }
    if !seen.iter().any(|key| key == "attempts") {
        return Err(syn::Error::new(parentheses.span.join(), "say how many attempts: `retry(attempts = 5)`"));
    }
    if retry.max_backoff.is_some_and(|longest| longest < retry.backoff.unwrap_or(BACKOFF)) {
        let span = seen.iter().find(|key| *key == "max_backoff").map_or_else(|| parentheses.span.join(), Ident::span);
        return Err(syn::Error::new(span, "the longest wait is shorter than the first (`backoff`, 1 s by default)"));
    }
    Ok(retry)
}

fn number(input: ParseStream<'_>, zero: &str) -> syn::Result<u32> {
    let literal: LitInt =
        values::value(input).map_err(|error| syn::Error::new(error.span(), "expected a whole number"))?;
    match literal.base10_parse()? {
        0 => Err(syn::Error::new(literal.span(), zero)),
        number => Ok(number),
    }
}

fn codes(input: ParseStream<'_>) -> syn::Result<Vec<ErrorCode>> {
    let codes = values::errors(input)?;
    for code in &codes {
        if NEVER.contains(&code.code.as_str()) {
            let message = match code.code.as_str() {
                "VALIDATION_ERROR" => {
                    "`VALIDATION_ERROR` can't be retried here: set `RetryPolicy::with_code(\"VALIDATION_ERROR\")` on the \
                     submit or on `Jobs`, for responses that do not fit"
                        .to_owned()
                }
                other => format!("`{other}` is never retried: remove it"),
            };
            return Err(syn::Error::new(code.span, message));
        }
        if code.status.is_some() {
            return Err(syn::Error::new(code.span, "the status of an error stands where the error is declared"));
        }
    }
    Ok(codes)
}

/// True if an operation may fail with the code without declaring it.
pub(crate) fn is_common(code: &str) -> bool {
    COMMON.contains(&code)
}
