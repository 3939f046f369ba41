//! `cloudberth lycke demo`.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::Subcommand;

use super::{Failure, output::print};
use crate::inventory::Demo;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Writes an inventory of machines on this computer, and says what to do next.
    Up {
        /// Where the inventory is written. A file that is there already is kept.
        #[arg(long, value_name = "FILE", default_value = "cloudlycke.yaml")]
        inventory: PathBuf,
    },
}

pub(super) fn run(command: &Command) -> Result<(), Failure> {
    let Command::Up { inventory } = command;
    let text = Demo { clusters: 1, workers: 2, loopback: true }.inventory().map_err(Failure::new)?;
    let written =
        write_new(inventory, &text).map_err(|why| Failure::new(format!("{}: {why}", inventory.display())))?;
    let file = inventory.display();
    let what = if written { "wrote" } else { "kept" };
    print(&format!(
        "{what} {file}; next:\n  \
         cloudberth lycke serve --inventory {file}\n  \
         CLOUDLYCKE_CLUSTER=c1 cloudberth controller-manager --cloud-provider=cloudlycke --kubeconfig=$HOME/.kube/config\n  \
         cloudberth lycke lb list"
    ))
}

/// Says whether the file was written: one that is there is somebody's work.
fn write_new(file: &Path, text: &str) -> std::io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_inventory_is_for_its_owner_and_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cloudlycke.yaml");
        assert!(write_new(&file, "one").unwrap());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!write_new(&file, "two").unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    }
}
