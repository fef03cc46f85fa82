//! Programs that read streams.

use crate::{Shop, text};

/// A stream that is requested by `POST`, so that it may change something.
const RUNS: &str = "  /runs:
    post:
      operationId: startRun
      responses: { 200: { description: x, content: { text/event-stream: { schema: { type: integer } } } } }
";

#[test]
fn a_stream_that_may_change_something_is_a_change() {
    let shop = Shop::start("streams");
    let document = std::fs::read_to_string(shop.folder.join("shop.yaml")).unwrap();
    std::fs::write(shop.folder.join("shop.yaml"), document + RUNS).unwrap();
    std::fs::write(shop.folder.join("script.js"), "return await ops.shop.startRun()").unwrap();
    let output = shop.run(&["--dry-run"]);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "would call: shop.startRun {}\n");
    let items: Vec<i64> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(items.len(), 3);

    let output = shop.run(&[]);
    let wanted = "error: the program asks for `shop.startRun {}`, and there is no terminal to ask on: \
                  `--allow 'shop.startRun'` lets it run\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), wanted.to_owned()));
    assert!(shop.seen().is_empty());

    // The call is made once, although it fails, because the response is no stream.
    let failing = "await ops.shop.startRun().catch(() => null); throw new Error('later')";
    std::fs::write(shop.folder.join("script.js"), failing).unwrap();
    let changed = "note: in this run, the program called what changes something, and what was done stays done: `shop.startRun` (1)\n";
    for is_made in [true, false] {
        let output = shop.run(&["--journal", "journal", "--allow", "*"]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("later"), "{stderr}");
        assert_eq!(stderr.contains(changed), is_made, "{stderr}");
    }
    assert_eq!(shop.seen(), ["POST /runs"]);
}
