//! `cloudberth lycke inventory`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Failure, output::print};
use crate::{control::read_file, inventory::Demo, serve::Refused};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Prints an inventory to begin with.
    Init {
        /// How many clusters, at most 25.
        #[arg(long, value_name = "C", default_value_t = 2)]
        clusters: u8,
        /// How many workers in each.
        #[arg(long, value_name = "W", default_value_t = 1)]
        workers: u8,
        /// On addresses of this computer, where no virtual machine is needed.
        #[arg(long)]
        loopback: bool,
    },
    /// Prints what is wrong with an inventory file: exit code 0 for nothing, 2 for faults.
    Check {
        /// The file.
        file: PathBuf,
    },
}

pub(super) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Init { clusters, workers, loopback } => {
            let demo = Demo { clusters: *clusters, workers: *workers, loopback: *loopback };
            print(&demo.inventory().map_err(Failure::new)?)
        }
        Command::Check { file } => match read_file(file) {
            Ok(inventory) => {
                let (machines, clusters) = (inventory.machines.len(), inventory.clusters.len());
                print(&format!("{}: {machines} machines in {clusters} clusters", file.display()))
            }
            Err(faults) => {
                print(&faults.to_string())?;
                let message = format!("{}: {} faults", file.display(), faults.0.len());
                Err(Failure { message, code: Refused::EXIT_CODE })
            }
        },
    }
}
