//! What is read from documents, as JSON and back.
#![cfg(feature = "openapi")]

use std::path::Path;

use ops_runtime::binding::SecurityKind;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::OperationSpec;
use ops_runtime::wire;
use serde_json::Value;

#[test]
fn specs_survive_their_json() {
    let schema: Value = serde_json::from_str(wire::OPERATION_SPEC_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let (mut fields, mut variables, mut bodies, mut variants, mut events, mut kinds) = (0, 0, 0, 0, 0, 0);
    for name in ["petshop.yaml", "tracker.json", "swagger.yaml", "latest.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi").join(name);
        let (api, _) = openapi::load(&path.to_string_lossy(), &FileSource::new(), &ReadOptions::new()).unwrap();
        for operation in &api.operations {
            let json = serde_json::to_value(operation).unwrap();
            if let Err(error) = validator.validate(&json) {
                panic!("{}: {error} at {}", operation.id, error.instance_path());
            }
            let back: OperationSpec = serde_json::from_value(json).unwrap();
            assert_eq!(back.binding, operation.binding, "{}", operation.id);
            let http = back.http().unwrap();
            variables += http.server_variables.len();
            fields += http.bodies.iter().map(|body| body.fields.len()).sum::<usize>();
            bodies += http.bodies.iter().filter(|body| body.variant.is_some()).count();
            variants += http.responses.iter().filter(|response| response.variant.is_some()).count();
            events += http.responses.iter().filter(|response| response.whole_event).count();
            let schemes = http.security.iter().flat_map(|way| way.schemes.iter());
            kinds +=
                schemes.filter(|scheme| matches!(scheme.kind, SecurityKind::OAuth2 { token_url: Some(_) })).count();
        }
    }
    // The documents have some of everything.
    assert!([fields, variables, bodies, variants, events, kinds].iter().all(|count| *count > 0));
}
