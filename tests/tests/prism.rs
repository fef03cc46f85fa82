//! A mock server that validates our requests against the document accepts every one of them.
//!
//! The server is Prism, from npm at the version of `tests/peers`. Reads our own document, and `petstore.yaml` and
//! `museum.yaml` of the directory in `OPS_SPECS`, or the smallest in their place. The command `tests/wire` does the same for
//! any directory.
#![allow(clippy::unwrap_used)]

use ops_tests::{corpus, wire};

#[tokio::test]
async fn prism_accepts_the_requests_of_every_operation() {
    let mut paths = vec![corpus::root().join("tests/fixtures/openapi/petshop.yaml")];
    if std::env::var_os("OPS_SPECS").is_some() {
        let all = corpus::files(&corpus::directory("OPS_SPECS", "openapi"), &["json", "yaml", "yml"]);
        let chosen = corpus::choose(&["petstore.yaml", "museum.yaml"], &all, corpus::holds_document).unwrap();
        assert!(!chosen.is_empty(), "there are no documents");
        paths.extend(chosen);
    }
    for path in paths {
        let report = wire::exchange(&path).await;
        let (accepted, sent) = (report.accepted, report.sent.len());
        println!("{}: {accepted} of {sent} operations accepted", path.display());
        assert!(report.failure.is_none(), "{}: {report:#?}", path.display());
        if !corpus::is_known(&path) {
            // `tests/wire` has the bounds for documents that are not known.
            println!("{report:#?}");
            continue;
        }
        assert!(report.not_run.is_none() && sent > 0, "{}: {report:#?}", path.display());
        assert!(report.complaints.is_empty() && accepted == sent, "{}: {report:#?}", path.display());
        assert!(report.unjudged.is_empty(), "{:#?}", report.unjudged);
    }
}
