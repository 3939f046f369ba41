//! cloudberth: the Kubernetes cloud controller manager for several clouds.

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};
use cloudberth::CLOUDS;
use cloudberth_manager::{process, program::preset_provider};
use cloudberth_rancher_fip::process as rancher;

#[cfg(feature = "demo")]
mod demo;
#[cfg(feature = "demo")]
mod sandbox;
#[cfg(feature = "sim")]
mod sim;

/// The Kubernetes cloud controller manager for several clouds.
#[derive(Debug, Parser)]
#[command(name = "cloudberth", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ties a cluster to its clouds; `--help` shows all flags.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    ControllerManager {
        /// The flags.
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
    #[cfg(feature = "demo")]
    Demo(demo::Arguments),
    #[cfg(feature = "lycke")]
    Lycke(cloudberth_lycke::cli::Arguments),
    #[cfg(feature = "demo")]
    Sandbox(sandbox::Arguments),
    /// Simulated surroundings, to try things out.
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(sim::Command),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called = arguments.next().unwrap_or_default().to_string_lossy().into_owned();
    // Called by the name of a program that it replaces, it is that program.
    if preset_provider(CLOUDS, &called).is_some() {
        return process::controller_manager(&called, &called, arguments.collect(), CLOUDS);
    }
    if Path::new(&called).file_name().is_some_and(|name| name == rancher::PROGRAM) {
        return rancher_fip(&called, arguments.collect());
    }
    match Arguments::parse().command {
        Command::ControllerManager { flags } => {
            process::controller_manager(&called, "cloudberth controller-manager", flags, CLOUDS)
        }
        Command::Plan { flags } => process::plan(&called, "cloudberth plan", flags, CLOUDS),
        Command::RancherFipClusterManager { flags } => {
            rancher_fip("cloudberth rancher-fip-cluster-manager", flags)
        }
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::run(&arguments),
        #[cfg(feature = "lycke")]
        Command::Lycke(arguments) => cloudberth_lycke::cli::run(arguments),
        #[cfg(feature = "demo")]
        Command::Sandbox(arguments) => sandbox::run(&arguments),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(command),
    }
}

/// The first word decides: the program that is replaced takes no word before its flags, and ignores those after them.
fn rancher_fip(program: &str, mut args: Vec<OsString>) -> ExitCode {
    if args.first().is_some_and(|word| word == "plan") {
        args.remove(0);
        return rancher::plan(&format!("{program} plan"), args);
    }
    rancher::cluster_manager(program, args)
}
