//! Documents and lists of tools that are read, generated from or interpreted.

use std::collections::BTreeMap;

use ops_codegen::Generator;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic};
use ops_runtime::{HttpConfig, mcp};

use crate::{Case, Outcome};

mod expansion;
mod names;
mod nesting;
mod remote;
mod reports;
mod typescript;

pub(super) const CASES: &[Case] = &[
    Case::new("json-nested-without-end", 200_000, nested).with_family("references"),
    Case::new("aliases-of-long-text", 1 << 20, expansion::aliases_of_text).with_family("aliases"),
    Case::new("aliases-of-long-keys", 1 << 20, expansion::aliases_of_keys).with_family("aliases"),
    Case::new("aliases-of-schemas", 1 << 20, expansion::aliases_of_schemas).with_family("aliases"),
    Case::new("response-shared-by-operations", 400_000, expansion::shared_response).with_family("references"),
    Case::new("parameter-shared-by-operations", 400_000, expansion::shared_parameter).with_family("references"),
    Case::new("path-item-shared-by-paths", 400_000, expansion::shared_path_item).with_family("references"),
    Case::new("schemas-that-extend-a-large-one", 400_000, expansion::heirs).with_family("references"),
    Case::new("references-into-a-long-list", 400_000, expansion::references_into_a_list).with_family("references"),
    Case::new("all-of-by-all-of", 4_000, expansion::nested_all_of).with_family("references"),
    Case::new("enum-of-many-values", 1 << 20, names::enum_values).with_family("enums"),
    Case::new("enum-values-of-one-name", 1 << 20, names::enum_values_of_one_name).with_family("enums"),
    Case::new("properties-of-one-name", 1 << 20, names::properties_of_one_name).with_family("enums"),
    Case::new("operations-of-one-name", 1 << 20, names::operations_of_one_name).with_family("enums"),
    Case::new("tools-by-the-thousand", 1 << 20, names::tools).with_family("tools"),
    Case::new("tools-that-define-one-name", 1 << 20, names::tools_of_one_definition).with_family("tools"),
    Case::new("tools-that-changed", 1 << 20, names::changed_tools).with_family("tools"),
    Case::new("union-of-references", 400_000, names::union_of_references).with_family("unions"),
    Case::new("union-with-a-discriminator", 400_000, names::union_with_a_discriminator).with_family("unions"),
    Case::new("union-of-unions", 20_000, names::union_of_unions).with_family("unions"),
    Case::new("union-in-many-unions", 400_000, names::union_in_many_unions).with_family("unions"),
    Case::new("typescript-of-names-that-nothing-describes", 400_000, typescript::required).with_family("typescript"),
    Case::new("typescript-of-names-described-together", 1 << 20, typescript::required_of_others)
        .with_family("typescript"),
    Case::new("typescript-of-properties-described-twice", 200_000, typescript::required_in_required)
        .with_family("typescript"),
    Case::new("typescript-of-references-into-a-definition", 400_000, typescript::references_into_a_definition)
        .with_family("typescript"),
    Case::new("typescript-of-a-discriminator", 1 << 20, typescript::mapping).with_family("typescript"),
    Case::new("typescript-of-a-discriminator-of-one-schema", 1 << 20, typescript::mapping_to_one)
        .with_family("typescript"),
    Case::new("typescript-of-definitions-of-one-name", 1 << 20, typescript::names).with_family("typescript"),
    Case::new("headers-by-the-thousand", 1 << 20, names::headers).with_family("headers"),
    Case::new("chain-of-all-of", 40_000, nesting::chain_of_all_of),
    Case::new("chain-of-nullable", 40_000, nesting::chain_of_nullable),
    Case::new("chain-of-any-of", 40_000, nesting::chain_of_any_of),
    Case::new("chain-below-a-switch", 40_000, nesting::chain_below_a_switch),
    Case::new("chain-of-references", 40_000, nesting::chain_of_references),
    Case::new("chain-of-arrays", 40_000, nesting::chain_of_arrays),
    Case::new("chain-of-objects", 40_000, nesting::chain_of_objects),
    Case::new("document-with-a-deep-schema", 100_000, nesting::deep_schema),
    Case::new("tools-with-a-deep-schema", 100_000, nesting::deep_tool),
    Case::new("event-that-is-deep", 100_000, nesting::deep_event),
    Case::new("line-that-is-deep", 100_000, nesting::deep_line),
    Case::new("response-that-is-deep", 100_000, nesting::deep_response),
    Case::new("faults-by-the-thousand", 1 << 20, reports::faults).with_family("diagnostics"),
    Case::new("faults-below-a-long-path", 1 << 20, reports::below_a_long_path).with_family("diagnostics"),
    Case::new("faults-in-one-line", 1 << 20, reports::in_one_line).with_family("diagnostics"),
    Case::new("faults-of-generated-types", 1 << 20, reports::of_types).with_family("diagnostics"),
    Case::new("text-that-commands-a-terminal", 1 << 10, reports::commands),
    Case::new("references-that-lead-to-other-hosts", 1 << 10, remote::other_hosts),
    Case::new("references-that-lead-nowhere", 100_000, remote::nowhere),
    Case::new("references-to-large-documents", 64, remote::large),
];

