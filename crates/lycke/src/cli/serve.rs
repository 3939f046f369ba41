//! `cloudberth lycke serve`.

use std::{collections::BTreeSet, net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args;
use cloudberth_core::Clock;
use cloudberth_http::surroundings::{SystemClock, environment};
use tokio::net::TcpListener;

use super::{Failure, output::print};
use crate::{
    api::Api,
    control::Control,
    events::{Event, EventKind},
    plane::{
        BalancerKey, PlaneObserver,
        socket::{InheritedSockets, PlaneSettings, SocketPlane},
    },
    serve::{Prepared, Refused, balancer_line, check_listen, read_token, run as run_service},
    store::default_directory,
    vagrant::VagrantCommand,
};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The inventory file; it is read again whenever it changes.
    #[arg(long, value_name = "FILE")]
    inventory: PathBuf,
    /// Where the API listens. An address that is not on loopback needs a token; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7733")]
    listen: SocketAddr,
    /// Where load balancers are written down; by default `$XDG_STATE_HOME/cloudlycke` or `~/.local/state/cloudlycke`.
    #[arg(long, value_name = "DIRECTORY")]
    state_dir: Option<PathBuf>,
    /// A file with the token that lets clients in.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl From<Refused> for Failure {
    fn from(why: Refused) -> Self {
        Self { message: why.0, code: Refused::EXIT_CODE }
    }
}

pub(super) async fn run(options: Options) -> Result<(), Failure> {
    // If something else keeps the log already, it goes on doing so.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .with_target(false)
        .try_init();
    let token = options.token_file.as_deref().map(read_token).transpose()?;
    check_listen(options.listen, token.as_ref())?;
    let directory = options.state_dir.or_else(|| default_directory(&environment()));
    let directory =
        directory.ok_or_else(|| Refused("neither HOME is set nor a --state-dir given".to_owned()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let prepared = Prepared::new(&options.inventory, &directory, Arc::clone(&clock))?;
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|why| Refused(format!("--listen {}: {why}", options.listen)))?;
    let settings = PlaneSettings { connections: prepared.connections_total(), ..PlaneSettings::default() };
    let observer: Arc<dyn PlaneObserver> = Arc::new(prepared.events().clone());
    let inherited = InheritedSockets::of_this_process();
    let plane = SocketPlane::start_with(settings, inherited, observer, clock)?;
    let address = listener.local_addr()?;
    let control = prepared.start(Arc::new(plane));
    let api = Api::new(control.clone(), token);
    print(&format!("listening on http://{address}"))?;
    let telling = tell(&control);
    run_service(&control, api, listener, &VagrantCommand, telling).await?;
    Ok(())
}

/// Prints a line for each load balancer that something has happened to; never ends.
async fn tell(control: &Control) {
    let log = control.events();
    let mut since = log.latest();
    loop {
        log.wait(since).await;
        let (events, next) = log.after(since);
        since = next;
        for line in lines(control, &events) {
            // Nobody has to read along.
            let _ = print(&line);
        }
    }
}

fn lines(control: &Control, events: &[Event]) -> Vec<String> {
    let objects: BTreeSet<_> = events.iter().map(|event| event.object.as_str()).collect();
    let lines = objects.into_iter().filter_map(|object| {
        let mut parts = object.splitn(3, '/').map(str::to_owned);
        let key = BalancerKey { cluster: parts.next()?, namespace: parts.next()?, name: parts.next()? };
        let deleted =
            events.iter().any(|event| event.object == object && event.kind == EventKind::BalancerDeleted);
        match control.balancer(&key) {
            Some(status) => Some(balancer_line(&status)),
            None => deleted.then(|| format!("{key}  deleted")),
        }
    });
    lines.collect()
}
