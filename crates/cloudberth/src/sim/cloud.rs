//! `cloudberth sim cloud`: the API of a cloud.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cloudberth_http::surroundings::{SystemClock, random_from_os};
use cloudberth_manager::flags::{GoDuration, Value as _};
use cloudscale_sim::{Access, Cloud, SimSettings, serve};
use tokio::net::TcpListener;

use super::Stop;

/// The clouds that can be simulated.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Provider {
    /// cloudscale.ch.
    Cloudscale,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Whose API.
    #[arg(long)]
    provider: Provider,
    /// Address and port to listen on; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Servers that are there from the beginning, called node-1, node-2 and so on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    instances: usize,
    /// The zone of these servers, and of what is made without one.
    #[arg(long, default_value = "rma1", value_parser = ["rma1", "lpg1"])]
    zone: String,
    /// How long a request takes. Changes to one load balancer wait for each other.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    latency: Duration,
    /// How long building a load balancer takes.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    build: Duration,
    /// How long starting or stopping a server takes.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    boot: Duration,
    /// The token that lets clients in; without it, any does.
    #[arg(long)]
    token: Option<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    GoDuration::read(text)?.to_std().ok_or_else(|| "it must not be negative".to_owned())
}

pub(super) async fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let Options { provider: Provider::Cloudscale, listen, instances, zone, latency, build, boot, token } =
        options;
    let stop = Stop::listen()?;
    let settings =
        SimSettings { latency, build, boot, instances, default_zone: zone, ..SimSettings::default() };
    let cloud = Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
    if let Some(token) = &token {
        cloud.set_tokens([(token.as_str(), Access::ReadWrite)]);
    }
    let served = serve(&cloud, TcpListener::bind(listen).await?)?;
    let token = if token.is_some() { "the token given" } else { "any token" };
    writeln!(
        std::io::stdout(),
        "listening on http://{}, {instances} servers, {token} will do",
        served.address
    )?;
    stop.told().await;
    drop(served);
    Ok(())
}
