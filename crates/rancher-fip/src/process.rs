//! The program as a process: from arguments to an exit code.

use std::{ffi::OsString, fmt, io::Write as _, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Error, Random, Result, provider::Boxed};
use cloudberth_http::{
    Env,
    surroundings::{SystemClock, environment, random_from_os},
};
use cloudberth_runtime::{
    connect::{
        Dialler, Throttle,
        kubeconfig::{explain, from_bytes},
    },
    metrics::{
        Counter, ElectionMetrics, QueueMetrics, Registry, RestMetrics, manager::register_dropped, render,
    },
};
use cloudberth_serving::{
    Bind, Check, CheckFn, Checks, Limits, Metrics as PortMetrics, Pages, Server, Thread, listen,
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, Registry as LogRegistry, layer::SubscriberExt};

use crate::{
    helm::{BinaryHelm, HelmSettings},
    metrics::FipMetrics,
    options::{self, EXIT_USAGE, Options, Output, Request, Source, log_level, source},
    shell::{Dial, Ended, Parts, Replica},
};

/// The name of the program that this replaces.
pub const PROGRAM: &str = "rancher-fip-cluster-manager";

/// The exit code for everything that ends the program against its will.
const EXIT_FATAL: u8 = 1;
/// How long the management cluster may take to be listed for a plan.
const PLAN_PATIENCE: Duration = Duration::from_secs(60);

/// Runs the cluster manager. `program` is the name that help shows, `args` what follows it.
pub fn cluster_manager(program: &str, args: Vec<OsString>) -> ExitCode {
    started(program, args, false)
}

/// Says what [`cluster_manager`] would do with the same flags, and does nothing.
pub fn plan(program: &str, args: Vec<OsString>) -> ExitCode {
    started(program, args, true)
}

fn started(program: &str, args: Vec<OsString>, dry: bool) -> ExitCode {
    let args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned());
    let options = match options::parse(program, args) {
        Request::Run(options) => *options,
        Request::Help(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Request::Mistake(text) => return complain(&text, EXIT_USAGE),
    };
    let env: Env = environment().into_iter().collect();
    log(&options, &env);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("Error: {why}\n"), EXIT_FATAL),
    };
    let ended = runtime.block_on(async {
        let surroundings = Surroundings::new();
        let kube = configure(&options, &env).await?;
        if dry {
            preview(options, &kube, &surroundings).await
        } else {
            serve(options, &kube, &surroundings).await
        }
    });
    ended.unwrap_or_else(|why| complain(&format!("Error: {}\n", why.message()), EXIT_FATAL))
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// Installs the log.
fn log(options: &Options, env: &Env) {
    let (level, odd) = log_level(env.get("LOGLEVEL"));
    let shown = tracing_subscriber::filter::filter_fn(move |about| is_shown(about, level));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let layer: Box<dyn Layer<LogRegistry> + Send + Sync> = if options.json_log {
        Box::new(lines.json().flatten_event(true).with_filter(shown))
    } else {
        Box::new(lines.with_filter(shown))
    };
    // A program that embeds this one may have a log already.
    let _ = tracing::subscriber::set_global_default(LogRegistry::default().with(layer));
    if odd {
        tracing::warn!("LOGLEVEL is not a level that is known; info is used");
    }
}

/// Whether the log shows what is said about this, at this level.
pub(crate) fn is_shown(about: &tracing::Metadata<'_>, level: LevelFilter) -> bool {
    // This module logs answers that it cannot read in full, Secrets among them (law 10).
    if about.target() == "kube_client::client" {
        return false;
    }
    let ours = about.target().starts_with("cloudberth") || level == LevelFilter::TRACE;
    *about.level() <= if ours { level } else { level.min(LevelFilter::WARN) }
}

/// Time and chance, as the system has them.
struct Surroundings {
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
}

impl Surroundings {
    fn new() -> Self {
        Self { clock: Arc::new(SystemClock::new()), random: Arc::new(random_from_os()) }
    }
}

/// The way to the management cluster.
async fn configure(options: &Options, env: &Env) -> Result<Config> {
    let inside = Config::incluster();
    let from = source(&options.kubeconfig, env, inside.is_ok());
    if let Some(warning) = from.odd(&options.context) {
        tracing::warn!("{warning}");
    }
    match from {
        Source::InCluster => inside.map_err(|why| Error::user_input(why.to_string())),
        Source::Files(files) => from_files(&files, &options.context).await,
    }
}

/// The context of these files, of which those that do not exist are left out.
async fn from_files(files: &[PathBuf], context: &str) -> Result<Config> {
    let mut all: Option<Kubeconfig> = None;
    let there: Vec<_> = files.iter().filter(|path| files.len() == 1 || path.exists()).collect();
    let named: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    let wrong = |text: String| Error::user_input(format!("kubeconfig {}: {text}", named.join(":")));
    for path in there {
        let file = Kubeconfig::read_from(path).map_err(|why| wrong(explain(&why)))?;
        all = Some(match all {
            Some(before) => before.merge(file).map_err(|why| wrong(explain(&why)))?,
            None => file,
        });
    }
    let Some(all) = all else { return Err(wrong("there is no such file".to_owned())) };
    if !context.is_empty() && !all.contexts.iter().any(|known| known.name == context) {
        return Err(wrong(format!("--kubecontext: there is no context {context:?}")));
    }
    let context = (!context.is_empty()).then(|| context.to_owned());
    let chosen = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(all, &chosen).await.map_err(|why| wrong(explain(&why)))
}

