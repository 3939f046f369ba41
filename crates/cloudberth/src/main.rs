//! cloudberth: the Kubernetes cloud controller manager for several clouds.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cloudberth::{
    CLOUDS,
    commands::{Shipped, is_rancher_fip, rancher_fip},
};
use cloudberth_manager::{process, program::preset_provider};

#[cfg(feature = "demo")]
mod demo;
#[cfg(feature = "demo")]
mod sandbox;
#[cfg(feature = "sim")]
mod sim;

/// In place of the C library's. musl's takes more processor time in a burst.
#[cfg(feature = "dlmalloc")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The Kubernetes cloud controller manager for several clouds.
#[derive(Debug, Parser)]
#[command(name = "cloudberth", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Shipped(Shipped),
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
    if is_rancher_fip(&called) {
        return rancher_fip(&called, arguments.collect());
    }
    match Arguments::parse().command {
        Command::Shipped(command) => command.run(&called),
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
