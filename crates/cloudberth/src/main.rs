//! cloudberth: the Kubernetes cloud controller manager for several clouds.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    #[cfg(feature = "demo")]
    Demo(demo::Arguments),
    /// Simulated surroundings, to try things out.
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(sim::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::run(&arguments),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(command),
    }
}
