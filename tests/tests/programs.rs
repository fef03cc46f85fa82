//! The programs of `docs/programs.md`: how long they are, and that its tables say so.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most lines that one of ours may have.
const MOST: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The lines of a file that are neither blank nor a comment.
fn lines(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Fails if a program is not formatted as ours are: only then can lines be compared.
fn check_format(path: &Path) {
    // From standard input, since a module in another file is generated.
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--check", "--edition", "2024", "--config-path"]).arg(root()).stdin(File::open(path).unwrap());
    let output = rustfmt.stderr(Stdio::inherit()).output().unwrap();
    let difference = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && difference.is_empty(), "{}: {difference}", path.display());
}

#[test]
fn the_tables_are_true() {
    let document = fs::read_to_string(root().join("docs/programs.md")).unwrap();
    for name in ["payments", "llm", "contacts"] {
        let others = root().join("docs/programs");
        let programs = [
            root().join(format!("examples/{name}/src/program.rs")),
            others.join(format!("progenitor/{name}.rs")),
            others.join(format!("openapi-to-rust/{name}.rs")),
        ];
        programs.iter().for_each(|path| check_format(path));
        let [ours, progenitor, openapi_to_rust] = programs.map(|path| lines(&path));
        assert!(ours <= MOST, "{name} has {ours} lines");
        let build = lines(&root().join(format!("examples/{name}/build.rs")));
        let configuration = lines(&others.join(format!("openapi-to-rust/{name}.toml")));
        let both = [ours + build, progenitor, openapi_to_rust + configuration];
        assert!(ours < progenitor && ours <= openapi_to_rust && both[0] < both[1] && both[0] < both[2], "{name}");
        for [a, b, c] in [[ours, progenitor, openapi_to_rust], both] {
            let row = format!("| `{name}` | {a} | {b} | {c} |");
            assert!(document.contains(&row), "docs/programs.md does not say: {row}");
        }
    }
}
