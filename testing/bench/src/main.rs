//! `bench`: measurements that depend on the computer, run by command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is printed for a person")]

mod allocators;
mod binarylane;
mod brightbox;
mod cloudscale;
mod kube;
mod lycke;
mod manager;
mod memory;
mod nodes;
mod programs;
mod rancher;
mod services;

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
    /// The static program of the image with the allocator of musl and with another: CPU time in a burst of new nodes, memory,
    /// size. Builds all of them first, which takes a quarter of an hour.
    Allocators(allocators::Extent),
    /// How many calls a cluster at a simulated BinaryLane takes, beside the budgets. It runs in virtual time.
    Binarylane,
    /// How many calls Services at a simulated Brightbox take beside the shared listings, and how long they wait.
    Brightbox,
    /// How long Services at a simulated cloudscale.ch wait (20 ms per call, 1 s to build), and how many calls they take.
    Cloudscale,
    /// The memory use of the floating-IP cluster manager for Rancher with many clusters. Builds it first.
    Rancher(rancher::Extent),
    /// Cloudlycke's data plane beside `HAProxy` and nginx, with idle connections, changes under load and hostile clients.
    Lycke(lycke::Extent),
    /// A process that `lycke` starts.
    #[command(hide = true)]
    LyckeRole {
        /// What it is there for.
        #[command(subcommand)]
        role: lycke::Role,
    },
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
        Command::Allocators(extent) => show("bench allocators", runtime.block_on(allocators::run(extent))),
        Command::Binarylane => show("bench binarylane", binarylane::run()),
        Command::Brightbox => show("bench brightbox", runtime.block_on(brightbox::run())),
        Command::Cloudscale => show("bench cloudscale", runtime.block_on(cloudscale::run())),
        Command::Rancher(extent) => show("bench rancher", runtime.block_on(rancher::run(extent))),
        Command::Lycke(extent) => {
            if cfg!(debug_assertions) {
                println!("a debug build: these figures say nothing; use --release");
            }
            show("bench lycke", runtime.block_on(lycke::run(extent)))
        }
        Command::LyckeRole { role } => {
            let played = runtime.block_on(lycke::play(&role));
            // Backends have tasks that would go on.
            runtime.shutdown_background();
            show("bench lycke-role", played.map(|()| ""))
        }
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
