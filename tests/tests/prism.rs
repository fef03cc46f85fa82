//! A mock server that validates our requests against the document accepts every one of them.
//!
//! The server is Prism, from npm at the version of `tests/peers`. Reads our own document, and `petstore.yaml` and
//! `museum.yaml` of the directory in `OPS_SPECS`, if they are there. The command `tests/wire` does the same for any
//! directory.

use std::path::PathBuf;

use ops_tests::{corpus, wire};

#[tokio::test]
async fn prism_accepts_the_requests_of_every_operation() {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let named = ["petstore.yaml", "museum.yaml"].iter().map(|name| directory.join(name)).filter(|path| path.exists());
    let own = corpus::root().join("tests/fixtures/openapi/petshop.yaml");
    for path in named.chain([own]).collect::<Vec<PathBuf>>() {
        let report = wire::exchange(&path).await;
        let (accepted, sent) = (report.accepted, report.sent.len());
        println!("{}: {accepted} of {sent} operations accepted", path.display());
        assert!(report.not_run.is_none() && report.failure.is_none() && sent > 0, "{}: {report:#?}", path.display());
        assert!(report.complaints.is_empty() && accepted == sent, "{}: {report:#?}", path.display());
        assert!(report.unjudged.is_empty(), "{:#?}", report.unjudged);
    }
}
