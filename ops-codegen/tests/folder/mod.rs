//! Tests of the command `ops`: a folder for each, and an API to put there.

// Each program uses its part.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// An API with three operations, as a document.
pub(crate) const SHOP: &str = r##"openapi: 3.1.0
info: { title: Pet shop, version: 1.0.0 }
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      parameters:
        - { name: petId, in: path, required: true, schema: { type: integer } }
        - { name: limit, in: query, schema: { type: integer } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /pets:
    post:
      operationId: addPet
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
      responses: { 200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } } }
  /ping:
    get: { operationId: ping, responses: { 204: { description: x } } }
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: integer }
        name: { type: string }
        tags: { type: object, additionalProperties: { type: string } }
        owner: { type: object, properties: { name: { type: string } } }
"##;

/// A folder of its own for a test, gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("folder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap()
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.0.join(file)).unwrap();
    }

    /// The exit status and what was printed to standard output and standard error.
    pub(crate) fn ops(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        let output = command.args(arguments).current_dir(&self.0).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Runs a command that fails with this status and says all of this.
    #[track_caller]
    pub(crate) fn fails(&self, status: i32, arguments: &[&str], says: &[&str]) -> String {
        let (found, stdout, stderr) = self.ops(arguments);
        assert_eq!(found, status, "{arguments:?}: {stdout}{stderr}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} does not say `{part}`: {stderr}");
        }
        stderr
    }

    #[track_caller]
    pub(crate) fn good(&self, arguments: &[&str]) -> (String, String) {
        let (status, stdout, stderr) = self.ops(arguments);
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        (stdout, stderr)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
