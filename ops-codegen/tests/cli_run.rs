//! `ops run`: programs in a shell, against a server that counts what it is asked.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::routing::any;

#[path = "cli_run/asking.rs"]
mod asking;
#[path = "cli_run/streams.rs"]
mod streams;

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Shop, version: 1.0.0 }
servers: [{ url: "http://ADDRESS" }]
paths:
  /pets/{petId}:
    get:
      operationId: pets/show
      parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
      responses: { 200: { description: x, content: { application/json: { schema: { type: object } } } } }
    delete:
      operationId: removePet
      parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
      responses: { 200: { description: x, content: { application/json: { schema: { type: object, required: [path], properties: { path: { type: string } } } } } } }
"#;

const SCRIPT: &str = "
const pet = await ops.shop.pets_show({ petId: input.petId });
console.log('found', pet.path);
const gone = await ops.shop.removePet({ petId: 7 });
return { pet, gone };
";

/// What is said of an input whose only member is misspelt.
const REFUSED: &str = "error: the input of `shop.removePet` is invalid: /petId: expected required property; `petid` is not in the input of \
                       `shop.removePet`: did you mean `petId`? [VALIDATION_ERROR], at line 1";

/// The path whose first request gets no response.
const SLOW: &str = "/pets/99";

type Seen = Arc<Mutex<Vec<String>>>;

/// A server, a document of it, and what it was asked.
struct Shop {
    folder: PathBuf,
    seen: Seen,
}

