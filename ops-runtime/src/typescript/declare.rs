//! All operations in one file.

use std::collections::BTreeMap;

use super::describe::Function;
use super::name::Names;
use super::policy::Policy;
use super::print::Printer;
use super::scope::Scope;
use super::text;
use crate::{OperationKind, OperationSpec};

/// What each file says before and after its operations.
const HEAD: &str = "\
export {};

declare global {
  /**
   * The operations, as programs call them.
   * To a program, a whole number beyond 2^53 comes as a BigInt, also where the type is `number`.
   */
  namespace ops {";
const TAIL: &str = r#"
  }
}

type Input<F extends (input: never) => unknown> =
  Parameters<F> extends [] ? undefined : Exclude<Parameters<F>[0], undefined>;

type Call<F extends (input: never) => Promise<unknown>> = {
  input: Input<F>;
  output: Awaited<ReturnType<F>>;
};

type Stream<F extends (input: never) => Promise<unknown[]>> = {
  input: Input<F>;
  item: Awaited<ReturnType<F>>[number];
};

/** What each operation takes and gives, by its id; a stream gives items. */
export interface Operations {"#;

/// Declares operations; see [`super::declarations`].
pub(super) fn declarations(mut specs: Vec<&OperationSpec>, names: &Names) -> String {
    specs.sort_by(|a, b| a.id.cmp(&b.id));
    specs.dedup_by(|a, b| a.id == b.id);
    let own;
    let names = if specs.iter().all(|spec| names.name(&spec.id).is_some()) {
        names
    } else {
        own = Names::new(specs.iter().map(|spec| &spec.id));
        &own
    };
    let mut namespaces: BTreeMap<&str, Vec<&OperationSpec>> = BTreeMap::new();
    for spec in &specs {
        if let Some(name) = names.name(&spec.id) {
            namespaces.entry(name.namespace).or_default().push(spec);
        }
    }
    let mut out = HEAD.to_owned();
    for (namespace, specs) in namespaces {
        out.push_str(&format!("\n    namespace {namespace} {{"));
        out.push_str(&functions(&specs, names));
        out.push_str("\n    }\n");
    }
    out.truncate(out.trim_end().len());
    out.push_str(TAIL);
    for spec in specs {
        if let Some(name) = names.name(&spec.id) {
            let kind = if spec.kind == OperationKind::Subscription { "Stream" } else { "Call" };
            out.push_str(&format!("\n  {}: {kind}<typeof {name}>;", text::literal(&spec.id)));
        }
    }
    out.push_str("\n}\n");
    out
}

/// The functions of a namespace and their types.
fn functions(specs: &[&OperationSpec], names: &Names) -> String {
    let policy = Policy::declarations();
    let mut printer = Printer::new(&policy);
    let mut scope = Scope::default();
    let functions: Vec<Function<'_>> = specs.iter().map(|spec| Function::load(spec, &mut scope)).collect();
    scope.direct();
    for (function, spec) in functions.iter().zip(specs) {
        let Some(name) = names.name(&spec.id) else { continue };
        let types = function.types(&mut scope);
        let doc = function.doc(policy.operation, &mut printer);
        printer.comment(&doc, 6);
        function.print(&scope, &types, name, &mut printer, 6);
    }
    printer.named(&mut scope, 6);
    printer.out
}
