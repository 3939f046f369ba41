//! The command line of the shipped program. What is here is in every build, and what completions and man pages are made
//! from; the demo, the sandbox and the simulated surroundings add their own in `main`.

pub mod lint;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};
use cloudberth_manager::process;
use cloudberth_rancher_fip::process as rancher;

use crate::CLOUDS;

/// The Kubernetes cloud controller manager for several clouds.
#[derive(Debug, Parser)]
#[command(name = "cloudberth", version)]
pub struct Program {
    /// What to do.
    #[command(subcommand)]
    pub command: Shipped,
}

/// The commands that every build has.
#[derive(Debug, Subcommand)]
pub enum Shipped {
    /// Ties a cluster to its clouds; `--help` shows all flags.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    ControllerManager {
        /// The flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Looks for what is wrong with an installation and says what to do about it, and does nothing: exit code 0 for nothing
    /// found, 1 for problems, 2 for a wrong call, 3 if it could not look. Takes the flags of `controller-manager`, and
    /// `--output=text|json`.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Doctor {
        /// The flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Says which Services in a file would be refused, and why, without a cluster and without a cloud: exit code 0 for nothing
    /// refused, 1 for refusals, 2 for a wrong call or where it does not say which cloud is meant, 3 if something could not be
    /// read.
    Lint(lint::Arguments),
    /// Says which load balancers with our mark have no Service any more: exit code 0 for none, 1 for some, 2 for a wrong call,
    /// 3 if it could not be told. Takes the flags of `controller-manager`, `--output=text|json`, and at the end `--delete`
    /// with the names of what is to be deleted; without names they are typed.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Orphans {
        /// The flags, and `--delete` with names at the end.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Says what the controller manager would do to the cluster now, and does nothing: exit code 0 for nothing to do, 2
    /// for changes, 1 if it could not be told. Takes the flags of `controller-manager`, and `--output=text|json`.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Plan {
        /// The flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Sets up floating IPs in the clusters of a Rancher; `--help` shows all flags. With `plan` in front of the flags it
    /// says what it would do now, and does nothing.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    RancherFipClusterManager {
        /// The flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
}

impl Shipped {
    /// The commands that take the flags of the controller manager.
    pub const WITH_FLAGS: [&str; 4] = ["controller-manager", "doctor", "orphans", "plan"];

    /// Does it. `called` is the name under which the program was called.
    pub fn run(self, called: &str) -> ExitCode {
        match self {
            Self::ControllerManager { flags } => {
                process::controller_manager(called, "cloudberth controller-manager", flags, CLOUDS)
            }
            Self::Doctor { flags } => process::doctor(called, "cloudberth doctor", flags, CLOUDS),
            Self::Lint(arguments) => lint::run(arguments),
            Self::Orphans { flags } => process::orphans(called, "cloudberth orphans", flags, CLOUDS),
            Self::Plan { flags } => process::plan(called, "cloudberth plan", flags, CLOUDS),
            Self::RancherFipClusterManager { flags } => {
                rancher_fip("cloudberth rancher-fip-cluster-manager", flags)
            }
        }
    }
}

/// Whether the program was called by the name of the floating-IP cluster manager.
pub fn is_rancher_fip(called: &str) -> bool {
    Path::new(called).file_name().is_some_and(|name| name == rancher::PROGRAM)
}

/// The first word decides: the program that is replaced takes no word before its flags, and ignores those after them.
pub fn rancher_fip(program: &str, mut args: Vec<OsString>) -> ExitCode {
    if args.first().is_some_and(|word| word == "plan") {
        args.remove(0);
        return rancher::plan(&format!("{program} plan"), args);
    }
    rancher::cluster_manager(program, args)
}
