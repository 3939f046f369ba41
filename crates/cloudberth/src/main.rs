//! cloudberth: the Kubernetes cloud controller manager for several clouds.

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};
use cloudberth::CLOUDS;
use cloudberth_manager::{process, program::preset_provider};

#[cfg(feature = "demo")]
mod demo;
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
    #[cfg(feature = "demo")]
    Demo(demo::Arguments),
    #[cfg(feature = "lycke")]
    Lycke(cloudberth_lycke::cli::Arguments),
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
    match Arguments::parse().command {
        Command::ControllerManager { flags } => {
            process::controller_manager(&called, "cloudberth controller-manager", flags, CLOUDS)
        }
        Command::Plan { flags } => process::plan(&called, "cloudberth plan", flags, CLOUDS),
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::run(&arguments),
        #[cfg(feature = "lycke")]
        Command::Lycke(arguments) => cloudberth_lycke::cli::run(arguments),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(command),
    }
}