/// A document of nothing but opened lists.
fn nested(size: usize) -> Outcome {
    match ops_runtime::openapi::from_openapi(&"[".repeat(size), HttpConfig::new()) {
        Err(error) => Ok(error.to_string()),
        Ok(_) => Err("was read".to_owned()),
    }
}

/// What was made of a document.
struct Made {
    api: Api,
    /// Of reading and of generating.
    diagnostics: Vec<Diagnostic>,
    /// The generated module.
    source: String,
}

impl Made {
    /// How much there is, in a line.
    fn told(&self) -> String {
        let shown: usize = self.diagnostics.iter().map(|diagnostic| diagnostic.to_string().len()).sum();
        let operations = self.api.operations.len();
        let kilobytes = (self.source.len() / 1024, shown / 1024);
        let count = self.diagnostics.len();
        format!("{operations} operations, {} KB of source, {count} diagnostics of {} KB", kilobytes.0, kilobytes.1)
    }

    /// The same, if the diagnostics are few and short.
    fn bounded(&self) -> Outcome {
        let held: usize = self.diagnostics.iter().map(|d| d.message.len() + d.pointer.len()).sum();
        if self.diagnostics.len() > 6_000 || held > 8 << 20 {
            return Err(format!("{} bytes of diagnostics: {}", held, self.told()));
        }
        Ok(self.told())
    }
}

/// Reads a document and generates from it.
fn made(text: String) -> Result<Made, String> {
    let source = BTreeMap::from([("document.yaml".to_owned(), text)]);
    let (api, mut diagnostics) =
        openapi::load("document.yaml", &source, &ReadOptions::new()).map_err(|error| error.to_string())?;
    let mut generated = Generator::new().generate(&api);
    diagnostics.append(&mut generated.diagnostics);
    Ok(Made { api, diagnostics, source: generated.source })
}

/// Reads a list of tools and generates from it.
fn made_of_tools(text: String) -> Result<Made, String> {
    let source = BTreeMap::from([("tools.json".to_owned(), text)]);
    let (api, mut diagnostics) =
        mcp::load("tools.json", &source, &mcp::ReadOptions::new()).map_err(|error| error.to_string())?;
    let mut generated = Generator::new().generate(&api);
    diagnostics.append(&mut generated.diagnostics);
    Ok(Made { api, diagnostics, source: generated.source })
}

/// A document with these paths and components, each the inside of a JSON object.
fn document(paths: &str, components: &str) -> String {
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"t","version":"1"}},"paths":{{{paths}}},"components":{{{components}}}}}"#
    )
}

/// A path with a `get` that gives a schema.
fn gives(path: &str, schema: &str) -> String {
    format!(
        r#""/{path}":{{"get":{{"operationId":"{path}","responses":{{"200":{{"description":"","content":{{"application/json":{{"schema":{schema}}}}}}}}}}}}}"#
    )
}

/// `count` items made by number, joined by commas.
fn joined(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}
