//! Logs undeclared codes of functions: each once, since its clients get 400 and no code.

use std::collections::HashSet;
use std::sync::Mutex;

use super::problem;
use crate::model::lock::lock;
use crate::model::nearest::nearest;
use crate::model::text::readable;
use crate::{CallError, OperationSpec};

/// Limit of logged codes: they may be made from what callers send.
const MOST: usize = 1_000;

/// Limit of a logged code, in characters.
const LONGEST: usize = 100;

/// How many declared codes a line lists.
const NAMED: usize = 3;

/// The logged operations and codes.
#[derive(Default)]
pub(super) struct Undeclared(Mutex<HashSet<(String, String)>>);

impl Undeclared {
    /// Logs the code of an error once, if the operation does not declare it.
    pub(super) fn tell(&self, error: &CallError, spec: &OperationSpec) {
        let code = error.code();
        if problem::of_code(code).is_some() || spec.errors.iter().any(|declared| declared.code == code.as_str()) {
            return;
        }
        // It may be any text, of any length.
        let code = readable(code.as_str(), LONGEST);
        let mut told = lock(&self.0);
        if told.len() >= MOST || !told.insert((spec.id.clone().into_owned(), code.clone())) {
            return;
        }
        drop(told);
        let of = error.operation().filter(|id| *id != spec.id).map(|id| format!(" of `{id}`")).unwrap_or_default();
        tracing::warn!(
            operation = spec.id.as_ref(),
            "`{}` failed with `{code}`{of}, which it does not declare, so that clients get status 400: {}",
            spec.id,
            declares(&code, spec),
        );
    }
}

/// The codes that an operation declares, the most similar first.
fn declares(code: &str, spec: &OperationSpec) -> String {
    let declared = || spec.errors.iter().map(|declared| declared.code.as_ref());
    let mut named = nearest(code, declared(), 1);
    if named.is_empty() {
        named = declared().take(NAMED).collect();
    }
    if named.is_empty() {
        return "it declares no errors".to_owned();
    }
    let named: Vec<String> = named.iter().map(|code| format!("`{code}`")).collect();
    format!("it declares {}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::sync::Arc;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::ErrorDefinition;

    /// The messages of events.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Visit for Log {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if field.name() == "message" {
                self.0.lock().unwrap().push(format!("{value:?}"));
            }
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_code_is_told_once_for_an_operation() {
        const ERRORS: &[ErrorDefinition] = &[ErrorDefinition::new("NotFound")];
        let (one, other) = (OperationSpec::query("a.b").with_errors(ERRORS), OperationSpec::query("a.c"));
        let (log, undeclared) = (Log::default(), Undeclared::default());
        tracing::subscriber::with_default(log.clone(), || {
            for spec in [&one, &one, &other] {
                for code in ["NOT_FOUND", "NotFound", "TIMEOUT", "TOO_MANY_REQUESTS"] {
                    undeclared.tell(&CallError::new(code, "").with_operation("a.b"), spec);
                }
            }
        });
        let told = log.0.lock().unwrap();
        let rest = "which it does not declare, so that clients get status 400: it declares";
        assert_eq!(
            *told,
            [
                format!("`a.b` failed with `NOT_FOUND`, {rest} `NotFound`"),
                format!("`a.c` failed with `NOT_FOUND` of `a.b`, {rest} no errors"),
                format!("`a.c` failed with `NotFound` of `a.b`, {rest} no errors"),
            ]
        );
    }

    #[test]
    fn the_nearest_code_is_named() {
        const ERRORS: &[ErrorDefinition] = &[ErrorDefinition::new("Busy"), ErrorDefinition::new("NotFound")];
        let declared = OperationSpec::query("a.b").with_errors(ERRORS);
        for (spec, code, said) in [
            (&declared, "NOT_FOUND", "it declares `NotFound`"),
            (&declared, "Gone", "it declares `Busy`, `NotFound`"),
            (&OperationSpec::query("a.b"), "Gone", "it declares no errors"),
        ] {
            assert_eq!(declares(code, spec), said);
        }
    }
}
