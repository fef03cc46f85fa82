use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

#[test]
fn a_summary_is_the_first_paragraph() {
    let long = "word ".repeat(30);
    for (text, wanted) in [
        ("A pet.\n\nMore.", "A pet.".to_owned()),
        ("\nTwo\nlines of [it]\n- no item", "Two lines of \\[it\\]".to_owned()),
        ("```json\n{}\n```", String::new()),
        ("- an item", String::new()),
        ("# A heading", String::new()),
        (&format!("One sentence. {long}"), "One sentence.".to_owned()),
        (long.trim(), format!("{}…", "word ".repeat(22).trim())),
        // No code and no link is cut.
        (&format!("{}`a code of words` {long}", "word ".repeat(20)), format!("{}…", "word ".repeat(20).trim())),
        (
            &format!("{}[a link](https://example.com/a/b) {long}", "word ".repeat(20)),
            format!("{}…", "word ".repeat(20).trim()),
        ),
        ("", String::new()),
    ] {
        assert_eq!(paragraph_of(text), wanted, "{text:?}");
    }
    assert_eq!(paragraph_of(&"x".repeat(200)), format!("{}…", "x".repeat(WIDTH)));
}

#[test]
fn text_is_harmless() {
    let table: &[(&str, &[&str])] = &[
        ("A pet.", &["A pet."]),
        ("  indented\n    code", &["indented", "code"]),
        ("see [Pet] and <b>", &["see \\[Pet\\] and \\<b\\>"]),
        ("[docs](https://a.b/c) [x](y)", &["[docs](https://a.b/c) \\[x\\](y)"]),
        ("at https://a.b/c. Then", &["at <https://a.b/c>. Then"]),
        ("`[code]` and `open", &["`[code]` and \\`open"]),
        ("- one\ntwo\n  - three\n\nfour", &["- one", "  two", "  - three", "", "four"]),
        ("1. a\n   - b\n\n     c\n2. d", &["1. a", "   - b", "", "     c", "2. d"]),
        ("* a\n* b\n\n    code?", &["* a", "* b", "", "  code?"]),
        (
            "\u{1f468}\u{200d}\u{1f4bb} \u{26a0}\u{fe0f} a\u{200d}b",
            &["\u{1f468}\u{200d}\u{1f4bb} \u{26a0}\u{fe0f} aU+200Db"],
        ),
        ("```rust\nfn main() {}\n```\nend", &["```text", "fn main() {}", "```", "end"]),
        ("```\nopen [x]", &["```text", "open [x]", "```"]),
        ("a\u{202e}b\u{0}c", &["aU+202Eb c"]),
        ("\n\n", &[]),
        ("\\[x\\] \\", &["\\[x\\] \\\\"]),
        // What looks like an item, but goes on with the paragraph.
        ("Errors:\n404. none\n\n    Try again.", &["Errors:", "404\\. none", "", "Try again."]),
        ("a\n2. b\n   2. c\n\n       d", &["a", "2\\. b", "2\\. c", "", "d"]),
        ("1. a\n10. b\n\n3) c\n4) d", &["1. a", "10. b", "", "3) c", "4) d"]),
        ("Of\n2024. It has 1.5", &["Of", "2024\\. It has 1.5"]),
        // No paragraph that an item could go on with.
        (
            "1. Install:\n```\nnpm i\n```\n2. Run:\n3. Look",
            &["1. Install:", "```text", "npm i", "```", "2. Run:", "3. Look"],
        ),
        ("## Steps\n2. b\n#steps\n3. c", &["## Steps", "2. b", "   #steps", "3. c"]),
        ("#steps\n2. b\n####### a\n2. b", &["#steps", "2\\. b", "####### a", "2\\. b"]),
        ("---\n2. b\n\n___\n3. c\n-_-\n4. d", &["---", "2. b", "", "___", "3. c", "   -_-", "4. d"]),
        // A line across the page is no item, and makes no heading of the line before.
        ("a\n\n* * *\n\nb", &["a", "", "***", "", "b"]),
        ("- a\n- - -\n2. b\n  * **\n  c", &["- a", "***", "2. b", "***", "c"]),
        // No block begins in an item.
        ("- ~~~rust\ncode", &["- \\~~~rust", "  code"]),
        ("- - a\nb\n- 1. c\n* *", &["- \\- a", "  b", "- 1\\. c", "* \\*"]),
        ("- `a` b\n- **c** d\n- -1", &["- `a` b", "- **c** d", "- -1"]),
        ("![a](https://a.b/c.png)", &["\\![a](https://a.b/c.png)"]),
        // In a table, `|` ends a cell before code is looked for.
        ("`a|<b>`", &["`a|<b>`"]),
        ("|a|\n|-|\n|`b|<c>`|\n|`d\\|e`|", &["|a|", "|-|", "|\\`b|\\<c\\>\\`|", "|`d\\|e`|"]),
        ("`a|b`\n\n|a|\n|-|\n|`b|c`|\n  \n`a|b`", &["`a|b`", "", "|a|", "|-|", "|\\`b|c\\`|", "", "`a|b`"]),
    ];
    for (text, lines) in table {
        assert_eq!(markdown(text), *lines, "{text:?}");
    }
    assert!(markdown(&"line\n".repeat(1000)).len() <= LONGEST + 2);
    assert!(markdown(&format!("```\n{}", "line\n".repeat(1000))).ends_with(&["```".to_owned()]));
    assert!(markdown(&"word ".repeat(100)).iter().all(|line| line.len() <= WIDTH));
    // Code is not broken, so that it is one.
    let code = format!("```rust {}```", "word ".repeat(30));
    let before = "word ".repeat(22);
    assert_eq!(markdown(&format!("{before}{code} end")), [before.trim_end(), &code, "end"]);
}

