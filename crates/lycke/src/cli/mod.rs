//! The commands of `cloudberth lycke`.

mod api_options;
mod balancers;
mod client;
mod demo;
mod doctor;
mod inventory;
mod machines;
mod output;
mod serve;
mod table;

use std::{io::Write as _, process::ExitCode};

use clap::{Args, Subcommand};

/// A cloud on this computer, with load balancers that carry real traffic.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the API and carries the traffic of load balancers, until it is told to end.
    Serve(serve::Options),
    /// Lists machines, or has one seem to stop, start or vanish.
    #[command(subcommand)]
    Machines(machines::Command),
    /// Shows load balancers.
    #[command(subcommand)]
    Lb(balancers::Command),
    /// Makes an inventory file, or checks one.
    #[command(subcommand)]
    Inventory(inventory::Command),
    /// Looks for what is in the way of load balancers on this computer and in a cluster.
    Doctor(doctor::Options),
    /// Things to try.
    #[command(subcommand)]
    Demo(demo::Command),
}

/// Why a command did not do what it was told, and what the process ends with.
#[derive(Debug)]
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(why: E) -> Self {
        Self::new(why.to_string())
    }
}

/// Runs a command. 0 is success, 2 a refusal to start or a faulty inventory, 1 everything else.
pub fn run(arguments: Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done =
        runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(carry_out(arguments.command)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, code }) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(code)
        }
    }
}

async fn carry_out(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(options) => serve::run(options).await,
        Command::Machines(command) => machines::run(command).await,
        Command::Lb(command) => balancers::run(command).await,
        Command::Inventory(command) => inventory::run(&command),
        Command::Doctor(options) => doctor::run(options).await,
        Command::Demo(command) => demo::run(&command),
    }
}
