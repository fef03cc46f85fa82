//! What a crate gets that includes generated modules: those that its build script made, and for any other name a list of
//! them.

use std::fs;
use std::process::Output;

use ops_tests::corpus::root;
use ops_tests::folder::{Folder, target};
use ops_tests::program::cargo;

/// A build script with several builders, and a module that something else writes.
const BUILD: &str = r#"fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::var("OUT_DIR")?;
    let shop = || ops_codegen::Builder::new().openapi("shop.yaml");
    if std::env::var_os("CARGO_FEATURE_BUILDERS").is_some() {
        shop().build()?;
        shop().with_namespace("pets").only_used().build()?;
        // Not where modules are included from.
        let apart = std::path::Path::new(&out).with_file_name("apart");
        shop().with_namespace("apart").with_out_dir(apart).build()?;
    }
    std::fs::write(format!("{out}/own.rs"), "pub fn own() {}")?;
    Ok(())
}
"#;

const LIB: &str = r#"//! Includes modules.
#![deny(warnings)]

macro_rules! module {
    ($name:ident, $namespace:literal) => {
        /// A module by a name that another macro hands on.
        pub mod $name {
            ops_runtime::include_operations!($namespace);
        }
    };
}
"#;

fn check(name: &str, features: &str, modules: &str) -> Output {
    check_with(name, Some(BUILD), features, modules)
}

/// Checks a crate with this build script, or without one.
fn check_with(name: &str, script: Option<&str>, features: &str, modules: &str) -> Output {
    let folder = Folder::new(root(), &format!("included/{name}")).unwrap();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        ops_codegen::write_if_changed(&folder.join(path), text).unwrap();
    };
    let (runtime, codegen) = (root().join("ops-runtime"), root().join("ops-codegen"));
    let manifest = format!(
        "[package]\nname = \"included-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[features]\nbuilders = []\n\n\
         [dependencies]\nops-runtime = {{ path = {runtime:?}, default-features = false }}\n\n\
         [build-dependencies]\nops-codegen = {{ path = {codegen:?} }}\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n[profile.dev.package.\"*\"]\ndebug = false\n\n[workspace]\n"
    );
    write("Cargo.toml", &manifest);
    if let Some(script) = script {
        write("build.rs", script);
    }
    write("shop.yaml", &fs::read_to_string(root().join("examples/quickstart/shop.yaml")).unwrap());
    write("src/lib.rs", &format!("{LIB}{modules}"));
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    cargo()
        .args(["check", "--quiet", "--offline", "--features", features, "--target-dir"])
        .arg(target(root()))
        .current_dir(&*folder)
        // Of this test's own package.
        .env_remove("OUT_DIR")
        .output()
        .unwrap()
}

fn errors(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.starts_with("error") || line.starts_with("warning")).map(str::to_owned).collect()
}

#[test]
fn the_modules_of_all_builders_are_there() {
    let modules = "module!(shop, \"shop\");\nmodule!(pets, \"pets\");\n/// As a reader of the manual writes it.\n\
                   pub mod plain { ops_runtime::include_operations!(\"shop\"); }\n";
    let output = check("all", "builders", modules);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The second run of `only_used` makes nothing anew, and says the same.
    let output = check("all", "builders", &format!("{modules}/// Of no module.\npub fn more() {{}}\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn for_another_name_the_error_lists_the_modules() {
    for name in ["shpo", "apart"] {
        let output = check("mistaken", "builders", &format!("module!(shop, \"{name}\");\n"));
        let errors = errors(&output);
        let told = format!("error: there is no module `{name}`: `build.rs` generated `pets` and `shop`");
        assert_eq!(errors[0], told, "{errors:#?}");
        assert!(errors.iter().all(|line| line.starts_with("error")), "{errors:#?}");
    }
}

#[test]
fn without_a_build_script_the_error_says_so() {
    let output = check_with("scriptless", None, "", "module!(shop, \"shop\");\n");
    let errors = errors(&output);
    assert!(errors[0].starts_with("error: the package has no `build.rs`"), "{errors:#?}");
}

#[test]
fn what_something_else_wrote_is_included_as_it_is() {
    let output = check("own", "", "module!(own, \"own\");\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = check("none", "", "module!(own, \"none\");\n");
    let errors = errors(&output);
    assert!(errors[0].contains("couldn't read") && errors[0].contains("none.rs"), "{errors:#?}");
}
