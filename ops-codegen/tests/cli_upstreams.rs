//! What `ops serve` reads, and what it refuses to read: each test has its folder, and runs the program.

mod folder;

use folder::{Folder, SHOP};

#[test]
fn options_for_a_document_need_one() {
    let folder = Folder::new("for-one");
    folder.write("shop.yaml", SHOP);
    folder.write("mcp.json", r#"{ "mcpServers": { "x": { "command": "true" } } }"#);
    folder.write("gateway.toml", "[apis.shop]\nspec = 'shop.yaml'\nbase-url = 'http://x.test'\n");
    let options = [
        ["--base-url", "http://127.0.0.1:9"],
        ["--header", "X-Key: k"],
        ["--bearer-env", "NOT_SET"],
        ["--bearer-file", "shop.yaml"],
        ["--namespace", "till"],
    ];
    for option in options {
        for (sources, says) in [
            (&["--config", "gateway.toml"][..], "the command line names none: a file for `--config` has those"),
            (&["mcp.json"], "the command line names none"),
            (&["mcp.json", "--config", "gateway.toml", "--print-config"], "the command line names none"),
            (&["shop.yaml", "more/shop.yaml"], "there are several"),
        ] {
            folder.fails(2, &[&["serve"], sources, &option].concat(), &["are for one document, and", says]);
        }
    }
    // One document beside others that are none.
    let (_, told) = folder.good(&["serve", "shop.yaml", "--config", "gateway.toml", "--namespace", "till"]);
    assert!(told.contains("6 operations"), "{told}");
}
