//! The commands of the guides and the reference that are marked as runnable are run, page by page and in their order. What a
//! page shows below a block is what it prints.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(all(feature = "sim", feature = "fake", feature = "lycke"))]

mod fixture;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
};

use fixture::{PROGRAM, Place, text};

/// A command block, and what the page shows below it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    commands: String,
    shown: Option<String>,
}

/// The runnable blocks of a page. A `text` block counts as shown if nothing but empty lines is between.
fn steps(page: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let (mut info, mut next) = (None, false);
    for (at, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), info) {
            (Some("sh run"), None) => {
                info = Some("sh run");
                found.push(Step { line: at + 1, commands: String::new(), shown: None });
            }
            (Some("text"), None) if next => {
                info = Some("text");
                found.last_mut().unwrap().shown = Some(String::new());
            }
            (Some(_), None) => (info, next) = (Some("other"), false),
            (Some(_), Some(ended)) => (info, next) = (None, ended == "sh run"),
            (None, Some("sh run")) => found.last_mut().unwrap().commands.extend([line, "\n"]),
            (None, Some("text")) => {
                found.last_mut().unwrap().shown.as_mut().unwrap().extend([line, "\n"]);
            }
            (None, None) if !line.is_empty() => next = false,
            (None, _) => {}
        }
    }
    found
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_runnable_command_does_what_its_page_shows() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut count = 0;
    for page in pages(&docs) {
        let steps = steps(&fs::read_to_string(&page).unwrap());
        if steps.is_empty() {
            continue;
        }
        let place = Place::new();
        let bin = place.path("bin");
        fs::create_dir(&bin).unwrap();
        symlink(PROGRAM, bin.join("cloudberth")).unwrap();
        for Step { line, commands, shown } in steps {
            let at = format!("{}:{line}", page.display());
            let mut command = place.command(Path::new("/bin/sh"));
            command.args(["-eu", "-c", &commands]).stdin(Stdio::null());
            let output = command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output().unwrap();
            let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{at}: {said}");
            if let Some(shown) = shown {
                assert_eq!(said.trim_end(), shown.trim_end(), "{at}");
            }
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn what_is_run_and_what_is_shown_are_found_in_a_page() {
    let page = "a\n```sh run\nls\n```\n\n```text\nfile\n```\n```sh\nno\n```\n```sh run\nls -a\n```\nwords\n```text\nother\n```\n";
    let step = |line, commands: &str, shown: Option<&str>| Step {
        line,
        commands: commands.to_owned(),
        shown: shown.map(str::to_owned),
    };
    assert_eq!(steps(page), [step(2, "ls\n", Some("file\n")), step(12, "ls -a\n", None)]);
}
