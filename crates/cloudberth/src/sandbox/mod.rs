//! `cloudberth sandbox`: the world of the demo, left running for people to play with.

mod hints;
mod lines;
mod place;
mod screen;
mod show;
mod typed;

use std::{
    io::{self, IsTerminal as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use clap::{Args, builder::PossibleValuesParser};
use cloudberth::{
    page::{Page, Secrets},
    world::{Cluster, PERIOD, PROVIDERS, TIMING, Watched, World, WorldSettings},
};
use cloudberth_core::decide::lifecycle::Timing;
use cloudberth_http::surroundings::{SystemClock, random_from_os};
use embedded_kube::{Served, Tls, serve};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};

use self::place::Place;

/// A cluster, its cloud and the controller manager in this process, left running to play with.
///
/// Prints where the Kubernetes API is and what to try with kubectl, and shows what happens until Ctrl-C, which leaves
/// nothing behind. With Cloudlycke, requests go through real load balancers, on the loopback interface. What is typed is
/// carried out: `add`, `stop NODE`, `start NODE`, `destroy NODE`, `break errors`, `mend`, `kill`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The cloud: Cloudlycke, with traffic, or the simulated API of another one, without.
    #[arg(long, value_parser = PossibleValuesParser::new(PROVIDERS), default_value = PROVIDERS[0])]
    provider: String,
    /// Instances with nodes in the beginning.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: u32,
    /// A cluster of your own in place of the embedded Kubernetes API. It must have no cloud controller manager and no
    /// Service of type LoadBalancer.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the embedded Kubernetes API listens; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", conflicts_with = "kubeconfig")]
    listen: SocketAddr,
    /// Requests per second through each load balancer, where there is traffic.
    #[arg(long, value_name = "N", default_value_t = 10)]
    requests: u32,
    /// Serves a page with the cluster and its cloud, for a browser on this computer; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    page: Option<SocketAddr>,
}

/// With more, starting takes longer than anybody waits.
const MOST_NODES: u32 = 1000;
/// Each needs an address on the loopback interface.
const MOST_NODES_WITH_TRAFFIC: u32 = 250;
const MOST_REQUESTS: u32 = 100;

/// Runs until SIGINT or SIGTERM.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ran = match runtime {
        Ok(runtime) => {
            let ran = runtime.block_on(play(arguments));
            // Standard input may be waited for; nothing else is.
            runtime.shutdown_background();
            ran
        }
        Err(why) => Err(why.to_string()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cloudberth sandbox: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn check(&self) -> Result<(), String> {
        let most = if self.provider == PROVIDERS[0] { MOST_NODES_WITH_TRAFFIC } else { MOST_NODES };
        if self.nodes > most {
            return Err(format!("--nodes {}: {} has room for {most}", self.nodes, self.provider));
        }
        if self.requests > MOST_REQUESTS {
            return Err(format!("--requests {}: at most {MOST_REQUESTS} per second", self.requests));
        }
        if !self.listen.ip().is_loopback() {
            return Err(format!("--listen {}: a sandbox is for this computer; use 127.0.0.1", self.listen));
        }
        if let Some(page) = self.page.filter(|page| !page.ip().is_loopback()) {
            return Err(format!("--page {page}: the page is for this computer; use 127.0.0.1"));
        }
        Ok(())
    }

    fn settings(&self) -> WorldSettings {
        WorldSettings {
            provider: self.provider.clone(),
            cluster: self.kubeconfig.clone().map_or(Cluster::Embedded, Cluster::Real),
            // One that leads, and one that is ready to.
            managers: 2,
            nodes: self.nodes,
            requests_per_second: self.requests,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(random_from_os()),
        }
    }
}

/// The embedded API on a port, and the file that clients find it by.
struct Door {
    kubeconfig: PathBuf,
    _served: Served,
    _place: Place,
}

