//! The HTTPS port: what its pages show of a replica.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{Clock, Error, Random, Tick, error::Result};
use cloudberth_runtime::{
    cluster::Cluster,
    informer::Informer,
    metrics::{Registry, render},
    object::Watched,
};
use cloudberth_serving::{
    AlwaysAllow, Bind, CertificateSource, CertificateStore, Check, CheckFn, Checks, Guard, GuardedPages,
    Limits, Metrics, Pages, ProxyHeaders, Server, Settled, TlsSettings, listen,
};
use kube::Client;
use serde_json::Value;

use crate::{
    heartbeat::Heartbeat,
    logging::Verbosity,
    options::{CaLookup, Certificate, Serving, TlsVersion},
    replica::Replica,
};

/// A watch that has been failing for longer than this is not going to mend itself: another process may do better.
const WATCH_TOLERANCE: Duration = Duration::from_secs(300);

/// The port and its certificates, opened before anything else so that mistakes are reported at once.
#[derive(Debug)]
pub struct Port {
    listener: std::net::TcpListener,
    tls: Settled,
    certificates: Arc<CertificateStore>,
}

impl Port {
    /// Opens the port. Must be called inside a runtime, which need not be the one that serves it.
    pub fn open(serving: &Serving, clock: &Arc<dyn Clock>) -> Result<Self, Vec<Error>> {
        let mut mistakes = Vec::new();
        let mut note = |texts: Vec<String>| mistakes.extend(texts.into_iter().map(Error::user_input));
        let tls = tls(serving).settle().map_err(&mut note).ok();
        let source = certificates(serving);
        let store = CertificateStore::open(&source, serving.address, Arc::clone(clock));
        let store = store.map_err(|why| note(vec![why.to_string()])).ok();
        let bind = Bind {
            address: serving.address,
            port: serving.port,
            share_port: serving.share_port,
            flags: "--bind-address, --secure-port",
        };
        let listener = listen(&bind).map_err(|why| note(vec![why.to_string()])).ok().flatten();
        match (tls, store, listener) {
            (Some(tls), Some(store), Some(listener)) => {
                Ok(Self { listener, tls, certificates: Arc::new(store) })
            }
            _ => Err(mistakes),
        }
    }

    /// What a person should know about the settings.
    pub fn notices(&self) -> impl Iterator<Item = &String> {
        self.tls.notices.iter().chain(self.certificates.notices())
    }
}

fn tls(serving: &Serving) -> TlsSettings {
    let min_version = match serving.tls.min_version {
        TlsVersion::Tls12 => "VersionTLS12",
        TlsVersion::Tls13 => "VersionTLS13",
    };
    let suites = serving.tls.cipher_suites.iter().flatten();
    TlsSettings {
        min_version: min_version.to_owned(),
        cipher_suites: suites.map(|suite| (*suite).to_owned()).collect(),
        curves: serving.tls.groups.iter().flatten().map(|group| i32::from(*group)).collect(),
    }
}

fn certificates(serving: &Serving) -> CertificateSource {
    let (files, directory) = match &serving.certificate {
        Certificate::Files { cert, key } => (Some((cert.clone(), key.clone())), None),
        Certificate::Folder(folder) => (None, Some(folder.clone())),
        Certificate::InMemory => (None, None),
    };
    let sni = serving.sni.iter().map(|pair| (pair.cert.clone(), pair.key.clone(), pair.names.clone()));
    CertificateSource {
        files,
        directory,
        pair_name: "cloud-controller-manager".to_owned(),
        sni: sni.collect(),
    }
}

/// The clients that ask the cluster about callers; `None` where there is no account to ask with.
#[derive(Clone)]
pub struct Reviewers {
    /// For `--authentication-kubeconfig`.
    pub authentication: Option<Client>,
    /// For `--authorization-kubeconfig`.
    pub authorization: Option<Client>,
}

impl std::fmt::Debug for Reviewers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let there = (self.authentication.is_some(), self.authorization.is_some());
        f.debug_tuple("Reviewers").field(&there).finish()
    }
}

