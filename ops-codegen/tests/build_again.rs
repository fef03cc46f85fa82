//! Build scripts that run again: what they make anew, and what cargo has to look at for that.

mod folder;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use folder::{Folder, SHOP};
use ops_codegen::{Builder, Generator};

/// What the package names.
const LIB: &str = "fn f() { client.execute::<shop::ShowPet>(7); let _: shop::Pet; }";

/// Runs this test as the build script of a package in a folder, and gives what it prints.
fn script(folder: &Folder, test: &str, step: &str) -> Vec<String> {
    // Cargo makes it.
    std::fs::create_dir_all(folder.0.join("out")).unwrap();
    // The kernel's clock for files ticks every few milliseconds: what was saved before is older than this build.
    std::thread::sleep(Duration::from_millis(50));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).current_dir(&folder.0).env("OPS_STEP", step);
    let output = command.env("CARGO_MANIFEST_DIR", &folder.0).env("OUT_DIR", folder.0.join("out")).output().unwrap();
    let (told, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{step}: {told}{errors}");
    told.lines().filter_map(|line| line.strip_prefix("cargo:")).map(str::to_owned).collect()
}

/// The builder of a step: that of a test which runs as a build script.
fn builder() -> Option<Builder> {
    let step = std::env::var("OPS_STEP").ok()?;
    // Behind what the test has written on its line.
    println!();
    let builder = Builder::new().openapi("apis/shop.yaml");
    match step.as_str() {
        "root" => Some(Builder::new().openapi("shop.yaml")),
        "absolute" => Some(Builder::new().openapi(std::env::current_dir().unwrap().join("shop.yaml"))),
        "used" => Some(builder.only_used()),
        "renamed" => Some(builder.with_generator(Generator::new().with_renamed_type("Pet", "Animal").unwrap())),
        _ => Some(builder),
    }
}

/// A package whose document was saved a while ago.
fn package(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("apis/shop.yaml", SHOP);
    folder.write("src/lib.rs", LIB);
    set_saved(&folder, SystemTime::now() - Duration::from_secs(60));
    folder
}

fn set_saved(folder: &Folder, time: SystemTime) {
    let document = std::fs::File::options().write(true).open(folder.0.join("apis/shop.yaml")).unwrap();
    document.set_modified(time).unwrap();
}

/// What so many builders noted, and when.
fn notes(folder: &Folder, count: usize) -> Vec<(PathBuf, SystemTime)> {
    let files = std::fs::read_dir(folder.0.join("out")).unwrap().map(|entry| entry.unwrap());
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("ops-only-used-"));
    let mut notes: Vec<_> = files.map(|file| (file.path(), file.metadata().unwrap().modified().unwrap())).collect();
    notes.sort();
    assert_eq!(notes.len(), count, "{notes:?}");
    notes
}

#[test]
fn what_another_build_wrote_is_made_anew() {
    if let Some(builder) = builder() {
        return builder.build().unwrap();
    }
    let folder = package("anew");
    let build = |step| script(&folder, "what_another_build_wrote_is_made_anew", step);
    let told = build("used");
    let (used, written) = (folder.read("out/shop.rs"), notes(&folder, 1));
    // Nothing has changed, so that nothing is made.
    assert_eq!((build("used"), notes(&folder, 1)), (told, written));
    // The settings of another build, and what was left of one that was interrupted.
    build("renamed");
    assert_ne!(folder.read("out/shop.rs"), used);
    build("used");
    assert!(folder.read("out/shop.rs") == used);
    folder.write("out/shop.rs", "half of");
    build("used");
    assert!(folder.read("out/shop.rs") == used);
}

/// The clock of the machine that has saved a document may be ahead. Its change is noticed all the same, and nothing is made twice.
#[test]
fn a_document_that_is_dated_in_the_future_is_read_again_if_it_changes() {
    if let Some(builder) = builder() {
        return builder.build().unwrap();
    }
    let folder = package("dated");
    let build = || script(&folder, "a_document_that_is_dated_in_the_future_is_read_again_if_it_changes", "used");
    let saved = SystemTime::now() + Duration::from_secs(3600);
    for (text, field) in [(SHOP.to_owned(), "pub tags:"), (SHOP.replace("tags:", "tips:"), "pub tips:")] {
        folder.write("apis/shop.yaml", &text);
        set_saved(&folder, saved);
        let told = build();
        assert!(folder.read("out/shop.rs").contains(field), "{field}");
        if cfg!(unix) {
            let written = notes(&folder, 1);
            assert_eq!((build(), notes(&folder, 1)), (told, written));
        }
    }
}

/// It has times and paths of this machine, and is read again at each edit of the sources.
#[test]
fn what_a_build_notes_is_not_among_the_sources() {
    if let Some(builder) = builder() {
        return builder.with_out_dir("src/api").build().unwrap();
    }
    let folder = package("notes");
    let build = || script(&folder, "what_a_build_notes_is_not_among_the_sources", "used");
    let told = build();
    let written = notes(&folder, 1);
    assert_eq!((build(), notes(&folder, 1)), (told, written));
    let entries = std::fs::read_dir(folder.0.join("src/api")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["shop.others.json", "shop.rs"]);
}

