//! The compiler of TypeScript, in `tests/peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::corpus;

/// What the compiler is told, in the folder of the files.
const SETTINGS: &str = r#"{
  "compilerOptions": {
    "strict": true, "noEmit": true, "skipDefaultLibCheck": true, "types": [], "target": "es2022", "module": "esnext",
    "moduleResolution": "bundler", "allowImportingTsExtensions": true
  },
  "include": ["*.ts"]
}
"#;

/// The compiler, which checks a folder.
#[derive(Debug)]
pub struct Compiler(PathBuf);

/// What the compiler does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The file, and the line in it.
    pub file: String,
    /// See `file`.
    pub line: usize,
    /// The code and the message.
    pub message: String,
}

impl Compiler {
    /// The compiler that is installed.
    ///
    /// # Errors
    /// If it is not.
    pub fn installed() -> Result<Self, String> {
        let path = corpus::root().join("tests/peers/node_modules/.bin/tsc");
        if path.exists() { Ok(Self(path)) } else { Err("there is no TypeScript: run tests/peers/install".to_owned()) }
    }

    /// Checks the files of a folder, and returns what is wrong with them.
    ///
    /// # Errors
    /// If the compiler can't be run, or says something that can't be read.
    pub fn check(&self, folder: &Path) -> Result<Vec<Complaint>, String> {
        std::fs::write(folder.join("tsconfig.json"), SETTINGS).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.0);
        command.args(["--project", "tsconfig.json", "--pretty", "false"]).current_dir(folder);
        let output = command.output().map_err(|error| format!("{}: {error}", self.0.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let complaints: Vec<Complaint> = text.lines().filter_map(complaint).collect();
        if output.status.success() == complaints.is_empty() {
            return Ok(complaints);
        }
        Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// Reads a line such as `a.ts(3,5): error TS2322: Type ...`.
fn complaint(line: &str) -> Option<Complaint> {
    let (place, message) = line.split_once(": error ")?;
    let (file, position) = place.rsplit_once('(')?;
    let line = position.split(',').next()?.parse().ok()?;
    Some(Complaint { file: file.to_owned(), line, message: message.to_owned() })
}
