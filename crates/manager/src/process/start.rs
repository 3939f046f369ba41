//! From options to a replica and a port that are ready to run.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cloudberth_controllers::{
    clouds::{Clouds, Member},
    context::ControllerContext,
    controller_set::ControllerSettings,
};
use cloudberth_core::{Clock, Error, Random, Result, call::ReadOnly, provider::Provider, rights::Right};
use cloudberth_http::{
    Attempt, Env, Notes, Observer, ProviderContext, ProviderFactory, surroundings::SystemResolver,
};
use cloudberth_runtime::{
    cluster::Cluster,
    connect::{Ceiling, Dialler, Throttle},
    metrics::{Metrics, Registry, clouds::CloudMeter},
    recorder::EventRecorder,
};
use cloudberth_serving::{Metrics as PortMetrics, Server, Thread};
use futures_util::future::{Shared, join, try_join_all};
use kube::{Client, Config};

use super::{BUILD, Mistakes, identity};
use crate::{
    command::CommandLine,
    configz::configz,
    connect::{Address, configure},
    heartbeat::Heartbeat,
    late::{self, LateProvider},
    logging::Verbosity,
    options::{Options, Serving},
    plan::{Plan, run_plan},
    program::build_info,
    replica::{Parts, Replica},
    rights::RIGHTS,
    selfcheck,
    serve::{self, Port, Reviewers},
    settings,
};

/// How long the cluster may take to list what a plan is about.
const LISTING_PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Found {
    kube: Config,
    clouds: Vec<Arc<dyn Provider>>,
    /// Those of the clouds that did not answer when they were started.
    late: Vec<Arc<LateProvider>>,
    port: Option<Port>,
    metrics: Metrics,
    registry: Registry,
    /// The rights that the chosen clouds need in the cluster.
    rights: Vec<Right>,
    /// To be logged once there is a log.
    pub(super) notes: Notes,
}

impl Found {
    /// Starts the clouds, and gives the reasons of those that refuse for good.
    pub(super) async fn start_clouds(&mut self, clock: &Arc<dyn Clock>) -> Mistakes {
        let begun = late::begin(std::mem::take(&mut self.clouds), clock).await;
        (self.clouds, self.late) = (begun.clouds, begun.late);
        begun.refused
    }
}

/// Finds everything that the options name, or reports everything that cannot be found or used.
pub(super) async fn find(
    line: &CommandLine,
    factories: &[ProviderFactory],
    env: &Env,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Found, Mistakes> {
    let options = &line.options;
    let mut mistakes = Mistakes::new();
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    metrics.manager.set_build(&build_info(&BUILD));
    let address =
        Address { kubeconfig: options.kube.kubeconfig.clone(), master: options.kube.master.clone() };
    let kube = configure(&address).await.map_err(|why| mistakes.push(why)).ok();
    let given = line.given();
    let (mut clouds, mut rights, notes) = (Vec::new(), RIGHTS.to_vec(), Notes::default());
    let chosen = options
        .clouds
        .providers
        .iter()
        .filter_map(|name| factories.iter().find(|factory| factory.name == name));
    for factory in chosen {
        rights.extend(factory.rights);
        let meter = metrics.clouds.cloud(&mut registry, factory.name);
        let ctx = ProviderContext {
            env,
            config: options.clouds.config_files.get(factory.name).map(PathBuf::as_path),
            given: &given,
            cluster_name: &options.clouds.cluster_name,
            observer: Arc::new(CountCalls(meter)),
            clock: Arc::clone(clock),
            random: Arc::clone(random),
            resolver: Arc::new(SystemResolver::new(Arc::clone(clock))),
            notes: &notes,
        };
        match (factory.open)(&ctx) {
            Ok(cloud) => clouds.push(cloud),
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|why| why.context(factory.name))),
        }
    }
    // A port that is in use is no mistake of the settings of a program that is not going to start anyway.
    // A plan serves no pages.
    let starts = mistakes.is_empty() && line.mistakes.is_empty() && !options.dry_run;
    let wanted = options.serving.as_ref().filter(|_| starts);
    let port = match wanted.map(|serving| Port::open(serving, clock)).transpose() {
        Ok(port) => port,
        Err(wrong) => {
            mistakes.extend(wrong);
            None
        }
    };
    match kube {
        Some(kube) if mistakes.is_empty() => {
            Ok(Found { kube, clouds, late: Vec::new(), port, metrics, registry, rights, notes })
        }
        _ => Err(mistakes),
    }
}

#[derive(Debug)]
struct CountCalls(CloudMeter);

impl Observer for CountCalls {
    fn attempted(&self, attempt: Attempt) {
        self.0.attempted(attempt.operation, attempt.status, attempt.outcome, attempt.took);
    }

    fn waited(&self, _operation: &'static str, wait: Duration) {
        self.0.waited(wait);
    }
}

/// A program that is ready to run.
pub(super) struct Started {
    replica: Arc<Replica>,
    late: Vec<Arc<LateProvider>>,
    /// A thread of its own, and what is to run there: strangers must not hold up the one that renews the Lease.
    server: Option<(Thread, Server)>,
    heart: Heartbeat,
    client: Client,
    rights: Vec<Right>,
    lease_namespace: String,
}

