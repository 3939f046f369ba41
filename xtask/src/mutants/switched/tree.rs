//! The copy of the sources in which mutants are written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::metadata::Metadata;
use crate::workspace::Workspace;

/// What becomes a module of the crate.
const SWITCH: &str = include_str!("switch.rs");

pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    from: PathBuf,
    /// The file of the switches, which is none of the workspace's.
    switch: PathBuf,
}

impl Tree {
    /// Copies what is ours, and leaves alone what has not changed, so that cargo compiles nothing twice.
    pub(crate) fn copy(workspace: &Workspace, into: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(workspace.path(""))
            .output()
            .map_err(|why| format!("git: {why}"))?;
        if !listed.status.success() {
            return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim()));
        }
        let text = String::from_utf8_lossy(&listed.stdout);
        Self::of(workspace, into, text.split('\0').filter(|name| !name.is_empty()))
    }

    pub(super) fn of<'n>(
        workspace: &Workspace,
        into: &Path,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Self> {
        let tree =
            Self { root: into.join("tree"), from: workspace.path(""), switch: into.join("mutant_switch.rs") };
        let mut kept = BTreeSet::new();
        for name in names {
            // A file may be deleted and git not told yet.
            if tree.from.join(name).is_file() {
                tree.restore(name)?;
                kept.insert(tree.root.join(name));
            }
        }
        remove_others(&tree.root, &kept)?;
        Ok(tree)
    }

    /// Writes a file as it is in the checkout.
    pub(crate) fn restore(&self, name: &str) -> Result<()> {
        let from = self.from.join(name);
        let content = fs::read(&from).map_err(|why| format!("{}: {why}", from.display()))?;
        let to = self.root.join(name);
        write_changed(&to, &content)?;
        let rights = fs::metadata(&from).map(|found| found.permissions());
        rights
            .and_then(|rights| fs::set_permissions(&to, rights))
            .map_err(|why| format!("{}: {why}", to.display()))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        write_changed(&self.root.join(name), text.as_bytes())
    }

    /// The text of a file as it is in the checkout.
    pub(crate) fn original(&self, name: &str) -> Result<String> {
        let path = self.from.join(name);
        fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Writes the file of the switches, for mutants with numbers below `count`.
    pub(crate) fn write_switches(&self, count: usize) -> Result<()> {
        let line = "const COUNT: usize = 16;";
        write_changed(
            &self.switch,
            SWITCH.replace(line, &format!("const COUNT: usize = {count};")).as_bytes(),
        )
    }

    /// What makes the switches a module of the crate, at the end of its first file.
    pub(crate) fn module(&self) -> String {
        format!("\n#[path = \"{}\"]\npub mod mutant_switch;\n", self.switch.display())
    }
}

/// The first files of the libraries and programs of a package, relative to the root.
pub(crate) fn roots(workspace: &Workspace, package: &str) -> Result<Vec<String>> {
    let metadata = Metadata::load(workspace, &["--no-deps"])?;
    let found = metadata.packages.iter().find(|found| found.name == package);
    let targets = &found.ok_or_else(|| format!("there is no package {package}"))?.targets;
    let of_tests = |kind: &String| ["test", "bench", "example", "custom-build"].contains(&kind.as_str());
    let root = workspace.path("");
    let relative = |path: &String| Path::new(path).strip_prefix(&root).ok()?.to_str().map(str::to_owned);
    Ok(targets
        .iter()
        .filter(|target| !target.kind.iter().any(of_tests))
        .filter_map(|target| relative(&target.src_path))
        .collect())
}

/// Cargo goes by the time at which a file was written.
fn write_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, content));
    written.map_err(|why| format!("{}: {why}", path.display()))
}

fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    let odd = |why| format!("{}: {why}", folder.display());
    for entry in fs::read_dir(folder).map_err(odd)? {
        let entry = entry.map_err(odd)?;
        let path = entry.path();
        if entry.file_type().map_err(odd)?.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).map_err(odd)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn the_copy_follows_the_checkout_and_leaves_alone_what_is_the_same() {
        let sample = Sample::new("mutants-tree", &[("a.rs", "a"), ("b/c.rs", "c"), ("d.rs", "d")]);
        let into = sample.workspace.path("target/mutants");
        let copy = |names: &[&str]| Tree::of(&sample.workspace, &into, names.iter().copied()).unwrap();
        let tree = copy(&["a.rs", "b/c.rs", "gone.rs"]);
        let old = fs::metadata(tree.root.join("b/c.rs")).unwrap().modified().unwrap();
        tree.write("a.rs", "broken").unwrap();
        assert_eq!(tree.original("a.rs").unwrap(), "a");
        let tree = copy(&["b/c.rs", "d.rs"]);
        assert!(!tree.root.join("a.rs").exists() && tree.root.join("d.rs").exists());
        assert_eq!(fs::metadata(tree.root.join("b/c.rs")).unwrap().modified().unwrap(), old);
    }

    #[test]
    fn the_switches_get_room_for_all() {
        let sample = Sample::new("mutants-switches", &[("a.rs", "a")]);
        let tree = Tree::of(&sample.workspace, &sample.workspace.path("m"), ["a.rs"].into_iter()).unwrap();
        tree.write_switches(301).unwrap();
        let text = sample.workspace.read("m/mutant_switch.rs").unwrap();
        assert!(text.contains("\nconst COUNT: usize = 301;\n") && !text.contains("= 16;"), "{text}");
        assert!(tree.module().contains("m/mutant_switch.rs\"]\npub mod mutant_switch;"));
    }
}
