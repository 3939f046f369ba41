//! `cargo xtask site`: `docs/` as a site, by mdBook. What it is made from is checked in the suite, without mdBook; what came
//! out is checked here, link by link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lexopt::prelude::*;

use crate::archive::write;
use crate::docs::{book, links};
use crate::image::{read_tree, text};
use crate::metadata::Metadata;
use crate::workspace::{Workspace, has_extension};
use crate::{Result, Verdict};

/// The version of mdBook that is installed where there is none of this version.
const VERSION: &str = "0.5.4";
/// Documents of the project that pages link to, and where they are in the book.
const PROJECT: [(&str, &str); 4] = [
    ("README.md", "project/about.md"),
    ("CONTRIBUTING.md", "project/contributing.md"),
    ("CHANGELOG.md", "project/changelog.md"),
    ("SECURITY.md", "project/security.md"),
];
/// What pages link to besides is copied here.
const FILES: &str = "files";

const SETTINGS: &str = "[book]\ntitle = \"cloudberth\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[build]\nbuild-dir = \"book\"\n\
                        create-missing = false\n\n[output.html]\nno-section-label = true\n\n[output.html.fold]\nenable = true\n";

/// `cargo xtask site`.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut output = None;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("output") => output = Some(PathBuf::from(text(&mut args)?)),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let target = PathBuf::from(Metadata::load(workspace, &["--no-deps"])?.target_directory);
    let output = output.unwrap_or_else(|| target.join("site"));
    let program = mdbook(workspace, &target)?;
    let sources = sources(workspace)?;
    let build = target.join("site-sources");
    replace(&build, "book.toml", &sources)?;
    let ran = Command::new(&program).arg("build").arg(&build).output();
    let ran = ran.map_err(|why| format!("{}: {why}", program.display()))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        return Err(format!("mdbook build failed: {said}"));
    }
    let site = read(&build.join("book"))?;
    let mut problems = complaints(&said);
    problems.extend(broken(&site));
    for problem in &problems {
        println!("{problem}");
    }
    replace(&output, "index.html", &site)?;
    println!(
        "{} pages in {}",
        site.keys().filter(|name| has_extension(name, "html")).count(),
        output.display()
    );
    Ok(if problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// mdBook of the pinned version: one that is installed already, or one that is installed below the target directory.
fn mdbook(workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    let place = target.join("tools").join(format!("mdbook-{VERSION}"));
    for program in [PathBuf::from("mdbook"), place.join("bin/mdbook")] {
        let said = Command::new(&program).arg("--version").output();
        if said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == format!("mdbook v{VERSION}"))
        {
            return Ok(program);
        }
    }
    println!("mdbook {VERSION} is missing: installing it into {}", place.display());
    let mut command = workspace.cargo(&[
        "install",
        "mdbook",
        "--locked",
        "--version",
        VERSION,
        "--no-default-features",
        "--root",
    ]);
    // It runs for a second: building it quickly is worth more than a quick program.
    command.arg(&place).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_LTO", "off");
    let installed = command.status().map_err(|why| format!("cargo: {why}"))?;
    if installed.success() {
        Ok(place.join("bin/mdbook"))
    } else {
        Err("`cargo install mdbook` failed".to_owned())
    }
}

/// What mdBook warns of, such as a tag that is never closed, with the lines that explain it.
fn complaints(said: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in said.lines() {
        let level = line.split_whitespace().find(|word| matches!(*word, "INFO" | "WARN" | "ERROR"));
        match level {
            Some("INFO") => goes_on = false,
            Some(_) => {
                goes_on = true;
                found.push(line.trim().to_owned());
            }
            None if goes_on => found.iter_mut().last().into_iter().for_each(|last| {
                last.push(' ');
                last.push_str(line.trim());
            }),
            None => {}
        }
    }
    found
}

/// Content by path.
type Files = BTreeMap<String, Vec<u8>>;

