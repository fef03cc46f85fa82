//! Tells `include_operations!` which modules there are, so that it can name them for any other name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The modules of this process: a build script may run several builders, and a variable has one value.
static MODULES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// How many modules the error of `include_operations!` lists.
const LISTED: usize = 30;

/// Prints cargo's lines for the modules among these files that `include_operations!` can include.
pub(super) fn include(written: &[PathBuf]) {
    let Some(out_dir) = std::env::var_os("OUT_DIR") else { return };
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let own = modules_in(Path::new(&out_dir), written);
    if own.is_empty() {
        return;
    }
    println!("cargo:rustc-check-cfg=cfg(ops_modules)");
    println!("cargo:rustc-check-cfg=cfg(ops_module, values(any()))");
    println!("cargo:rustc-cfg=ops_modules");
    own.iter().for_each(|name| println!("cargo:rustc-cfg=ops_module=\"{name}\""));
    modules.extend(own);
    println!("cargo:rustc-env=OPS_MODULES={}", list(&modules));
}

/// The names of the modules in a folder. A namespace has letters, digits, `_` and `-` only, which need no quoting.
fn modules_in(folder: &Path, written: &[PathBuf]) -> Vec<String> {
    let is_module = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    let here = written.iter().filter(|path| path.parent() == Some(folder)).filter(is_module);
    here.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn list(modules: &BTreeSet<String>) -> String {
    let mut names: Vec<String> = modules.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    if let Some(more) = modules.len().checked_sub(LISTED).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_the_folder_are_listed() {
        let written = ["out/a.rs", "out/a.others.json", "out/in/b.rs", "src/c.rs", "out/d-é.rs"].map(PathBuf::from);
        assert_eq!(modules_in(Path::new("out"), &written), ["a", "d-é"]);
        let of = |names: &[&str]| list(&names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(of(&["a"]), "`a`");
        assert_eq!(of(&["a", "c", "b"]), "`a`, `b` and `c`");
        let many: Vec<String> = (0..LISTED + 2).map(|at| format!("m{at:02}")).collect();
        assert!(of(&many.iter().map(String::as_str).collect::<Vec<_>>()).ends_with(", `m29` and 2 more"));
    }
}
