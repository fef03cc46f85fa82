//! Commands whose reader goes away, as `| head -1` does: the work is done, and its status is told.

mod folder;

use std::process::{Command, Stdio};

use folder::{Folder, SHOP};

/// Runs a command with a closed standard output, and gives its exit status and its standard error.
fn unread(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(arguments).current_dir(&folder.0).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_comparison_has_its_verdict() {
    let folder = Folder::new("pipe-diff");
    folder.write("old.yaml", SHOP);
    folder.write("new.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    for json in [&[][..], &["--json"]] {
        let (status, told) = unread(&folder, &[&["diff", "old.yaml", "new.yaml"], json].concat());
        assert!(status == 1 && told.contains("breaks callers"), "{status}: {told}");
    }
    assert_eq!(unread(&folder, &["diff", "old.yaml", "old.yaml"]).0, 0);
    // What could not be read is told, and decides.
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/bad.yaml", "a: [");
    for command in [&["inspect", "apis"][..], &["generate", "apis", "-o", "-"]] {
        let (status, told) = unread(&folder, command);
        assert!(status == 3 && told.contains("apis/bad.yaml"), "{command:?}: {status}: {told}");
    }
}

#[test]
fn all_documents_are_updated() {
    let folder = Folder::new("pipe-update");
    for name in ["a", "b", "c"] {
        folder.write(&format!("from/{name}.yaml"), SHOP);
        folder.good(&["add", &format!("from/{name}.yaml")]);
        folder.write(&format!("from/{name}.yaml"), &SHOP.replace("required: [id, name]", "required: [id]"));
    }
    let (status, told) = unread(&folder, &["update", "--check"]);
    assert!(status == 1 && told.contains("run the command without `--check`"), "{status}: {told}");
    let (status, told) = unread(&folder, &["update"]);
    assert_eq!(status, 0, "{told}");
    for name in ["a", "b", "c"] {
        assert_eq!(folder.read(&format!("{name}.yaml")), folder.read(&format!("from/{name}.yaml")), "{told}");
    }
    folder.good(&["update", "--check"]);
}

#[test]
fn a_snapshot_is_compared() {
    let folder = Folder::new("pipe-snapshot");
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    folder.write("old.json", r#"{"tools":[{"name":"treble","inputSchema":{"type":"object"}}]}"#);
    let server = ["--", env!("CARGO_BIN_EXE_ops"), "serve", "maths.json", "--mock", "--mcp", "stdio", "--tools", "all"];
    let check = [&["snapshot", "--check", "-o", "old.json"][..], &server].concat();
    let (status, told) = unread(&folder, &check);
    assert!(status == 1 && told.contains("break callers"), "{status}: {told}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_comparison_that_cannot_be_written_has_no_verdict() {
    let folder = Folder::new("pipe-full");
    folder.write("old.yaml", SHOP);
    folder.write("new.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    let output = command.args(["diff", "old.yaml", "new.yaml"]).current_dir(&folder.0).stdout(full).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("the output cannot be written"), "{told}");
}
