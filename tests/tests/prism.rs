//! A mock server that validates our requests against the document accepts every one of them.
//!
//! The server is Prism, from npm at the version of `tests/peers`. Reads `petstore.yaml` and `museum.yaml` of the
//! directory in `OPS_SPECS`; unset, our own documents. The command `tests/wire` does the same for any directory.

use std::path::PathBuf;

use ops_tests::{corpus, wire};

#[tokio::test]
async fn prism_accepts_the_requests_of_every_operation() {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let named: Vec<PathBuf> = ["petstore.yaml", "museum.yaml"].iter().map(|name| directory.join(name)).collect();
    let documents = if named.iter().all(|path| path.exists()) { named } else { vec![directory.join("petshop.yaml")] };
    for path in documents {
        let report = wire::exchange(&path).await;
        println!("{}: {} of {} operations accepted", path.display(), report.accepted, report.operations);
        assert!(report.not_run.is_none() && report.operations > 0, "{}: {:?}", path.display(), report.not_run);
        assert!(report.complaints.is_empty(), "{:#?}", report.complaints);
    }
}
