//! Tells the test which compiler it is built by: the messages in `cases` are those of one.

use std::process::Command;

/// The compiler whose messages are in `cases`.
const RUSTC: &str = "rustc 1.95.";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(another_compiler)");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !version.starts_with(RUSTC) {
        println!("cargo::rustc-cfg=another_compiler");
    }
}
