//! `bench`: what depends on the machine is measured here, by command.
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
    /// What the shipped program takes: its size, and its memory idle and with a large cluster. Builds it first.
    Manager(Manager),
    /// How soon Services at a simulated cloudscale.ch have their addresses, and what that costs in calls. Builds the
    /// program first.
    Cloudscale(Cloudscale),
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
struct Cloudscale {
    /// Nodes, all of them behind each load balancer.
    #[arg(long, default_value_t = 10)]
    nodes: usize,
    /// Services that are created at once, after a first one.
    #[arg(long, default_value_t = 50)]
    services: usize,
    /// Milliseconds that the cloud takes for an answer.
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Milliseconds that the cloud takes to build a load balancer.
    #[arg(long, default_value_t = 1_000)]
    build: u64,
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
        Command::Cloudscale(options) => {
            let setting = cloudscale::Setting {
                nodes: options.nodes,
                services: options.services,
                latency: Duration::from_millis(options.latency),
                build: Duration::from_millis(options.build),
            };
            show("bench cloudscale", runtime.block_on(cloudscale::run(setting)))
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