/// Puts everything together. From here on only the cluster can cause an error.
pub(super) async fn begin(
    line: &CommandLine,
    found: Found,
    verbosity: Verbosity,
    env: &Env,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Started> {
    let options = &line.options;
    let Found { kube, clouds, late, port, metrics, mut registry, rights, notes: _ } = found;
    let ceiling = throttle(options, clock);
    let main = Dialler { config: &kube, ceiling: &ceiling, metrics: &metrics.rest };
    // A renewal must not wait in the line of other requests.
    let unhindered = Dialler { ceiling: &Throttle::none(), ..main.clone() };
    let client = main.client("cloudberth/cloud-controller-manager", clock)?;
    let who = identity(env, random);
    let election = options.election.as_ref();
    let leaders = election.and_then(|election| election.migration.as_ref());
    let leaders = leaders.map(|migration| migration.controller_leaders.as_slice()).unwrap_or_default();
    let [controllers, moved] = settings::by_lock(&options.controllers, leaders);
    let parts = Parts {
        client: client.clone(),
        lease_client: unhindered.client("cloudberth/leader-election", clock)?,
        clouds: members(options, clouds),
        default_cloud: options.clouds.default_provider.clone(),
        cluster_name: options.clouds.cluster_name.clone(),
        controllers,
        election: election.map(|election| election.config(&who)),
        migration: election
            .and_then(|election| election.migration_config(&who))
            .map(|config| (config, moved)),
        metrics: metrics.clone(),
        clock: Arc::clone(clock),
        random: Arc::clone(random),
    };
    let replica = Arc::new(Replica::new(parts)?);
    let heart = Heartbeat::new(clock);
    let server = match (port, &options.serving) {
        (Some(port), Some(serving)) => {
            port.notices().for_each(|notice| tracing::warn!("{notice}"));
            let port_metrics = PortMetrics::register(&mut registry);
            let config = configz(&line.flags, options);
            let pages = serve::pages(&replica, heart.clone(), registry, config, verbosity, serving.profiling);
            let thread = Thread::start("port").map_err(|why| Error::permanent(why.to_string()))?;
            let (serving, clock, random) = (serving.clone(), Arc::clone(clock), Arc::clone(random));
            // Strangers at the port cause requests to the cluster; these must not use up the controllers' budget.
            let (kube, ceiling, rest) = (kube.clone(), throttle(options, &clock), metrics.rest.clone());
            // The clients that ask about callers belong to the thread that they are made on.
            let opened = thread.spawn(async move {
                let main = Dialler { config: &kube, ceiling: &ceiling, metrics: &rest };
                let reviewers = reviewers(&serving, &main, &clock).await?;
                let guard = serve::guard(&serving, reviewers, port_metrics, &clock, &random).await?;
                serve::server(port, guard, pages, &serving, &clock)
            });
            let server = opened.await.map_err(|why| Error::permanent(format!("the port ended: {why}")))??;
            Some((thread, server))
        }
        _ => None,
    };
    let lease_namespace = election.map(|election| election.namespace.clone()).unwrap_or_default();
    Ok(Started { replica, late, server, heart, client, rights, lease_namespace })
}

/// What would be done to the cluster now. There is no election, no port, and no claim to write.
pub(super) async fn preview(
    line: &CommandLine,
    found: Found,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Plan> {
    let options = &line.options;
    let ceiling = throttle(options, clock);
    let dialler = Dialler { config: &found.kube, ceiling: &ceiling, metrics: &found.metrics.rest };
    let client = dialler.client("cloudberth/plan", clock)?;
    let default_cloud = options.clouds.default_provider.clone();
    let clouds = Clouds::new(members(options, found.clouds), default_cloud, clock)?;
    let cluster =
        Cluster::new(client, Arc::clone(clock), Arc::new(ReadOnly)).with_endpoints(clouds.need_endpoints());
    let ctx = ControllerContext {
        recorder: EventRecorder::new(cluster.writer().clone(), Arc::clone(random)),
        cluster,
        clouds,
        metrics: found.metrics.clone(),
        random: Arc::clone(random),
        cluster_name: options.clouds.cluster_name.clone(),
    };
    let migration = options.election.as_ref().and_then(|election| election.migration.as_ref());
    let leaders = migration.map(|migration| migration.controller_leaders.as_slice()).unwrap_or_default();
    let [controllers, moved] = settings::by_lock(&options.controllers, leaders);
    // Behind which lock of ours a controller runs makes no difference to what it would do.
    let controllers = ControllerSettings {
        node: controllers.node.or(moved.node),
        lifecycle: controllers.lifecycle.or(moved.lifecycle),
        service: controllers.service.or(moved.service),
        routes: controllers.routes.or(moved.routes),
    };
    Ok(run_plan(&ctx, &controllers, LISTING_PATIENCE).await)
}

fn throttle(options: &Options, clock: &Arc<dyn Clock>) -> Throttle {
    let kube = &options.kube;
    kube.qps.map_or(Throttle::none(), |qps| {
        let ceiling = Ceiling { qps: f64::from(qps), burst: kube.burst.unwrap_or(1) };
        Throttle::new(ceiling, Arc::clone(clock))
    })
}

fn members(options: &Options, clouds: Vec<Arc<dyn Provider>>) -> Vec<Member> {
    let classes = &options.clouds.classes;
    let claimed = |name: &str| {
        let of = classes.iter().filter(|(_, provider)| *provider == name);
        of.map(|(class, _)| class.clone()).collect()
    };
    clouds
        .into_iter()
        .map(|cloud| {
            let claimed = claimed(cloud.name());
            (cloud, claimed)
        })
        .collect()
}

/// Callers are looked up with the account that the flags name, else with that of the pod, else not at all.
async fn reviewers(serving: &Serving, dialler: &Dialler<'_>, clock: &Arc<dyn Clock>) -> Result<Reviewers> {
    let client = async |kubeconfig: &Option<PathBuf>, flag: &str| -> Result<Option<Client>> {
        let config = if let Some(path) = kubeconfig {
            let address = Address { kubeconfig: Some(path.clone()), master: None };
            configure(&address).await.map_err(|why| why.context(flag))?
        } else if let Ok(config) = Config::incluster() {
            config
        } else {
            tracing::warn!("{flag} is not set and this is no pod: only what is open to everybody is served");
            return Ok(None);
        };
        let dialler = Dialler { config: &config, ..dialler.clone() };
        dialler.client("cloudberth/delegated-auth", clock).map(Some)
    };
    Ok(Reviewers {
        authentication: client(&serving.authentication.kubeconfig, "--authentication-kubeconfig").await?,
        authorization: client(&serving.authorization.kubeconfig, "--authorization-kubeconfig").await?,
    })
}

impl Started {
    /// Works until `stop`. An error is that a cloud that was late refused for good.
    pub(super) async fn run<S: Future<Output = ()> + Send>(self, stop: Shared<S>) -> Result<()> {
        let Self { replica, late, server, heart, client, rights, lease_namespace } = self;
        let (done, over) = tokio::sync::oneshot::channel::<()>();
        let refusal = OnceLock::new();
        let (refuse, refused) = tokio::sync::oneshot::channel::<()>();
        let starts = async {
            if let Err(why) = try_join_all(late.iter().map(|cloud| start_late(&replica, cloud))).await {
                refusal.get_or_init(|| why);
                drop(refuse);
            }
            std::future::pending::<()>().await;
        };
        let stop = async {
            tokio::select! {
                biased;
                () = stop => {}
                _ = refused => {}
            }
        };
        let work = async {
            replica.run(stop).await;
            // The pages stay up until everything else has ended.
            drop(done);
        };
        let pages = async {
            if let Some((thread, server)) = server {
                let over = async {
                    let _ = over.await;
                };
                if let Err(why) = thread.spawn(server.run(over)).await {
                    tracing::error!(%why, "the port is not served any more");
                }
            }
        };
        let look = async {
            look_around(&replica, &client, &rights, &lease_namespace).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            _ = join(work, pages) => {}
            () = look => {}
            () = starts => {}
            () = heart.run() => {}
        }
        refusal.into_inner().map_or(Ok(()), Err)
    }
}

/// Starts a late cloud until it is ready, and keeps its listing, which `/readyz` shows, up to date with that.
async fn start_late(replica: &Replica, late: &LateProvider) -> Result<()> {
    let ctx = replica.ctx();
    let inventory = ctx.clouds.with_instances().find(|cloud| cloud.name() == late.name());
    let inventory = inventory.map(|cloud| &cloud.inventory);
    if let Some(inventory) = inventory {
        inventory.listing(ctx.clock().now()).await;
    }
    late.until_ready(ctx.clock(), &ctx.random).await?;
    let ready = ctx.clock().now();
    // After a failure the inventory rests for a while.
    while let Some(inventory) = inventory
        && inventory.listing(ready).await.begun < ready
    {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Logs what is wrong with the installation, once.
async fn look_around(replica: &Replica, client: &Client, rights: &[Right], lease_namespace: &str) {
    let (missing, trouble) = selfcheck::missing_rights(client, rights, lease_namespace).await;
    for missing in &missing {
        if missing.right.needed {
            tracing::error!("{missing}");
        } else {
            tracing::warn!("{missing}");
        }
    }
    if let Some(why) = trouble {
        tracing::warn!(%why, "cannot check the program's rights");
    }
    let ctx = replica.ctx();
    for cloud in ctx.clouds.with_instances() {
        if let Err(why) = &cloud.inventory.listing(ctx.clock().now()).await.answer {
            tracing::error!(cloud = cloud.name(), %why, "the instances cannot be listed; check the cloud's token and address");
        }
    }
    ctx.cluster.nodes.until_synced().await;
    let clouds: Vec<_> = ctx.clouds.iter().map(|cloud| &*cloud.provider).collect();
    let nodes = ctx.cluster.nodes.all();
    for odd in selfcheck::odd_nodes(nodes.iter().map(|node| &**node), &clouds) {
        tracing::warn!("{odd}");
    }
}