/// All that mdBook is given: settings, the summary, the pages with their links as they are in the book, and what they link to.
fn sources(workspace: &Workspace) -> Result<Files> {
    let home = workspace.read(book::HOME)?;
    // mdBook turns a README.md into index.html, and leaves links from other folders to it as they were.
    let mut pages = vec![(book::HOME.to_owned(), book::FIRST.to_owned())];
    pages.extend(book::entries(&home).into_iter().map(|entry| {
        let place = entry.file.trim_start_matches("docs/").to_owned();
        (entry.file, place)
    }));
    let project: Vec<_> = PROJECT.into_iter().filter(|(file, _)| workspace.path(file).is_file()).collect();
    pages.extend(project.iter().map(|(file, place)| ((*file).to_owned(), (*place).to_owned())));
    let places: BTreeMap<String, String> = pages.iter().cloned().collect();

    let mut files = Files::new();
    let mut copied = BTreeSet::new();
    let mut titles = BTreeMap::new();
    for (file, place) in &pages {
        let page = workspace.read(file)?;
        titles.insert(file.clone(), links::title(&page).unwrap_or_else(|| file.clone()));
        for link in links::to_files(&page) {
            let found = links::resolve(file, &link.target);
            copied.extend(found.filter(|found| !places.contains_key(found)));
        }
        let page = links::relink(&page, &|target| moved(file, place, target, &places));
        files.insert(format!("src/{place}"), page.into_bytes());
    }
    for path in copied {
        copy(workspace, &path, &mut files)?;
    }
    let more: Vec<_> = project
        .iter()
        .map(|(file, place)| (titles.get(*file).cloned().unwrap_or_default(), (*place).to_owned()))
        .collect();
    files.insert("src/SUMMARY.md".to_owned(), book::summary(&home, &titles, &more).into_bytes());
    files.insert("book.toml".to_owned(), SETTINGS.as_bytes().to_vec());
    Ok(files)
}

/// The target of a link as it is in the book.
fn moved(file: &str, place: &str, target: &str, places: &BTreeMap<String, String>) -> String {
    let (path, rest) = target.find('#').map_or((target, ""), |at| target.split_at(at));
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return target.to_owned();
    }
    let Some(found) = links::resolve(file, path) else { return target.to_owned() };
    let to = places.get(&found).cloned().unwrap_or_else(|| format!("{FILES}/{found}"));
    let up = "../".repeat(place.matches('/').count());
    // A folder is shown by the list in it.
    let file_name = to.rsplit('/').next().unwrap_or_default();
    let list = if to.starts_with(FILES) && !file_name.contains('.') && file_name != "LICENSE" {
        "/index.html"
    } else {
        ""
    };
    format!("{up}{to}{list}{rest}")
}

/// A file as it is; a folder with a list of its files.
fn copy(workspace: &Workspace, path: &str, files: &mut Files) -> Result<()> {
    let from = workspace.path(path);
    if !from.is_dir() {
        let bytes = fs::read(&from).map_err(|why| format!("{path}: {why}"))?;
        files.insert(format!("src/{FILES}/{path}"), bytes);
        return Ok(());
    }
    let mut list =
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>{path}</title>\n<h1>{path}</h1>\n<ul>\n");
    for (name, bytes) in read(&from)? {
        let _ = writeln!(list, "<li><a href=\"{name}\">{name}</a></li>");
        files.insert(format!("src/{FILES}/{path}/{name}"), bytes);
    }
    list.push_str("</ul>\n");
    files.insert(format!("src/{FILES}/{path}/index.html"), list.into_bytes());
    Ok(())
}

/// The files below a folder.
fn read(dir: &Path) -> Result<Files> {
    use crate::archive::Content;
    let tree = read_tree(dir)?.into_iter().filter_map(|(name, entry)| match entry.content {
        Content::File(bytes) => Some((name, bytes)),
        _ => None,
    });
    Ok(tree.collect())
}