/// All that blocks, code, links and HTML begin with.
const PARTS: &[&str] = &[
    "\n",
    "\n\n",
    "\n  ",
    "\n   ",
    "\n    ",
    "\n\n     ",
    "\n\n      ",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2. ",
    "100. ",
    "3) ",
    "123456789. ",
    "~~~",
    "~~~rust",
    "```",
    "```rust",
    "`",
    "``",
    "[Item]",
    "![p](https://a.b/c.png)",
    "[^1]: ",
    "[x]: https://a.b ",
    "<img src=x>",
    "<b>",
    "|",
    "| a | b |",
    "\n|---|---|\n",
    "\n|-|\n",
    "-|-",
    "\\",
    "\\|",
    "***",
    "- - -",
    "\n* * *",
    "---",
    "===",
    "# ",
    "> ",
    "!",
    "a",
    "words and more words ",
    "fn f() {} ",
    "&lt;",
    "_",
    "\t",
];

/// Rustdoc itself finds no test, no image, no unknown item and no HTML in documentation of such texts.
#[test]
fn nothing_becomes_more_than_text() {
    let texts = prop::collection::vec(prop::sample::select(PARTS), 1..32).prop_map(|parts| parts.concat());
    let mut runner = TestRunner::deterministic();
    let mut source = "#![deny(warnings)]\n".to_owned();
    for at in 0..1500 {
        let lines = markdown(&texts.new_tree(&mut runner).unwrap().current());
        lines.iter().for_each(|line| source.push_str(&format!("/// {line}\n")));
        source.push_str(&format!("pub struct S{at};\n"));
    }
    let folder = std::env::temp_dir().join(format!("ops-markdown-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("texts.rs"), source).unwrap();
    let rustdoc = |arguments: &[&str]| {
        let mut command = Command::new("rustdoc");
        let output =
            command.current_dir(&folder).args(["texts.rs", "--edition=2024"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tests = rustdoc(&["--test", "--test-args=--list"]);
    assert!(tests.trim_end().ends_with("0 tests, 0 benchmarks"), "{tests}");
    rustdoc(&["--out-dir=pages"]);
    for at in 0..1500 {
        let page = std::fs::read_to_string(folder.join(format!("pages/texts/struct.S{at}.html"))).unwrap();
        assert!(!page.contains("<img ") && !page.contains("<b>"), "{page}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