/// Makes clients of downstream clusters, from kubeconfigs that hold everything themselves.
struct Network {
    rest: RestMetrics,
    clock: Arc<dyn Clock>,
}

impl Dial for Network {
    fn dial<'a>(&'a self, kubeconfig: &'a [u8]) -> Boxed<'a, Result<Client>> {
        Box::pin(async move {
            let config = from_bytes(kubeconfig).await?;
            let dialler = Dialler { config: &config, ceiling: &Throttle::none(), metrics: &self.rest };
            dialler.client(PROGRAM, &self.clock)
        })
    }
}

/// What is measured.
#[derive(Clone, Debug, Default)]
struct Measures {
    rest: RestMetrics,
    queues: QueueMetrics,
    election: ElectionMetrics,
    ours: FipMetrics,
    dropped: Counter,
}

impl Measures {
    fn register(&self, registry: &mut Registry) {
        self.rest.register(registry);
        self.queues.register(registry);
        self.election.register(registry);
        self.ours.register(registry);
        register_dropped(registry, &self.dropped);
    }
}

fn replica(options: Options, kube: &Config, around: &Surroundings, measures: &Measures) -> Result<Replica> {
    let Surroundings { clock, random } = around;
    let dialler = Dialler { config: kube, ceiling: &Throttle::none(), metrics: &measures.rest };
    let source = SystemRandom::new();
    let tokens = move || {
        let mut bytes = [0; 16];
        source.fill(&mut bytes).map_err(|_| Error::temporary("the system has no random bytes"))?;
        Ok(bytes)
    };
    let directory = std::env::current_dir().unwrap_or_default();
    let mut helm = HelmSettings::new(std::env::temp_dir(), directory, std::env::vars_os().collect());
    helm.program.clone_from(&options.helm);
    helm.timeout = options.delays.helm_timeout;
    Ok(Replica::new(Parts {
        client: dialler.client(PROGRAM, clock)?,
        lease_client: dialler.client("rancher-fip-cluster-manager/leader-election", clock)?,
        identity: random.uuid(),
        dial: Arc::new(Network { rest: measures.rest.clone(), clock: Arc::clone(clock) }),
        helm: Arc::new(BinaryHelm::new(helm)),
        clock: Arc::clone(clock),
        random: Arc::clone(random),
        tokens: Arc::new(tokens),
        metrics: measures.ours.clone(),
        queues: measures.queues.clone(),
        events_dropped: measures.dropped.clone(),
        options,
    }))
}

async fn preview(options: Options, kube: &Config, around: &Surroundings) -> Result<ExitCode> {
    let output = options.output;
    // Nothing is written, so nobody has to lead.
    let options = Options { leader_elect: false, ..options };
    let plan = replica(options, kube, around, &Measures::default())?.dry_run(PLAN_PATIENCE).await;
    let text = match output {
        Output::Text => plan.to_text(),
        Output::Json => plan.to_json(),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|why| Error::permanent(format!("the plan could not be printed: {why}")))?;
    Ok(ExitCode::from(plan.exit_code()))
}

/// Works until a signal, or until the Lease is lost. A second signal does not wait.
async fn serve(options: Options, kube: &Config, around: &Surroundings) -> Result<ExitCode> {
    let refused = |why: std::io::Error| Error::permanent(format!("signals cannot be received here: {why}"));
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate()).map_err(refused)?,
        signal(SignalKind::interrupt()).map_err(refused)?,
    );
    let mut told = async || {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let measures = Measures::default();
    let mut registry = Registry::default();
    measures.register(&mut registry);
    let address = options.serve;
    let replica = Arc::new(replica(options, kube, around, &measures)?);
    let _port = match address {
        Some(address) => Some(open(address, &replica, registry, &measures, around)?),
        None => None,
    };
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let mut work = std::pin::pin!(replica.run(async {
        let _ = stopping.await;
    }));
    tokio::select! {
        biased;
        () = told() => {}
        ended = &mut work => return Ok(exit(ended)),
    }
    drop(stop);
    tokio::select! {
        biased;
        () = told() => Ok(complain("stopped at once\n", EXIT_FATAL)),
        ended = &mut work => Ok(exit(ended)),
    }
}

fn exit(ended: Ended) -> ExitCode {
    match ended {
        Ended::Stopped => ExitCode::SUCCESS,
        Ended::CutShort => complain("Error: work under way did not end in time\n", EXIT_FATAL),
        Ended::LostLease => complain("Error: the Lease was lost\n", EXIT_FATAL),
    }
}

