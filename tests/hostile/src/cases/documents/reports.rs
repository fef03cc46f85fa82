//! What is said of documents: how much, and to whom.

use ops_codegen::report::Renderer;

use super::{document, gives, joined, made};
use crate::Outcome;

/// Many faults, each at a place of its own.
pub(super) fn faults(size: usize) -> Outcome {
    let properties = joined(size / 30, |at| format!("\n\"p{at}\":{{\"type\":\"odd{at}\"}}"));
    rendered(document(&gives("all", &format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)), ""))
}

/// Many faults below a path of half of the document.
pub(super) fn below_a_long_path(size: usize) -> Outcome {
    let parameters = joined(size / 2 / 20, |at| format!(r#"{{"name":"p{at}","in":"?"}}"#));
    let path = format!(r#""/{}":{{"get":{{"parameters":[{parameters}],"responses":{{}}}}}}"#, "a".repeat(size / 2));
    rendered(document(&path, ""))
}

/// Many faults of a document that is one line.
pub(super) fn in_one_line(size: usize) -> Outcome {
    let paths = joined(size / 20, |at| format!(r#""/p{at}":{{"x":1}}"#));
    rendered(document(&paths, ""))
}

/// Many faults that only the generator finds.
pub(super) fn of_types(size: usize) -> Outcome {
    let properties = joined(size / 50, |at| format!(r#""p{at}":{{"type":"integer","default":"no number"}}"#));
    rendered(document(&gives("all", &format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)), ""))
}

/// Shows all that there is to say as the command does.
fn rendered(text: String) -> Outcome {
    let made = made(text.clone())?;
    let mut renderer = Renderer::default().with_text("document.yaml", Some(text));
    let shown: usize = made.diagnostics.iter().map(|diagnostic| renderer.render(diagnostic).len()).sum();
    if shown > 16 << 20 {
        return Err(format!("{shown} bytes are shown"));
    }
    made.bounded()
}

/// Names and texts with what a terminal or cargo would obey.
pub(super) fn commands(_: usize) -> Outcome {
    let bad = r"\u001b[2J\ncargo:rustc-env=A=B\r\u202e\u009b\u2028\u2029\u0085";
    let path = format!(
        r#""/{bad}":{{"{bad}":1,"get":{{"operationId":"{bad}","parameters":[{{"name":"{bad}","in":"{bad}"}}],"responses":{{"{bad}":{{}}}}}}}}"#
    );
    let schema = format!(r#"{{"type":"{bad}","properties":{{"{bad}":{{"type":"integer","default":"{bad}"}}}}}}"#);
    let text = document(&format!("{path},{}", gives("all", &schema)), "");
    let made = made(text.clone())?;
    let mut renderer = Renderer::default().with_text("document.yaml", Some(text));
    for diagnostic in &made.diagnostics {
        let shown = diagnostic.to_string();
        let rendered = renderer.render(diagnostic);
        for shown in [&shown, &rendered] {
            let is_bad =
                |c: char| c.is_control() && c != '\n' || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}');
            if shown.contains(is_bad) || shown.lines().any(|line| line.starts_with("cargo:")) {
                return Err(format!("{shown:?}"));
            }
        }
    }
    if made.diagnostics.len() < 4 { Err(format!("{:?}", made.diagnostics)) } else { made.bounded() }
}