impl Shop {
    fn start(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Seen::default();
        let answer = |State(seen): State<Seen>, method: Method, uri: Uri| async move {
            let asked = format!("{method} {}", uri.path());
            let is_first = !seen.lock().unwrap().contains(&asked);
            seen.lock().unwrap().push(asked);
            if uri.path() == SLOW && is_first {
                std::future::pending::<()>().await;
            }
            axum::Json(serde_json::json!({ "path": uri.path() }))
        };
        let router = Router::new().fallback(any(answer)).with_state(seen.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        std::fs::write(folder.join("shop.yaml"), DOCUMENT.replace("ADDRESS", &address)).unwrap();
        std::fs::write(folder.join("script.js"), SCRIPT).unwrap();
        Self { folder, seen }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(["run", "script.js", "--spec", "shop.yaml", "--input", r#"{"petId":3}"#]).args(arguments);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_program_runs_its_queries_and_what_is_allowed() {
    let shop = Shop::start("allowed");
    let output = shop.run(&["--allow", "shop.remove*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value, serde_json::json!({ "pet": { "path": "/pets/3" }, "gone": { "path": "/pets/7" } }));
    assert_eq!(text(&output.stderr), "found /pets/3\n");
    assert_eq!(shop.seen(), ["GET /pets/3", "DELETE /pets/7"]);
}

#[test]
fn without_a_terminal_a_change_is_refused() {
    let shop = Shop::start("refused");
    let output = shop.run(&[]);
    let wanted = "error: the program asks for `shop.removePet {\"petId\":7}`, and there is no terminal to ask on: \
                  `--allow 'shop.removePet'` lets it run\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), format!("found /pets/3\n{wanted}")));
    assert_eq!(shop.seen(), ["GET /pets/3"]);

    // With a journal, the same command goes on when it may, and says so.
    let output = shop.run(&["--journal", "journal"]);
    let kept = "note: `journal` keeps the calls that were made, and what was answered: the same command goes on from there, and \
                without this folder it makes them again\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), format!("found /pets/3\n{kept}{wanted}")));
    let output = shop.run(&["--journal", "journal", "--allow", "*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(shop.seen(), ["GET /pets/3", "DELETE /pets/7"]);
    assert_eq!(std::fs::read_dir(shop.folder.join("journal")).unwrap().count(), 0, "it has ended");
}

#[cfg(target_os = "linux")]
#[test]
fn a_journal_stays_until_the_result_is_written() {
    let shop = Shop::start("full");
    let arguments = ["--journal", "journal", "--allow", "*"];
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = shop.command(&arguments).stdout(full).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.contains("the output cannot be written"), "{stderr}");
    assert!(stderr.contains("`journal` keeps the calls that were made"), "{stderr}");
    assert_eq!(shop.seen(), ["GET /pets/3", "DELETE /pets/7"]);
    // There is no place for it, but the calls were made.
    let output = shop.run(&arguments);
    assert!(output.status.success() && text(&output.stdout).contains("/pets/7"), "{}", text(&output.stderr));
    assert!(shop.seen().is_empty());
    assert_eq!(std::fs::read_dir(shop.folder.join("journal")).unwrap().count(), 0, "it has ended");
}

#[test]
fn a_journal_is_one_of_its_documents_and_servers() {
    let shop = Shop::start("place");
    assert_eq!(shop.run(&["--journal", "journal"]).status.code(), Some(1));
    assert_eq!(shop.seen(), ["GET /pets/3"]);
    let document = std::fs::read_to_string(shop.folder.join("shop.yaml")).unwrap();
    std::fs::write(shop.folder.join("other.yaml"), &document).unwrap();
    let elsewhere = document.replace("127.0.0.1", "localhost");
    for (document, other) in [
        (&document, &["--base-url", "http://localhost:9"][..]),
        (&document, &["--spec", "other.yaml"]),
        (&elsewhere, &[]),
    ] {
        std::fs::write(shop.folder.join("shop.yaml"), document).unwrap();
        let output = shop.run(&[&["--journal", "journal", "--allow", "*"], other].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("operations that lead elsewhere"), "{other:?}: {stderr}");
    }
    assert!(shop.seen().is_empty());
    std::fs::write(shop.folder.join("shop.yaml"), &document).unwrap();
    let output = shop.run(&["--journal", "journal", "--allow", "*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(shop.seen(), ["DELETE /pets/7"]);
}

#[test]
fn a_failed_run_says_what_it_has_changed() {
    let shop = Shop::start("changed");
    let failing = "await ops.shop.removePet({ petId: 7 }); await ops.shop.removePet({ petid: 8 });";
    std::fs::write(shop.folder.join("script.js"), failing).unwrap();
    let arguments = ["--journal", "journal", "--allow", "*"];
    let output = shop.run(&arguments);
    let stderr = text(&output.stderr);
    let changed = "note: in this run, the program called what changes something, and what was done stays done: \
                   `shop.removePet` (1)\n";
    assert!(output.status.code() == Some(1) && stderr.contains(changed), "{stderr}");
    assert_eq!(shop.seen(), ["DELETE /pets/7"]);

    // Another program does not go on from there, and is not told to make the call again.
    std::fs::write(shop.folder.join("script.js"), failing.replace("petid", "petId")).unwrap();
    let output = shop.run(&arguments);
    let stderr = text(&output.stderr);
    let kept = "note: `journal` has calls that may have changed something, and they stay made: `shop.removePet` (1)\n";
    assert!(output.status.code() == Some(1) && stderr.contains(kept), "{stderr}");
    assert!(stderr.contains("what was made stays made") && !stderr.contains("without it"), "{stderr}");
    assert!(shop.seen().is_empty());
}

#[test]
fn a_script_has_one_journal() {
    let shop = Shop::start("one");
    let failing = "await ops.shop.removePet({ petId: 7 }); throw new Error('later')";
    std::fs::write(shop.folder.join("script.js"), failing).unwrap();
    std::fs::create_dir(shop.folder.join("below")).unwrap();
    let whole = shop.folder.join("script.js");
    for (folder, script) in
        [(".", "script.js"), (".", "./script.js"), ("below", "../script.js"), (".", whole.to_str().unwrap())]
    {
        let (document, journal) = (shop.folder.join("shop.yaml"), shop.folder.join("journal"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(["run", script, "--allow", "*", "--spec"]).arg(document).arg("--journal").arg(journal);
        let output = command.current_dir(shop.folder.join(folder)).stdin(Stdio::null()).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("later"), "{script}: {stderr}");
    }
    assert_eq!(shop.seen(), ["DELETE /pets/7"]);
}

#[cfg(unix)]
#[test]
fn a_link_keeps_its_journal() {
    let shop = Shop::start("link");
    let failing = "await ops.shop.removePet({ petId: 7 }); throw new Error('later')";
    let (script, link) = (shop.folder.join("script.js"), shop.folder.join("link.js"));
    std::fs::rename(&script, shop.folder.join("new.js")).unwrap();
    std::fs::write(shop.folder.join("old.js"), failing).unwrap();
    for (target, says) in [("old.js", "later"), ("new.js", "they stay made: `shop.removePet` (1)\n")] {
        std::os::unix::fs::symlink(target, &link).unwrap();
        std::fs::rename(&link, &script).unwrap();
        let output = shop.run(&["--journal", "journal", "--allow", "*"]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(says), "{target}: {stderr}");
    }
    assert_eq!(shop.seen(), ["DELETE /pets/7"]);
}

/// A run that was begun by the path of its script goes on by a link to it. By any other path, a note says that it begins anew.
#[cfg(unix)]
#[test]
fn a_script_is_known_by_a_link_to_it() {
    let shop = Shop::start("known");
    let failing = "await ops.shop.removePet({ petId: 7 }); throw new Error('later')";
    for name in ["script.js", "own.js"] {
        std::fs::write(shop.folder.join(name), failing).unwrap();
    }
    std::os::unix::fs::symlink("script.js", shop.folder.join("link.js")).unwrap();
    let anew = |name: &str| {
        let path = std::fs::canonicalize(&shop.folder).unwrap().join(name);
        format!(
            "note: `journal` has no journal of `{}`, so the program makes every call. Journals of scripts at other paths: 1. If one is \
             of this script, which was moved or is named by a link, its calls are made again\n",
            path.display()
        )
    };
    for (script, note) in [("script.js", None), ("link.js", None), ("own.js", Some(anew("own.js"))), ("own.js", None)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(["run", script, "--spec", "shop.yaml", "--journal", "journal", "--allow", "*"]);
        let output = command.current_dir(&shop.folder).stdin(Stdio::null()).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("later"), "{script}: {stderr}");
        let found = stderr.lines().find(|line| line.contains("has no journal")).map(|line| format!("{line}\n"));
        assert_eq!(found, note, "{script}");
    }
    assert_eq!(shop.seen(), ["DELETE /pets/7", "DELETE /pets/7"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_what_it_has_changed_and_goes_on() {
    let shop = Shop::start("interrupted");
    let slow = "const gone = await ops.shop.removePet({ petId: 7 }); await ops.shop.pets_show({ petId: 99 }); return gone.path";
    std::fs::write(shop.folder.join("script.js"), slow).unwrap();
    let arguments = ["--journal", "journal", "--allow", "*"];
    let mut command = shop.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for left in (0..600).rev() {
        if shop.seen.lock().unwrap().len() == 2 {
            break;
        }
        assert!(left > 0, "it asks for nothing");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let kept = "note: `journal` keeps the calls that were made, and what was answered: the same command goes on from there, and \
                without this folder it makes them again\n";
    let changed = "note: in this run, the program called what changes something, and what was done stays done: `shop.removePet` (1)\n";
    let expected = format!("{kept}{changed}error: the run was interrupted\n");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected));
    let output = shop.run(&arguments);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "\"/pets/7\"\n".to_owned()));
    assert_eq!(shop.seen(), ["DELETE /pets/7", "GET /pets/99", "GET /pets/99"]);
}

#[test]
fn a_journal_that_keeps_nothing_is_not_praised() {
    let shop = Shop::start("nothing");
    let unusable = "error: `/dev/null/x` cannot be the folder of a journal: ";
    let output = shop.run(&["--journal", "/dev/null/x", "--allow", "*"]);
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.starts_with(unusable), "{stderr}");
    // Neither a call that was made nor an answer.
    std::fs::write(shop.folder.join("script.js"), "throw new Error('first')").unwrap();
    let stderr = text(&shop.run(&["--journal", "journal"]).stderr);
    assert!(stderr.contains("first") && !stderr.contains("note: "), "{stderr}");
    assert!(shop.seen().is_empty());
}

#[test]
fn answers_that_do_not_fit_are_reported() {
    let shop = Shop::start("misfit");
    let document = std::fs::read_to_string(shop.folder.join("shop.yaml")).unwrap();
    let other = "schema: { type: object, properties: { path: { type: integer } } }";
    std::fs::write(shop.folder.join("shop.yaml"), document.replacen("schema: { type: object }", other, 1)).unwrap();
    let output = shop.run(&["--allow", "*"]);
    let warning = "warning: an answer of `shop.pets/show`: /path was string, not integer\n";
    assert!(output.status.success() && text(&output.stderr).starts_with(warning), "{}", text(&output.stderr));

    // Of many, the first ones are shown, and the number of the rest.
    let many = "for (let n = 0; n < 25; n++) await ops.shop.pets_show({ petId: n });";
    std::fs::write(shop.folder.join("script.js"), many).unwrap();
    let stderr = text(&shop.run(&[]).stderr);
    assert_eq!(stderr.matches(warning).count(), 20, "{stderr}");
    assert!(stderr.ends_with("warning: there are 5 more warnings about answers\n"), "{stderr}");
}

#[test]
fn an_input_is_exact_or_refused() {
    let shop = Shop::start("input");
    std::fs::write(shop.folder.join("script.js"), "return input.id").unwrap();
    let run = |input: &str| {
        let arguments = ["run", "script.js", "--spec", "shop.yaml", "--input", input];
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(arguments).current_dir(&shop.folder).stdin(Stdio::null()).output().unwrap()
    };
    let output = run(r#"{"id":123456789012345678901}"#);
    let stderr = text(&output.stderr);
    let rounded = "error: the input: `123456789012345678901` has more than 64 bits, so it would be rounded";
    assert!(output.status.code() == Some(2) && stderr.starts_with(rounded), "{stderr}");
    assert_eq!(text(&run("\u{feff}{\"id\":7}").stdout), "7\n");
}

#[test]
fn a_number_that_was_computed_is_asked_about_once() {
    let shop = Shop::start("number");
    let document = std::fs::read_to_string(shop.folder.join("shop.yaml")).unwrap();
    std::fs::write(shop.folder.join("shop.yaml"), document.replace("type: integer", "type: number")).unwrap();
    std::fs::write(shop.folder.join("script.js"), "return ops.shop.removePet({ petId: 9.99 * 1.07 })").unwrap();
    assert_eq!(shop.run(&["--journal", "journal"]).status.code(), Some(1));
    let output = shop.run(&["--journal", "journal", "--allow", "*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(shop.seen(), ["DELETE /pets/10.689300000000001"]);
}

#[test]
fn a_time_may_be_longer_than_any_clock_tells() {
    let shop = Shop::start("long");
    let output = shop.run(&["--allow", "*", "--timeout", &u64::MAX.to_string()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_dry_run_says_what_would_be_changed() {
    let shop = Shop::start("dry");
    let output = shop.run(&["--dry-run"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["gone"]["path"].is_string() && value["gone"]["path"] != "/pets/7", "{value}");
    assert_eq!(text(&output.stderr), "would call: shop.removePet {\"petId\":7}\nfound /pets/3\n");
    assert_eq!(shop.seen(), ["GET /pets/3"]);
}

#[test]
fn mistakes_say_what_is_wrong() {
    let shop = Shop::start("mistakes");
    for (script, arguments, status, message) in [
        (
            "\nawait ops.shop.removePets({})",
            &["--deny", "*"][..],
            1,
            "error: TypeError: there is no ops.shop.removePets; nearest: removePet, at line 2, column 7\n",
        ),
        (
            "return ops.shop.removePet({ petId: 1 })",
            &["--deny", "shop.*"],
            1,
            "error: programs may not call `shop.removePet` [ACCESS_DENIED], at line 1",
        ),
        // Nobody is asked about what would be refused, and no dry run says that it would be called: two faults at once.
        ("return ops.shop.removePet({ petid: 1 })", &[], 1, REFUSED),
        ("return ops.shop.removePet({ petid: 1 })", &["--dry-run"], 1, REFUSED),
        ("return (", &[], 1, "error: SyntaxError: "),
        ("return 1", &["--input", "{"], 2, "error: the argument '--input <JSON>' cannot be used multiple times"),
        (
            "return 1",
            &["--spec", "shop.yaml", "--header", "A: b"],
            2,
            "error: credentials and `--base-url` go to all operations: name one document with them\n",
        ),
        ("return 1", &["--spec", "none.yaml"], 3, "error"),
    ] {
        std::fs::write(shop.folder.join("script.js"), script).unwrap();
        let output = shop.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{script}: {stderr}");
        assert!(stderr.starts_with(message), "{script}: {stderr}");
    }
    assert!(shop.seen().is_empty());
}

/// Starts a command on a terminal, which the command `script` provides.
fn terminal(shop: &Shop, arguments: &str) -> Child {
    let command = format!("exec {} run script.js --spec shop.yaml {arguments}", env!("CARGO_BIN_EXE_ops"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(&shop.folder).env("NO_COLOR", "1");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("`script` runs")
}

/// Runs a command on a terminal with an input, and returns its exit status and output.
fn on_a_terminal(shop: &Shop, arguments: &str, input: &[u8]) -> (Option<i32>, String) {
    let mut child = terminal(shop, arguments);
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stdout))
}

#[test]
fn an_end_of_the_input_is_no_answer() {
    let shop = Shop::start("gone");
    std::fs::write(shop.folder.join("script.js"), "return ops.shop.removePet({ petId: 2 })").unwrap();
    // Twice: the first time, nothing is kept.
    for _ in 0..2 {
        let (status, shown) = on_a_terminal(&shop, "--journal journal", b"\x04");
        assert!(status == Some(1) && shown.contains("nobody has answered whether `shop.removePet` may run"), "{shown}");
    }
    assert!(shop.seen().is_empty());
    // A no is kept, and how to be asked again is told.
    let (status, shown) = on_a_terminal(&shop, "--journal journal", b"n\n");
    let kept = "`journal` keeps what was answered: without this folder, the same command asks again";
    assert!(status == Some(1) && shown.contains(kept), "{shown}");
    std::fs::remove_dir_all(shop.folder.join("journal")).unwrap();
    let (status, shown) = on_a_terminal(&shop, "--journal journal", b"y\n");
    assert!(status == Some(0) && shown.contains("/pets/2"), "{shown}");
    assert_eq!(shop.seen(), ["DELETE /pets/2"]);
}

/// On a terminal, a yes runs the call, and all else does not.
#[test]
fn a_terminal_is_asked() {
    let shop = Shop::start("asked");
    std::fs::write(
        shop.folder.join("script.js"),
        "try { await ops.shop.removePet({ petId: 1 }) } catch (e) { console.log(e.code) } return ops.shop.removePet({ petId: 2 })",
    )
    .unwrap();
    let (status, shown) = on_a_terminal(&shop, "", b"no\nyes\n");
    assert_eq!(status, Some(0), "{shown}");
    assert_eq!(shown.matches("Run it? [y/N]").count(), 2, "{shown}");
    assert!(shown.contains("ACCESS_DENIED") && shown.contains("/pets/2"), "{shown}");
    assert_eq!(shop.seen(), ["DELETE /pets/2"]);
}

#[test]
fn a_question_can_be_interrupted() {
    let shop = Shop::start("question");
    std::fs::write(shop.folder.join("script.js"), "return ops.shop.removePet({ petId: 2 })").unwrap();
    let mut child = terminal(&shop, "--journal journal");
    let (mut shown, mut byte) = (Vec::new(), [0]);
    let stdout = child.stdout.as_mut().unwrap();
    while !shown.ends_with(b"Run it? [y/N] ") {
        std::io::Read::read_exact(stdout, &mut byte).unwrap();
        shown.extend(byte);
    }
    // The input stays open, because its end would also end the question.
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"\x03").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let shown = text(&output.stdout);
    assert!(output.status.code() == Some(1) && shown.contains("error: the run was interrupted"), "{shown}");
    assert!(shop.seen().is_empty());
}
