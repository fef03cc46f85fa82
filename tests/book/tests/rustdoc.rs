//! Every public module opens with what it is for and an example that runs, and the names that people come with are found.

use std::fs;
use std::path::Path;

use ops_tests_book::pages::root;
use syn::{Attribute, Expr, Item, Lit, Meta, Visibility};

/// The documentation of attributes; that of `cfg_attr` counts as well.
fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {
                if let Expr::Lit(lit) = &pair.value
                    && let Lit::Str(line) = &lit.lit
                {
                    text.push_str(&line.value());
                    text.push('\n');
                }
            }
            Meta::List(list) if list.path.is_ident("cfg_attr") => text.push_str(&list.tokens.to_string()),
            _ => {}
        }
    }
    text
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// Checks the modules of a file, whose own modules are in a folder; returns how many there are.
fn check(folder: &Path, file: &Path, name: &str, problems: &mut Vec<String>) -> usize {
    let parsed = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let mut count = 0;
    for item in &parsed.items {
        let Item::Mod(module) = item else { continue };
        if !matches!(module.vis, Visibility::Public(_)) || is_hidden(&module.attrs) {
            continue;
        }
        let own = format!("{name}::{}", module.ident);
        let mut text = documentation(&module.attrs);
        count += 1;
        if module.content.is_none() {
            let file = folder.join(format!("{}.rs", module.ident));
            text.push_str(&documentation(&syn::parse_file(&fs::read_to_string(&file).unwrap()).unwrap().attrs));
            count += check(&folder.join(module.ident.to_string()), &file, &own, problems);
        }
        if !text.contains("```") {
            problems.push(format!("{own} has no example"));
        }
    }
    count
}

#[test]
fn modules_have_examples() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for package in ["ops-runtime", "ops-codegen"] {
        let folder = root().join(package).join("src");
        count += check(&folder, &folder.join("lib.rs"), package, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 20, "{count} modules");
}

#[test]
fn known_names_are_aliases() {
    let aliases = [
        ("PendingRequestMap", "ops-runtime/src/call/remote.rs"),
        ("FromOpenAPI", "ops-runtime/src/http/import.rs"),
        ("FromSchema", "ops-runtime/src/model/schema.rs"),
        ("createMCPClient", "ops-runtime/src/mcp/client.rs"),
        ("buildEnv", "ops-runtime/src/run/caller.rs"),
        ("scanOperations", "ops-runtime/src/expand/discover.rs"),
        ("FastMCP", "ops-runtime/src/mcp/server.rs"),
    ];
    let names = fs::read_to_string(root().join("docs/src/from/index.md")).unwrap();
    for (name, file) in aliases {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&format!("#[doc(alias = \"{name}\")]")), "{file} does not have the alias {name}");
        assert!(names.contains(&format!("`{name}`")), "docs/src/from/index.md does not tell where {name} is");
    }
}
