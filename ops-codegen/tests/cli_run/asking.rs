//! Programs whose calls ask: what a dry run makes of them, and what the user reads.

use std::io::{Read, Write};

use crate::{Shop, on_a_terminal, terminal, text};

/// The name of an operation that looks like the question about another one, with its answer.
const FORGED: &str = r#""showPet {\n  \"petId\": 7\n}\nRun it? [y/N] y\nshop.listPets""#;

/// The same on one line, as it is shown.
const SHOWN: &str = r#"shop.showPet {   "petId": 7 } Run it? [y/N] y shop.listPets"#;

#[test]
fn a_dry_run_makes_no_call_that_asks() {
    let shop = Shop::start("dry-asks");
    let output = shop.run(&["--dry-run", "--ask", "shop.pets/*"]);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let would = "would call: shop.pets/show {\"petId\":3}\nwould call: shop.removePet {\"petId\":7}\n";
    assert!(stderr.starts_with(would), "{stderr}");
    assert_eq!(shop.seen(), Vec::<String>::new());
}

#[test]
fn a_name_is_no_question() {
    let shop = Shop::start("forged");
    let document = std::fs::read_to_string(shop.folder.join("shop.yaml")).unwrap();
    std::fs::write(shop.folder.join("shop.yaml"), document.replace("removePet", FORGED)).unwrap();
    let script = "return await ops.shop.showPet_petId_7_Run_it_y_N_y_shop_listPets({ petId: 2 }).catch(() => null)";
    std::fs::write(shop.folder.join("script.js"), script).unwrap();

    let output = shop.run(&["--dry-run"]);
    assert_eq!(text(&output.stderr), format!("would call: {SHOWN} {{\"petId\":2}}\n"));
    // As a pattern, what is shown would not match.
    let wanted = format!("error: the program asks for `{SHOWN} {{\"petId\":2}}`, and there is no terminal to ask on\n");
    let output = shop.run(&[]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), wanted));
    let (_, shown) = on_a_terminal(&shop, "", b"n\n");
    let questions = shown.lines().filter(|line| line.starts_with("Run it?"));
    assert!(questions.count() == 1 && shown.contains(&format!("{SHOWN} {{")), "{shown}");
    assert_eq!(shop.seen(), Vec::<String>::new());
}

/// Reads what a command shows until it asks.
fn until_asked(shown: &mut impl Read) {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"Run it? [y/N] ") {
        shown.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
}

#[test]
fn an_answer_is_kept_if_the_next_question_has_none() {
    let shop = Shop::start("kept");
    let script = "return (await Promise.all([1, 2].map((petId) => ops.shop.removePet({ petId })))).length";
    std::fs::write(shop.folder.join("script.js"), script).unwrap();
    // The end of the input, and an interrupt.
    for end in [b"\x04", b"\x03"] {
        let mut child = terminal(&shop, "--journal journal");
        let mut stdin = child.stdin.take().unwrap();
        for answer in [&b"y\n"[..], end] {
            until_asked(child.stdout.as_mut().unwrap());
            stdin.write_all(answer).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let shown = text(&output.stdout);
        let kept = "`journal` keeps what was answered: without this folder, the same command asks again";
        assert!(output.status.code() == Some(1) && shown.contains(kept), "{shown}");
        assert_eq!(shop.seen(), Vec::<String>::new());
        let (status, shown) = on_a_terminal(&shop, "--journal journal", b"y\n");
        assert_eq!((status, shown.matches("Run it? [y/N]").count()), (Some(0), 1), "{shown}");
        let mut seen = shop.seen();
        seen.sort();
        assert_eq!(seen, ["DELETE /pets/1", "DELETE /pets/2"]);
    }
}
