//! `bench`: measurements that depend on the computer, run by command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is printed for a person")]

mod cloudscale;
mod kube;
mod manager;
mod memory;
mod programs;

use std::fmt::Display;
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
    /// The size of the shipped program, and its memory use idle and with a large cluster. Builds it first.
    Manager(Manager),
    /// How long Services at a simulated cloudscale.ch wait (20 ms per call, 1 s to build), and how many calls they take.
    Cloudscale,
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
    /// Watchers, alternately of Nodes and of Services.
    #[arg(long, default_value_t = 4)]
    watchers: usize,
    /// Seconds of patching.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

#[derive(Debug, Args)]
struct Manager {
    /// Nodes in the large cluster.
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    /// Services in the large cluster.
    #[arg(long, default_value_t = 1_000)]
    services: usize,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match command {
        Command::Kube(options) => {
            if cfg!(debug_assertions) {
                println!("a debug build: these figures say nothing; use --release");
            }
            show("bench kube", runtime.block_on(kube::run(&options.load())))
        }
        Command::Manager(options) => {
            let cluster = manager::Size { nodes: options.nodes, services: options.services };
            show("bench manager", runtime.block_on(manager::run(cluster)))
        }
        Command::Cloudscale => show("bench cloudscale", runtime.block_on(cloudscale::run())),
    }
}

impl Kube {
    fn load(&self) -> Load {
        Load {
            nodes: self.nodes,
            services: self.services,
            clients: self.clients,
            watchers: self.watchers,
            until: Until::Elapsed(Duration::from_secs(self.seconds)),
        }
    }
}

fn show(what: &str, outcome: Result<impl Display, impl Display>) -> ExitCode {
    match outcome {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("{what}: {trouble}");
            ExitCode::FAILURE
        }
    }
}