/// Who may see the pages. What it asks of the cluster later on is asked from the runtime that this is called in.
pub async fn guard(
    serving: &Serving,
    reviewers: Reviewers,
    metrics: Metrics,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Guard> {
    let (who, what) = (&serving.authentication, &serving.authorization);
    let header = &who.request_header;
    let authentication = cloudberth_serving::Authentication {
        client: reviewers.authentication,
        skip_lookup: who.lookup == CaLookup::Skip,
        tolerate_lookup_failure: who.lookup == CaLookup::Tolerate,
        token_ttl: who.token_ttl,
        client_ca_file: who.client_ca_file.clone(),
        proxy_ca_file: header.client_ca_file.clone(),
        proxy_headers: ProxyHeaders {
            allowed_names: header.allowed_names.clone(),
            username: header.username_headers.clone(),
            uid: header.uid_headers.clone(),
            group: header.group_headers.clone(),
            extra_prefix: header.extra_prefixes.clone(),
        },
    };
    let always_allow = AlwaysAllow::parse(&what.always_allow_paths);
    let authorization = cloudberth_serving::Authorization {
        client: reviewers.authorization,
        always_allow: always_allow.map_err(|mistakes| Error::user_input(mistakes.join("; ")))?,
        allowed_ttl: what.allowed_ttl,
        refused_ttl: what.denied_ttl,
    };
    let guard =
        Guard::open(&authentication, &authorization, Arc::clone(clock), Arc::clone(random), metrics).await;
    guard.map_err(|why| Error::permanent(why.to_string()))
}

/// The pages about a replica.
pub fn pages(
    replica: &Arc<Replica>,
    heart: Heartbeat,
    registry: Registry,
    configz: Value,
    verbosity: Verbosity,
    profiling: bool,
) -> Pages {
    let (healthz, livez, readyz) = (Checks::default(), Checks::default(), Checks::default());
    let lease = election_check(replica);
    healthz.add(lease.clone());
    livez.add(lease);
    livez.add(watch_checks(replica));
    livez.add([check("main-loop", move |now| heart.check(now))]);
    readyz.add(cloud_checks(replica));
    let tally = tally(replica);
    Pages {
        healthz,
        livez,
        readyz,
        metrics: Arc::new(move || {
            tally();
            render(&registry)
        }),
        guarded: Some(GuardedPages {
            configz: Arc::new(move || configz.clone()),
            verbosity: Arc::new(verbosity),
            profiling,
        }),
    }
}

/// Brings the metrics of the election up to date.
fn tally(replica: &Arc<Replica>) -> impl Fn() + Send + Sync + use<> {
    let (replica, counted) = (Arc::clone(replica), AtomicU64::new(0));
    move || {
        let Some(election) = replica.election() else { return };
        let (now, metrics) = (election.tally(), &replica.ctx().metrics.election);
        metrics.leads(election.lease(), now.master);
        let before = counted.fetch_max(now.slow_paths, Ordering::Relaxed);
        (before..now.slow_paths).for_each(|_| metrics.went_slowly(election.lease()));
    }
}

fn check(
    name: &str,
    of: impl Fn(Tick) -> std::result::Result<(), String> + Send + Sync + 'static,
) -> Arc<dyn Check> {
    Arc::new(CheckFn::new(name, of))
}

fn election_check(replica: &Arc<Replica>) -> Option<Arc<dyn Check>> {
    let election = Arc::clone(replica.election()?);
    Some(check("leaderElection", move |_| election.health().map_err(|why| why.to_string())))
}

fn watch_checks(replica: &Arc<Replica>) -> Vec<Arc<dyn Check>> {
    let Cluster { nodes, services, endpoint_slices, .. } = &replica.ctx().cluster;
    let slices = endpoint_slices.as_ref().map(watch_check);
    [watch_check(nodes), watch_check(services)].into_iter().chain(slices).collect()
}

fn watch_check<V: Watched>(informer: &Arc<Informer<V>>) -> Arc<dyn Check> {
    let informer = Arc::clone(informer);
    check(informer.scope().watch, move |now| match informer.broken_since().map(|since| now.since(since)) {
        Some(age) if age > WATCH_TOLERANCE => {
            Err(format!("the watch has been failing for {} s", age.as_secs()))
        }
        _ => Ok(()),
    })
}

/// A cloud is healthy if its newest listing succeeded, and before its first one.
fn cloud_checks(replica: &Arc<Replica>) -> Vec<Arc<dyn Check>> {
    let clouds = replica.ctx().clouds.iter();
    clouds
        .map(|cloud| {
            let inventory = Arc::clone(&cloud.inventory);
            check(cloud.name(), move |_| match inventory.newest().map(|newest| newest.answer.clone()) {
                Some(Err(why)) => Err(why.to_string()),
                _ => Ok(()),
            })
        })
        .collect()
}

impl cloudberth_serving::Verbosity for Verbosity {
    fn set(&self, level: i32) -> std::result::Result<(), String> {
        Self::set(self, level);
        Ok(())
    }
}

/// Puts the port, its guard and its pages together. Must be called inside the runtime that serves it.
pub fn server(
    port: Port,
    guard: Guard,
    pages: Pages,
    serving: &Serving,
    clock: &Arc<dyn Clock>,
) -> Result<Server> {
    let limits = Limits {
        http2: serving.http2_streams.is_some(),
        streams: serving.http2_streams.unwrap_or_default(),
        ..Limits::default()
    };
    let listener = tokio::net::TcpListener::from_std(port.listener)
        .map_err(|why| Error::permanent(format!("the port cannot be served: {why}")))?;
    let server = Server::new(listener, &port.tls, port.certificates, guard, pages, limits, Arc::clone(clock));
    server.map_err(|why| Error::permanent(why.to_string()))
}