impl Door {
    async fn open(world: &World, listen: SocketAddr) -> Result<Option<Self>, String> {
        let Some(api) = world.api() else { return Ok(None) };
        let in_use = |why: io::Error| {
            let instead = if listen.port() == 0 { "" } else { "; without --listen a free port is taken" };
            format!("--listen {listen}: {why}{instead}")
        };
        let listener = TcpListener::bind(listen).await.map_err(in_use)?;
        let tls = Tls::for_loopback().map_err(|why| why.to_string())?;
        let token = random_from_os().uuid();
        let served = serve(api, listener, Some(tls), Some(token)).map_err(|why| why.to_string())?;
        let base = std::env::temp_dir();
        let no_place = |why: io::Error| format!("no kubeconfig can be written to {}: {why}", base.display());
        let (place, cleared) = Place::take(&base, &std::process::id().to_string()).map_err(no_place)?;
        for path in cleared {
            show::say(&format!("removed {}, left by a sandbox that was killed", path.display()));
        }
        let kubeconfig = place.write("kubeconfig", &served.kubeconfig()).map_err(no_place)?;
        Ok(Some(Self { kubeconfig, _served: served, _place: place }))
    }
}

async fn open_page(world: &Arc<World>, address: SocketAddr) -> Result<Page, String> {
    let failed = |why: io::Error| {
        let instead = if address.port() == 0 { "" } else { "; with port 0 a free one is taken" };
        format!("--page {address}: {why}{instead}")
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let secrets = Secrets::of_this_machine().map_err(failed)?;
    Page::serve(Arc::clone(world) as Arc<dyn Watched>, listener, secrets).map_err(failed)
}

async fn play(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;
    let mut signals = Signals::listen().map_err(|why| why.to_string())?;
    let world = tokio::select! {
        biased;
        () = signals.next() => return Ok(()),
        world = World::start(arguments.settings()) => world?,
    };
    let ended = tokio::select! {
        biased;
        () = signals.next() => Ok(()),
        ended = show_until_ended(&world, arguments) => ended,
    };
    show::say("The sandbox ends: the manager releases its Lease, load balancers close.");
    tokio::select! {
        biased;
        () = signals.next() => {}
        () = world.close() => {}
    }
    ended
}

async fn show_until_ended(world: &Arc<World>, arguments: &Arguments) -> Result<(), String> {
    let door = Door::open(world, arguments.listen).await?;
    let kubeconfig =
        door.as_ref().map(|door| door.kubeconfig.clone()).or_else(|| arguments.kubeconfig.clone());
    let kubeconfig = kubeconfig.unwrap_or_default().display().to_string();
    let mut hints = hints::commands(&arguments.provider);
    show::say(&banner(arguments, &kubeconfig, &hints));
    let page = match arguments.page {
        Some(address) => Some(open_page(world, address).await?),
        None => None,
    };
    if let Some(page) = &page {
        show::say(&format!("To open in a browser on this computer, once:\n  {}\n", page.link()));
        hints.insert(0, format!("in a browser, once: {}", page.link()));
    }
    let shown = if io::stdout().is_terminal() {
        show::live(world.as_ref(), &kubeconfig, &hints).await
    } else {
        show::plain(world.as_ref()).await
    };
    drop((door, page));
    shown.map_err(|why| why.to_string())
}

fn banner(arguments: &Arguments, kubeconfig: &str, hints: &[String]) -> String {
    let cluster = if arguments.kubeconfig.is_some() { "your Kubernetes API" } else { "a Kubernetes API" };
    let provider = &arguments.provider;
    let cloud = if *provider == PROVIDERS[0] {
        "the cloud Cloudlycke with real load balancers".to_owned()
    } else {
        format!("a simulated {provider}, without traffic")
    };
    let commands: Vec<_> = hints.iter().map(|hint| format!("  {hint}")).collect();
    let words: Vec<_> = hints::WORDS.iter().map(|(word, what)| format!("  {word:<30} {what}")).collect();
    format!(
        "A sandbox runs in this process: {cluster}, {cloud}, two replicas of the controller manager, {} nodes.\n\n  \
         export KUBECONFIG={kubeconfig}\n\nTo try in another terminal:\n{}\n\nTo type here:\n{}\n\n\
         Kubelets and what answers at node ports are played. Waits are shorter than in production: a node goes when its\n\
         instance is missing twice, {} s apart, and not within {} s after it was first seen; in production it is {} s and\n\
         {} s, and the cloud is asked every 5 s instead of every {} s. Ctrl-C ends it and leaves nothing behind.\n",
        arguments.nodes,
        commands.join("\n"),
        words.join("\n"),
        TIMING.confirm_after.as_secs(),
        TIMING.start_up_grace.as_secs(),
        Timing::LAW.confirm_after.as_secs(),
        Timing::LAW.start_up_grace.as_secs(),
        PERIOD.as_secs(),
    )
}

/// The signals that end it.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
