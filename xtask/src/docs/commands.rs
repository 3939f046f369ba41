//! The commands that pages tell a reader to type.
//!
//! A block that is marked as runnable is run by a test: every `sh` block of a tutorial, and elsewhere those that begin with
//! `sh run`. Pages about installing are followed on a real server. Of all others, what they name must be there: chores with
//! their options, packages, tests, files, values of the chart.

use std::collections::BTreeSet;

use crate::chart::values;
use crate::workspace::Workspace;
use crate::{Result, usage_of};

/// Each of its pages is followed by a test of its own.
const TUTORIALS: &str = "docs/tutorials/";
const FOLLOWS_TUTORIALS: &str = "testing/e2e/tests/sandbox.rs";
/// Runs the runnable blocks of all other pages.
const RUNS_GUIDES: &str = "crates/cloudberth/tests/guides.rs";
/// Each of these pages is followed by one test.
const INSTALL: &str = "docs/how-to/install-";
const FOLLOWS_INSTALL: &str = "testing/e2e/tests/release.rs";
/// Folders that pages name from the root of the checkout.
const FOLDERS: [&str; 6] = ["charts/", "clouds/", "crates/", "deploy/", "docs/", "examples/"];
/// What a shell block is called elsewhere. Only one name, so that nothing is missed.
const OTHER_NAMES: [&str; 5] = ["bash", "shell", "console", "zsh", "shell-session"];

/// A code block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// What stands behind the back quotes.
    info: String,
    /// Of its first line of text.
    line: usize,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for (at, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), inside) {
            (Some(info), false) => {
                inside = true;
                found.push(Block { info: info.trim().to_owned(), line: at + 2, text: String::new() });
            }
            (Some(_), true) => inside = false,
            (None, true) => {
                if let Some(block) = found.last_mut() {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    found
}

/// The commands of a block with their lines, whole where they go on in the next line, without comments.
fn commands(block: &Block) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in block.text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let more = line.strip_suffix('\\');
        match found.last_mut().filter(|_| goes_on) {
            Some((_, command)) => {
                command.push(' ');
                command.push_str(more.unwrap_or(line).trim());
            }
            None => found.push((block.line + at, more.unwrap_or(line).trim().to_owned())),
        }
        goes_on = more.is_some();
    }
    found.retain(|(_, command)| !command.is_empty() && !command.starts_with('#'));
    found
}

/// What is wrong with the command blocks of all pages, one line each.
pub(super) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    let (packages, tests) = (packages(workspace)?, tests(workspace)?);
    let follows = workspace.read(FOLLOWS_TUTORIALS).unwrap_or_default();
    let follows_install = workspace.read(FOLLOWS_INSTALL).unwrap_or_default();
    let runs_guides = workspace.path(RUNS_GUIDES).is_file();
    let mut problems = Vec::new();
    for file in workspace.files("md")? {
        let mut found = |line: usize, why: String| problems.push(format!("{file}:{line}: {why}"));
        let tutorial = file.strip_prefix(TUTORIALS);
        let mut runnable = false;
        for block in blocks(&workspace.read(&file)?) {
            let (language, mark) = block.info.split_once(' ').unwrap_or((&block.info, ""));
            if OTHER_NAMES.contains(&language) {
                found(block.line - 1, format!("a block of commands is called sh here, not {language}"));
            }
            if language != "sh" {
                continue;
            }
            match (mark, tutorial) {
                ("", None) => {}
                ("", Some(_)) => runnable = true,
                ("run", None) if file.starts_with("docs/") && runs_guides => {}
                ("run", None) => found(block.line - 1, format!("{RUNS_GUIDES} does not run it")),
                (other, _) => found(block.line - 1, format!("sh {other} is no mark that is known here")),
            }
            for (line, command) in commands(&block) {
                for why in wrong(workspace, &packages, &tests, &command) {
                    found(line, why);
                }
            }
        }
        if let Some(name) = file
            .strip_prefix(INSTALL)
            .filter(|name| !follows_install.contains(&format!("\"install-{name}\"")))
        {
            found(1, format!("{FOLLOWS_INSTALL} does not follow install-{name}"));
        }
        if let Some(name) =
            tutorial.filter(|name| runnable && !follows.contains(&format!("follow(\"{name}\")")))
        {
            found(1, format!("no test of {FOLLOWS_TUTORIALS} runs the commands of {name}"));
        }
    }
    Ok(problems)
}

fn packages(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for file in workspace.files("toml")?.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let text = workspace.read(file)?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = "));
        found.extend(name.map(|name| name.trim_matches('"').to_owned()));
    }
    Ok(found)
}

/// The files of tests, as `--test` has them: a file or a folder below `tests/`.
fn tests(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let files = workspace.files("rs")?;
    let names = files.iter().filter_map(|file| file.split_once("/tests/")?.1.split(['/', '.']).next());
    Ok(names.map(str::to_owned).collect())
}

