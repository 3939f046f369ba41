//! `bench`: measurements that depend on the computer, run by command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is printed for a person")]

mod cloudscale;
mod kube;
mod manager;
mod memory;
mod nodes;
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
    /// What it costs to initialise new nodes: CPU time of the manager for each of them, and seconds for all.
    Nodes(Nodes),
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

#[derive(Debug, Args)]
struct Nodes {
    /// How many nodes on the embedded API; one run for each number.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 5_000, 10_000])]
    embedded: Vec<usize>,
    /// How many nodes on a real kube-apiserver; builds it first, which takes minutes.
    #[arg(long)]
    real: Option<usize>,
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
        Command::Nodes(Nodes { embedded, real }) => {
            show("bench nodes", runtime.block_on(nodes::run(&nodes::Runs { embedded, real })))
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