#[test]
fn two_builders_of_one_document_note_two_builds() {
    if let Some(builder) = builder() {
        return ["gen/a", "gen/b"].iter().for_each(|out| builder.clone().with_out_dir(out).build().unwrap());
    }
    let folder = package("both");
    let build = || script(&folder, "two_builders_of_one_document_note_two_builds", "used");
    let told = build();
    let written = notes(&folder, 2);
    assert_eq!((build(), notes(&folder, 2)), (told, written));
    assert_eq!(folder.read("gen/a/shop.rs"), folder.read("gen/b/shop.rs"));
}

#[test]
fn a_missing_file_is_looked_for() {
    if let Some(builder) = builder() {
        return builder.build().unwrap();
    }
    let folder = package("missing");
    let build = |step| script(&folder, "a_missing_file_is_looked_for", step);
    let rerun = |path: &str| format!("rerun-if-changed={path}");
    let (schema, outer) = ("#/components/schemas/Pet", "parts/pet.yaml#/Pet");
    let text = SHOP.replace(schema, outer).replace("    Pet:\n", "    Own:\n");
    let text = text + "        any: { $ref: 'com.example.Any' }\n";
    for step in ["used", "all"] {
        folder.write("apis/shop.yaml", &text);
        let told = build(step);
        assert!(told.contains(&rerun("apis")), "{told:?}");
        assert!(told.iter().any(|line| line.contains("No such file") || cfg!(windows)), "{told:?}");
        assert!(!folder.read("out/shop.rs").contains("struct Pet "), "{step}");
        folder.write("apis/parts/pet.yaml", "Pet: { type: object, properties: { name: { type: string } } }");
        let told = build(step);
        assert!(told.contains(&rerun("apis/parts/pet.yaml")) && !told.contains(&rerun("apis")), "{told:?}");
        assert!(folder.read("out/shop.rs").contains("struct Pet "), "{step}");
        std::fs::remove_dir_all(folder.0.join("apis/parts")).unwrap();
    }
    // In the folder of the package itself there is something new after each build.
    folder.write("shop.yaml", &text);
    let looked_for = |step| build(step).into_iter().filter(|line| line.starts_with("rerun")).collect::<Vec<_>>();
    let wanted = ["parts/pet.yaml", "shop.yaml"];
    assert_eq!(looked_for("root"), wanted.map(rerun));
    let root = folder.0.canonicalize().unwrap();
    assert_eq!(looked_for("absolute"), wanted.map(|file| rerun(&root.join(file).display().to_string())));
}

#[cfg(unix)]
#[test]
fn sources_that_cannot_be_read_are_passed_over() {
    use std::os::unix::fs::symlink;
    if let Some(builder) = builder() {
        return builder.build().unwrap();
    }
    let folder = package("sources");
    let build = || script(&folder, "sources_that_cannot_be_read_are_passed_over", "used");
    build();
    let used = folder.read("out/shop.rs");
    // What Emacs has beside a file that is not saved, a link to nothing, and one to a folder.
    symlink("ann@host.1234:1700000000", folder.0.join("src/.#lib.rs")).unwrap();
    symlink("nowhere.rs", folder.0.join("src/gone.rs")).unwrap();
    symlink("../apis", folder.0.join("src/apis.rs")).unwrap();
    folder.write("src/.kept.rs", "shop::AddPet");
    build();
    assert!(folder.read("out/shop.rs") == used);
    folder.write("src/more.rs", "//! ```\n//! client.execute::<shop::AddPet>(pet);\n//! ```\n");
    build();
    assert!(!used.contains("struct AddPet;") && folder.read("out/shop.rs").contains("struct AddPet;"));
}

#[test]
fn two_builders_write_two_modules() {
    let folder = Folder::new("two");
    folder.write("v1/shop.yaml", SHOP);
    folder.write("v2/shop.yaml", &SHOP.replace("showPet", "findPet"));
    let of = |version: &str| {
        Builder::new().openapi(folder.0.join(version).join("shop.yaml")).with_out_dir(folder.0.join("out"))
    };
    of("v1").build().unwrap();
    // The same once more, as where a program generates again and again.
    of("v1").build().unwrap();
    for again in [of("v2"), of("v2").with_namespace("Shop"), of("v1").with_server()] {
        let error = again.build().unwrap_err().to_string();
        let file = folder.0.join("out").display().to_string();
        assert!(error.starts_with(&format!("two builders of this build script write `{file}")), "{error}");
    }
    assert!(folder.read("out/shop.rs").contains("ShowPet"));
    of("v2").with_namespace("shop2").build().unwrap();
    assert!(folder.read("out/shop2.rs").contains("FindPet"));
}