/// Health and metrics, on a thread of their own, until the result is dropped.
fn open(
    address: std::net::SocketAddr,
    replica: &Arc<Replica>,
    mut registry: Registry,
    measures: &Measures,
    around: &Surroundings,
) -> Result<Thread> {
    let failed = |why: String| Error::permanent(why);
    let bind =
        Bind { address: address.ip(), port: address.port(), share_port: false, flags: "--serve-address" };
    let listener = listen(&bind).map_err(|why| failed(why.to_string()))?;
    let listener = listener.ok_or_else(|| failed("--serve-address: the port is 0".to_owned()))?;
    let port_metrics = PortMetrics::register(&mut registry);
    let (healthz, livez, readyz) = (Checks::default(), Checks::default(), Checks::default());
    let election = replica.election().cloned();
    let lease: Arc<dyn Check> = Arc::new(CheckFn::new("leaderElection", {
        let election = election.clone();
        move |_| election.as_ref().map_or(Ok(()), |election| election.health().map_err(|why| why.to_string()))
    }));
    healthz.add([Arc::clone(&lease)]);
    livez.add([lease]);
    let ready = Arc::clone(replica);
    readyz.add([Arc::new(CheckFn::new("configuration", move |_| ready.not_ready())) as Arc<dyn Check>]);
    let leads = measures.election.clone();
    let pages = Pages {
        healthz,
        livez,
        readyz,
        metrics: Arc::new(move || {
            if let Some(election) = &election {
                leads.leads(election.lease(), election.leads());
            }
            render(&registry)
        }),
        guarded: None,
    };
    let thread = Thread::start("port").map_err(|why| failed(why.to_string()))?;
    let clock = Arc::clone(&around.clock);
    drop(thread.spawn(async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                Server::plain(listener, pages, Limits::default(), port_metrics, clock)
                    .run(std::future::pending())
                    .await;
            }
            Err(why) => tracing::error!(%why, "the port cannot be served"),
        }
    }));
    Ok(thread)
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
        clusters: [{name: a, cluster: {server: https://10.0.0.1}}, {name: b, cluster: {server: https://10.0.0.2}}]\n\
        contexts: [{name: a, context: {cluster: a, user: u}}, {name: b, context: {cluster: b, user: u}}]\n\
        users: [{name: u, user: {token: s3cr3t}}]\n";

    #[tokio::test]
    async fn a_context_is_chosen_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        std::fs::write(&path, TWO).unwrap();
        let of = async |context: &str| from_files(std::slice::from_ref(&path), context).await;
        assert_eq!(of("").await.unwrap().cluster_url.host(), Some("10.0.0.1"), "RF-5");
        assert_eq!(of("b").await.unwrap().cluster_url.host(), Some("10.0.0.2"), "RF-6");
        let why = of("missing").await.unwrap_err();
        assert!(why.message().contains("no context \"missing\""), "RF-7 {why}");
        let missing = from_files(&[dir.path().join("none")], "").await.unwrap_err();
        assert!(!missing.message().is_empty());
        let both = [dir.path().join("none"), path.clone()];
        assert!(from_files(&both, "").await.is_ok(), "a file of the list that is not there is left out");
    }

    #[tokio::test]
    async fn a_downstream_cluster_is_reached_through_its_proxy_with_its_token_and_its_ca() {
        use embedded_kube::{Config as KubeSettings, KubeApi, Tls, serve};
        let prefix = KubeSettings { path_prefix: "/k8s/clusters/c-1".to_owned(), ..KubeSettings::default() };
        let api =
            KubeApi::with_config(&prefix, sim_kit::Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served =
            serve(&api, listener, Some(Tls::for_loopback().unwrap()), Some("t0ken".to_owned())).unwrap();
        let network = Network { rest: RestMetrics::default(), clock: Arc::new(SystemClock::new()) };
        let read = async |kubeconfig: &str| {
            let client = network.dial(kubeconfig.as_bytes()).await?;
            let request = http::Request::get("/api/v1/namespaces/default").body(Vec::new()).unwrap();
            let answer = client.request::<serde_json::Value>(request).await;
            answer.map_err(|why| cloudberth_runtime::api_error::translate(&why))
        };
        let kubeconfig = served.kubeconfig();
        assert_eq!(read(&kubeconfig).await.unwrap()["metadata"]["name"], "default", "RF-44 RF-45");
        let why = read(&kubeconfig.replace("t0ken", "other")).await.unwrap_err();
        assert_eq!(why.category(), cloudberth_core::Category::Unauthorised, "RF-45 RF-47 the token is sent");
        let direct = kubeconfig.replace("/k8s/clusters/c-1", "");
        assert!(read(&direct).await.is_err(), "RF-44 the prefix is sent");
        assert!(read("current-context: nope").await.is_err(), "RF-43");
    }

    #[test]
    fn only_who_was_told_to_stop_ends_well() {
        let code = |ended| format!("{:?}", exit(ended));
        assert_eq!(code(Ended::Stopped), format!("{:?}", ExitCode::SUCCESS), "RF-191");
        assert_ne!(code(Ended::LostLease), format!("{:?}", ExitCode::SUCCESS), "RF-189");
        assert_ne!(code(Ended::CutShort), format!("{:?}", ExitCode::SUCCESS));
    }
}
