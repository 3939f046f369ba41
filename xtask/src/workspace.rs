//! Where the project is, and which files are its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Result;
use crate::built::Built;

/// Directories that hold no sources of ours.
const NOT_OURS: &[&str] = &["target", "node_modules", "vendor"];

/// The root of the checkout that this program was built from.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    built: OnceLock<Result<Built>>,
}

impl Workspace {
    /// The checkout above this crate's manifest. Cargo says at run time where that is; a binary that was
    /// started by hand falls back to the place where it was built.
    pub(crate) fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        manifest
            .ancestors()
            .find(|dir| dir.join("Cargo.lock").is_file())
            .map(|root| Self::at(root.to_path_buf()))
            .ok_or_else(|| format!("no Cargo.lock above {}", manifest.display()))
    }

    fn at(root: PathBuf) -> Self {
        Self { root, built: OnceLock::new() }
    }

    /// The tests of the workspace, built by the first who asks.
    pub(crate) fn built(&self) -> Result<&Built> {
        self.built.get_or_init(|| Built::make(self)).as_ref().map_err(Clone::clone)
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A cargo command that runs at the root, as if a person had typed it: what the outer cargo says about this
    /// package would look like a changed environment to build scripts, and much would be rebuilt each time.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(&self.root);
        command
    }

    /// The text of a file, named relative to the root.
    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        let path = self.path(relative);
        fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Every file of ours with this extension, relative to the root with `/` between, in order of name.
    pub(crate) fn files(&self, extension: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        walk(&self.root, &mut |path| {
            let wanted = path.extension().is_some_and(|has| has == extension);
            if let Some(name) = path.strip_prefix(&self.root).ok().filter(|_| wanted) {
                let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
                found.push(parts.join("/"));
            }
        })?;
        found.sort();
        Ok(found)
    }
}

/// A small tree in a temporary directory, gone when the test is over.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) workspace: Workspace,
}

#[cfg(test)]
impl Sample {
    /// `name` keeps the tests of one run apart; `files` are paths relative to the root and their texts.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { workspace: Workspace::at(root) }
    }
}

#[cfg(test)]
impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.workspace.root);
    }
}

fn walk(dir: &Path, visit: &mut dyn FnMut(&Path)) -> Result<()> {
    let unreadable = |why| format!("{}: {why}", dir.display());
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.starts_with("mutants.out") || NOT_OURS.contains(&name.as_ref()) {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            walk(&entry.path(), visit)?;
        } else if kind.is_file() {
            visit(&entry.path());
        }
    }
    Ok(())
}

/// Whether a file has this extension.
pub(crate) fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|has| has == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_ours_relative_and_in_order() {
        let workspace = Workspace::find().unwrap();
        let files = workspace.files("rs").unwrap();
        assert!(files.contains(&"xtask/src/workspace.rs".to_owned()));
        assert!(files.is_sorted());
        assert!(!files.iter().any(|name| name.starts_with("target/")));
        assert!(workspace.read("xtask/src/workspace.rs").unwrap().starts_with("//! Where"));
    }

    #[test]
    fn cargo_does_not_hear_of_this_package() {
        let command = Workspace::find().unwrap().cargo(&["help"]);
        let removed =
            |wanted: &str| command.get_envs().any(|(name, value)| name == wanted && value.is_none());
        assert!(removed("CARGO_MANIFEST_DIR") && removed("CARGO_PKG_NAME"));
        assert!(!removed("CARGO_HOME") && !removed("PATH"));
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let why = Workspace::find().unwrap().read("no/such/file").unwrap_err();
        assert!(why.contains("no/such/file"), "{why}");
    }
}