/// Writes a folder anew. One that is there and does not have the file `mark` is somebody else's.
fn replace(dir: &Path, mark: &str, files: &Files) -> Result<()> {
    if dir.exists() {
        if !dir.join(mark).is_file() {
            return Err(format!("{} is there and is no site: remove it", dir.display()));
        }
        fs::remove_dir_all(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    }
    files.iter().try_for_each(|(name, bytes)| write(&dir.join(name), bytes))
}

/// Links of the site that lead nowhere, one line each: to files that it lacks and to places that a page lacks.
fn broken(site: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    let pages = site.iter().filter(|(name, _)| has_extension(name, "html"));
    // On one page, all pages follow each other, and their links with them; what is not found is anywhere.
    for (name, bytes) in pages.filter(|(name, _)| !["print.html", "404.html"].contains(&name.as_str())) {
        let html = String::from_utf8_lossy(bytes);
        for target in attributes(&html, &["href=\"", "src=\""]) {
            let elsewhere = target.contains(':') || target.starts_with("//");
            let (path, place) =
                target.split_once('#').map_or((target, None), |(path, place)| (path, Some(place)));
            if elsewhere || target.is_empty() {
                continue;
            }
            let found = if path.is_empty() { Some(name.clone()) } else { links::resolve(name, path) };
            let there = found.filter(|found| site.contains_key(found));
            let Some(there) = there else {
                problems.push(format!("{name}: {target} leads nowhere"));
                continue;
            };
            let Some(place) = place.filter(|place| !place.is_empty() && has_extension(&there, "html")) else {
                continue;
            };
            let other = site.get(&there).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
            if !attributes(&other, &["id=\"", "name=\""]).any(|id| id == place) {
                problems.push(format!("{name}: {target} leads nowhere: {there} has no such place"));
            }
        }
    }
    problems.dedup();
    problems
}

/// The values of attributes, as they stand in the text.
fn attributes<'h>(html: &'h str, names: &'h [&'h str]) -> impl Iterator<Item = &'h str> {
    names.iter().flat_map(move |name| {
        html.split(*name).skip(1).filter_map(|rest| rest.split_once('"')).map(|(value, _)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    fn text(files: &Files, name: &str) -> String {
        String::from_utf8(files.get(name).unwrap_or_else(|| panic!("{name}: {:?}", files.keys())).clone())
            .unwrap()
    }

    #[test]
    fn links_are_as_they_are_in_the_book() {
        let sample = Sample::new(
            "site",
            &[
                (
                    "docs/README.md",
                    "# All\n- **Guides**: [do](how-to/do.md) [help](../CONTRIBUTING.md#one)\n",
                ),
                (
                    "docs/how-to/do.md",
                    "# Do it\n[home](../README.md) [me](#do-it) [yaml](../../deploy/a.yaml) [all](../../deploy) \
                     [out](https://example.com/x)\n",
                ),
                ("CONTRIBUTING.md", "# Contributing\n## One\n[do](docs/how-to/do.md)\n"),
                ("deploy/a.yaml", "a: 1\n"),
            ],
        );
        let files = sources(&sample.workspace).unwrap();
        assert_eq!(
            text(&files, "src/how-to/do.md"),
            "# Do it\n[home](../index.md) [me](#do-it) [yaml](../files/deploy/a.yaml) \
             [all](../files/deploy/index.html) [out](https://example.com/x)\n"
        );
        assert!(text(&files, "src/index.md").contains("[help](project/contributing.md#one)"));
        assert!(text(&files, "src/project/contributing.md").contains("[do](../how-to/do.md)"));
        assert_eq!(text(&files, "src/files/deploy/a.yaml"), "a: 1\n");
        assert!(text(&files, "src/files/deploy/index.html").contains("<a href=\"a.yaml\">"));
        assert!(text(&files, "src/SUMMARY.md").contains("- [Do it](how-to/do.md)"));
    }

    #[test]
    fn every_page_of_ours_is_in_the_book() {
        let workspace = Workspace::find().unwrap();
        let files = sources(&workspace).unwrap();
        let pages = workspace.files("md").unwrap().into_iter().filter(|file| file.starts_with("docs/"));
        for page in pages {
            let place = if page == book::HOME {
                "src/index.md".to_owned()
            } else {
                page.replacen("docs/", "src/", 1)
            };
            assert!(files.contains_key(&place), "{page}");
        }
        let summary = text(&files, "src/SUMMARY.md");
        assert!(
            summary.contains("(project/contributing.md)") && summary.contains("(reference/flags.md)"),
            "{summary}"
        );
    }

    #[test]
    fn what_mdbook_warns_of_is_a_problem() {
        let said = " INFO Book building has started\n WARN unclosed HTML tag `<uuid>`\nHTML tags must be closed.\n INFO written\nto there\n";
        assert_eq!(complaints(said), ["WARN unclosed HTML tag `<uuid>` HTML tags must be closed."]);
        assert_eq!(complaints(" INFO all is well\n"), Vec::<String>::new());
    }

    #[test]
    fn what_leads_nowhere_is_found_in_the_site() {
        let page = |text: &str| text.as_bytes().to_vec();
        let site = Files::from([
            (
                "a/one.html".to_owned(),
                page(
                    "<h1 id=\"top\"><a href=\"#top\"></a></h1><a href=\"two.html#there\"></a><a href=\"two.html#gone\"></a>\
                     <a href=\"three.html\"></a><img src=\"../x.png\"><a href=\"https://example.com\"></a>",
                ),
            ),
            ("a/two.html".to_owned(), page("<h2 id=\"there\"></h2>")),
            ("x.png".to_owned(), Vec::new()),
        ]);
        let want = [
            "a/one.html: two.html#gone leads nowhere: a/two.html has no such place",
            "a/one.html: three.html leads nowhere",
        ];
        assert_eq!(broken(&site), want);
    }

    #[test]
    fn a_folder_of_somebody_else_is_left_alone() {
        let sample = Sample::new("site other", &[("mine/file", "mine")]);
        let why = replace(&sample.workspace.path("mine"), "index.html", &Files::new()).unwrap_err();
        assert!(why.contains("is no site") && sample.workspace.path("mine/file").exists(), "{why}");
    }
}
