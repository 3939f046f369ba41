//! `cloudberth sim cloud`: the API of a cloud.

use std::any::Any;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, builder::PossibleValuesParser};
use cloudberth_http::surroundings::{SystemClock, random_from_os};
use cloudberth_manager::flags::{GoDuration, Value as _};
use tokio::net::TcpListener;

use super::Stop;

/// A cloud that can be simulated.
struct SimulatedCloud {
    name: &'static str,
    /// Where instances can be; the first is the default.
    zones: &'static [&'static str],
    /// Serves the API until what it returns is dropped.
    serve: fn(&Options, zone: &str, TcpListener) -> std::io::Result<Box<dyn Any>>,
}

const CLOUDS: &[SimulatedCloud] = &[
    SimulatedCloud {
        name: "binarylane",
        zones: &["bne", "syd", "mel", "per", "adl", "sin"],
        serve: binarylane,
    },
    SimulatedCloud { name: "brightbox", zones: &["gb1-a", "gb1-b", "gb1s-a", "gb1s-b"], serve: brightbox },
    SimulatedCloud { name: "cloudscale", zones: &["rma1", "lpg1"], serve: cloudscale },
];

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CLOUDS.iter().map(|cloud| cloud.name))
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Whose API.
    #[arg(long, value_parser = names())]
    provider: String,
    /// Address and port to listen on; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Servers that are there from the beginning, called node-1, node-2 and so on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    instances: usize,
    /// The zone of these servers, and of what is made without one; the first of the cloud's by default.
    #[arg(long)]
    zone: Option<String>,
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
    let Some(cloud) = CLOUDS.iter().find(|cloud| cloud.name == options.provider) else {
        return Err(format!("no simulated cloud is called {}", options.provider).into());
    };
    let zone = options.zone.as_deref().or(cloud.zones.first().copied()).unwrap_or_default();
    if !cloud.zones.contains(&zone) {
        return Err(format!("--zone {zone:?} must be one of {}", cloud.zones.join(", ")).into());
    }
    let stop = Stop::listen()?;
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let served = (cloud.serve)(&options, zone, listener)?;
    let token = if options.token.is_some() { "the token given" } else { "any token" };
    let instances = options.instances;
    writeln!(std::io::stdout(), "listening on http://{address}, {instances} servers, {token} will do")?;
    stop.told().await;
    drop(served);
    Ok(())
}

fn binarylane(options: &Options, zone: &str, listener: TcpListener) -> std::io::Result<Box<dyn Any>> {
    use binarylane_sim::{Access, Cloud, SimSettings, serve};
    let &Options { latency, build, boot, instances, .. } = options;
    let default_region = zone.to_owned();
    let settings = SimSettings { latency, build, boot, instances, default_region, ..SimSettings::default() };
    let cloud = Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
    if let Some(token) = &options.token {
        cloud.set_tokens([(token.as_str(), Access::Own)]);
    }
    Ok(Box::new(serve(&cloud, listener)?))
}

/// A token given is the secret of the one API client that is let in.
fn brightbox(options: &Options, zone: &str, listener: TcpListener) -> std::io::Result<Box<dyn Any>> {
    use brightbox_sim::{Cloud, Delays, SimSettings, serve};
    let &Options { latency, build, boot, instances, .. } = options;
    let delays = Delays { build, boot, ..Delays::default() };
    let (default_zone, open) = (zone.to_owned(), options.token.is_none());
    let settings = SimSettings { latency, delays, instances, default_zone, open, ..SimSettings::default() };
    let cloud = Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
    if let Some(secret) = &options.token {
        cloud.set_credentials("cli-sim00", secret);
    }
    Ok(Box::new(serve(&cloud, listener)?))
}

fn cloudscale(options: &Options, zone: &str, listener: TcpListener) -> std::io::Result<Box<dyn Any>> {
    use cloudscale_sim::{Access, Cloud, SimSettings, serve};
    let &Options { latency, build, boot, instances, .. } = options;
    let default_zone = zone.to_owned();
    let settings = SimSettings { latency, build, boot, instances, default_zone, ..SimSettings::default() };
    let cloud = Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
    if let Some(token) = &options.token {
        cloud.set_tokens([(token.as_str(), Access::ReadWrite)]);
    }
    Ok(Box::new(serve(&cloud, listener)?))
}
