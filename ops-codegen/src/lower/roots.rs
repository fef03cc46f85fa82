//! The types that operations begin with: all others are reached from them.

use crate::types::Type;

/// The types that the operations use directly, in the order of the operations, and those that are generated anyway.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    pub(crate) operations: Vec<Root>,
    /// The payloads of webhooks, which are only received.
    pub(crate) webhooks: Vec<Type>,
    pub(crate) others: Vec<Type>,
}

/// The types that one operation uses directly.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) input: Type,
    pub(crate) output: Type,
    pub(crate) errors: Vec<Type>,
    /// True if the operation is an HTTP request: its input is parameters and a body.
    pub(crate) is_http: bool,
    pub(crate) nulls: Nulls,
}

/// The places where a request may need to send `null` for a property that may be absent.
#[derive(Debug, PartialEq)]
pub(crate) enum Nulls {
    Nowhere,
    /// In these properties of the input.
    In(Vec<String>),
    Everywhere,
}

impl Roots {
    pub(crate) fn types_mut(&mut self) -> impl Iterator<Item = &mut Type> {
        let operations = self.operations.iter_mut().flat_map(|root| {
            let Root { input, output, errors, .. } = root;
            [input, output].into_iter().chain(errors)
        });
        // After the operations, so that these change none of their names.
        operations.chain(&mut self.webhooks).chain(&mut self.others)
    }

    /// The types that responses, webhooks and further schemas begin with.
    pub(crate) fn received(&self) -> impl Iterator<Item = &Type> {
        let responses = self.operations.iter().flat_map(|root| root.errors.iter().chain([&root.output]));
        responses.chain(&self.webhooks).chain(&self.others)
    }
}
