//! `bench`: what depends on the machine is measured here, by command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is printed for a person")]

mod kube;
mod memory;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use kube::{Load, Until};

/// Measurements of cloudberth's parts.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The embedded Kubernetes API, in memory: clients that patch, watchers that are checked, lists.
    Kube(Kube),
}

#[derive(Debug, Args)]
struct Kube {
    /// Nodes in the cluster.
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    /// Services in the cluster.
    #[arg(long, default_value_t = 1_000)]
    services: usize,
    /// Clients that patch, all at once.
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Watchers, by turns of Nodes and of Services.
    #[arg(long, default_value_t = 4)]
    watchers: usize,
    /// Seconds of patching.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

fn main() -> ExitCode {
    let Command::Kube(options) = Arguments::parse().command;
    let load = Load {
        nodes: options.nodes,
        services: options.services,
        clients: options.clients,
        watchers: options.watchers,
        until: Until::Elapsed(Duration::from_secs(options.seconds)),
    };
    if cfg!(debug_assertions) {
        println!("a debug build: these figures say nothing; use --release");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(kube::run(&load)) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("bench kube: {trouble}");
            ExitCode::FAILURE
        }
    }
}