/// Whether a word sets a variable for the command after it.
fn is_set(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

/// What a command names that is not there.
fn wrong(
    workspace: &Workspace,
    packages: &BTreeSet<String>,
    tests: &BTreeSet<String>,
    command: &str,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts = command.split(['|', ';']).flat_map(|part| part.split("&&"));
    for words in parts.map(|part| part.split_whitespace().skip_while(|word| is_set(word)).collect::<Vec<_>>())
    {
        if let ["cargo", "xtask", chore, rest @ ..] = words.as_slice() {
            match usage_of(chore) {
                None => wrong.push(format!("there is no chore {chore}")),
                Some(usage) => wrong.extend(
                    rest.iter()
                        .map(|word| word.split('=').next().unwrap_or(word))
                        .filter(|word| word.starts_with("--") && !usage.contains(word))
                        .map(|option| format!("cargo xtask {chore} has no {option}")),
                ),
            }
        }
        if words.first() == Some(&"cargo") {
            let named = words
                .iter()
                .zip(words.iter().skip(1))
                .filter(|(flag, _)| matches!(**flag, "-p" | "--package"));
            let unknown = named.filter(|(_, package)| !packages.contains(**package));
            wrong.extend(unknown.map(|(_, package)| format!("there is no package {package}")));
            let after = words.iter().zip(words.iter().skip(1)).filter(|(flag, _)| **flag == "--test");
            let gone = after.filter(|(_, test)| !tests.contains(**test));
            wrong.extend(gone.map(|(_, test)| format!("there is no file of tests called {test}")));
        }
        if words.first() == Some(&"helm") {
            let after = words.iter().zip(words.iter().skip(1)).filter(|(flag, _)| **flag == "--set");
            let set =
                after.map(|(_, set)| *set).chain(words.iter().filter_map(|word| word.strip_prefix("--set=")));
            let names = set.filter_map(|set| set.split('=').next()).filter(|name| !values::is_one(name));
            wrong.extend(names.map(|name| format!("the chart has no value {name}")));
        }
        // To kubectl, deploy/NAME is a Deployment, unless a flag says that it is a file.
        let kubectl = words.contains(&"kubectl");
        let is_file =
            |flag: Option<&&str>| matches!(flag, Some(&("-f" | "-k" | "--filename" | "--kustomize")));
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let path = word.rsplit(['=', '@']).next().unwrap_or(word).trim_matches(['"', '\'']);
            // Names that are to be filled in are in capitals or in angle brackets.
            let open = path.contains(['<', '*', '$', '{', '[']) || path.chars().any(char::is_uppercase);
            let ours = FOLDERS.iter().any(|folder| path.starts_with(folder)) && (!kubectl || is_file(before));
            if ours && !open && !workspace.path(path).exists() {
                wrong.push(format!("there is no {path}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn commands_are_whole_and_without_comments() {
        let page = "a\n```sh run\n# why\nhelm install \\\n  x # and so\n\nls\n```\n```text\nls\n```\n";
        let found = blocks(page);
        assert_eq!((found.len(), found[0].info.as_str(), found[1].line), (2, "sh run", 10));
        assert_eq!(commands(&found[0]), [(4, "helm install x".to_owned()), (7, "ls".to_owned())]);
    }

    #[test]
    fn what_no_test_runs_and_what_is_not_there_is_found() {
        let tutorial = "```sh\nls\n```\n";
        let page = "```sh\ncargo xtask tset\ncargo xtask test --onyl docs\ncargo xtask test --only docs | tail\n\
                    cargo test -p nobody\nA=b cargo test -p somebody --test here --test gone\nkubectl apply -f deploy/gone.yaml\nkubectl get deploy/web\n\
                    kubectl apply -f deploy/here.yaml -f deploy/<cloud>/x.yaml -f deploy/CLOUD.yaml\n```\n\
                    ```sh\nhelm install a b --set kind=Deployment --set=kin=x \\\n  --set clouds.mars.enabled=true\n```\n\
                    ```bash\nls\n```\n```sh runs\nls\n```\n```sh run\nls\n```\n";
        let files = [
            ("docs/tutorials/followed.md", tutorial),
            ("docs/tutorials/lonely.md", tutorial),
            ("docs/how-to/do.md", page),
            ("docs/how-to/install-here.md", ""),
            ("docs/how-to/install-there.md", ""),
            (FOLLOWS_INSTALL, "\"install-here.md\""),
            ("deploy/here.yaml", ""),
            ("crates/a/tests/here/main.rs", ""),
            ("Cargo.toml", "[package]\nname = \"somebody\"\n"),
            (FOLLOWS_TUTORIALS, "follow(\"followed.md\")"),
        ];
        let sample = Sample::new("commands", &files);
        let want = [
            "docs/how-to/do.md:2: there is no chore tset",
            "docs/how-to/do.md:3: cargo xtask test has no --onyl",
            "docs/how-to/do.md:5: there is no package nobody",
            "docs/how-to/do.md:6: there is no file of tests called gone",
            "docs/how-to/do.md:7: there is no deploy/gone.yaml",
            "docs/how-to/do.md:12: the chart has no value clouds.mars.enabled",
            "docs/how-to/do.md:12: the chart has no value kin",
            "docs/how-to/do.md:15: a block of commands is called sh here, not bash",
            "docs/how-to/do.md:18: sh runs is no mark that is known here",
            "docs/how-to/do.md:21: crates/cloudberth/tests/guides.rs does not run it",
            "docs/how-to/install-there.md:1: testing/e2e/tests/release.rs does not follow install-there.md",
            "docs/tutorials/lonely.md:1: no test of testing/e2e/tests/sandbox.rs runs the commands of lonely.md",
        ];
        assert_eq!(problems(&sample.workspace).unwrap(), want);
    }
}
