//! Finishes the built book: `book FOLDER` writes each page as plain Markdown beside its HTML, `llms.txt` with them, and
//! checks every link. `docs/build` compiles it by itself: it needs the standard library alone.

#[path = "../html.rs"]
#[allow(missing_docs, unreachable_pub)]
mod html;
#[path = "../pages.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod pages;

use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/book".to_owned());
    let folder = fs::canonicalize(folder).unwrap();
    let all = pages::all();
    for page in &all {
        let text = pages::plain(&page.path, &page.text).unwrap();
        fs::write(folder.join(&page.path), text).unwrap();
    }
    fs::copy(pages::root().join("docs/llms.txt"), folder.join("llms.txt")).unwrap();
    html::mend(&folder);
    match html::check(&folder) {
        Ok(links) => {
            println!("{} pages, {links} links", all.len());
            ExitCode::SUCCESS
        }
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            ExitCode::FAILURE
        }
    }
}
