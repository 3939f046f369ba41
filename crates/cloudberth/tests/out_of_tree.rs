//! A cloud can be added without touching this repository: a crate of its own, with its factory in the list of a program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const NAME: &str = "nimbus-cloud-controller-manager";

fn cargo(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    // What the outer cargo says about this package is not true of the other one.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(folder).output().unwrap()
}

/// Copies the example to a folder outside of the workspace, with the versions of the workspace.
fn copied(root: &Path) -> PathBuf {
    let (from, to) = (root.join("examples/out-of-tree"), Path::new(env!("CARGO_TARGET_TMPDIR")).join(NAME));
    fs::create_dir_all(to.join("src")).unwrap();
    for file in ["Cargo.toml", "src/lib.rs", "src/main.rs"] {
        let text = fs::read_to_string(from.join(file)).unwrap();
        let text = text.replace("../..", root.to_str().unwrap());
        // A file that is written anew is built anew.
        if fs::read_to_string(to.join(file)).ok().as_ref() != Some(&text) {
            fs::write(to.join(file), text).unwrap();
        }
    }
    fs::copy(root.join("Cargo.lock"), to.join("Cargo.lock")).unwrap();
    to
}

#[test]
fn a_cloud_outside_of_the_repository_is_one_crate_and_one_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = copied(&root);
    // Without code: it takes a third of the time, and what is to be shown is that the traits and the list are enough. In the
    // build directory of the workspace, where most of what it depends on was checked before.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_str().unwrap();
    let checked = cargo(&folder, &["check", "--offline", "--target-dir", target]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
