//! The example `streaming` prints what its server counted.

use std::process::Command;

use ops_tests::program::built;

#[test]
fn it_uploads_downloads_and_subscribes() {
    let output = Command::new(built("streaming")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let added = r#"fileName: Some("tape.wav"), contentType: Some("audio/wav"), bytes: 300000 }"#;
    assert!(text.lines().next().unwrap().ends_with(added), "{text}");
    let rest: Vec<_> = text.lines().skip(1).collect();
    let expected = [
        "replaced: 400000 bytes",
        r#"downloading: Some("audio/wav"), streamed: true"#,
        "saved: 400000 bytes",
        "heard: good at 0.5",
        "heard: evening at 0.9",
        "heard: 2 words in all",
        "journal: added 300000 bytes",
        "journal: replaced 400000 bytes",
        "journal: downloaded 400000 bytes",
    ];
    assert_eq!(rest, expected);
}
