//! Keeps the trusted authorities up to date, from files and from the cluster's `ConfigMap`.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Random, rate::Backoff};
use futures_util::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, runtime::watcher::watch_object};
use tokio::time::{sleep, timeout};

use super::{
    Authentication,
    headers::ProxyHeaders,
    trust::{ClusterTrust, Proxies, Trust},
};
use crate::{
    error::{Error, Result},
    tls::{clients::Pool, material},
};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// How long the first read may take.
const TIMEOUT: Duration = Duration::from_secs(10);
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// A file with authorities, and its content when it was last loaded.
#[derive(Debug)]
struct AuthorityFile {
    flag: &'static str,
    path: PathBuf,
    content: Mutex<Vec<u8>>,
}

impl AuthorityFile {
    fn open(flag: &'static str, path: &Path) -> Result<(Self, Pool)> {
        let content = material::read(flag, path)?;
        let pool = Pool::from_pem(&content)
            .map_err(|why| Error::new(format!("{flag}: {} cannot be used: {why}", path.display())))?;
        Ok((Self { flag, path: path.to_owned(), content: Mutex::new(content) }, pool))
    }

    /// The new authorities if the file changed and can be used.
    fn changed(&self) -> Result<Option<Pool>> {
        let mut held = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let content = material::read(self.flag, &self.path)?;
        if *held == content {
            return Ok(None);
        }
        let pool = Pool::from_pem(&content).map_err(|why| {
            Error::new(format!("{}: {} cannot be used: {why}", self.flag, self.path.display()))
        })?;
        *held = content;
        Ok(Some(pool))
    }
}

/// The authorities in force, kept current from their sources. If a source fails later, the last good ones stay in force.
pub(crate) struct TrustStore {
    trust: Mutex<Arc<Trust>>,
    clients: Option<AuthorityFile>,
    proxies: Option<AuthorityFile>,
    headers: ProxyHeaders,
    /// Where the `ConfigMap` is read; none if files give everything or the lookup is off.
    cluster: Option<Api<ConfigMap>>,
    random: Arc<Random>,
}

impl TrustStore {
    pub(crate) async fn open(options: &Authentication, random: Arc<Random>) -> Result<Self> {
        let mut trust = Trust::default();
        let (mut clients, mut proxies) = (None, None);
        if let Some(path) = &options.client_ca_file {
            let (file, pool) = AuthorityFile::open("--client-ca-file", path)?;
            (clients, trust.clients) = (Some(file), Some(pool));
        }
        if let Some(path) = &options.proxy_ca_file {
            let (file, pool) = AuthorityFile::open("--requestheader-client-ca-file", path)?;
            trust.proxies = Some(Proxies { pool, headers: options.proxy_headers.clone() });
            proxies = Some(file);
        }
        let lacking = (clients.is_none() || proxies.is_none()) && !options.skip_lookup;
        let cluster = options.client.as_ref().filter(|_| lacking).map(config_maps);
        if lacking && cluster.is_none() {
            tracing::warn!(
                "no client to read ConfigMap {NAMESPACE}/{NAME} with: client certificates are not accepted; \
                 set --authentication-kubeconfig, or --client-ca-file and --requestheader-client-ca-file"
            );
        }
        let trust_store = Self {
            trust: Mutex::new(Arc::new(trust)),
            clients,
            proxies,
            headers: options.proxy_headers.clone(),
            cluster,
            random,
        };
        trust_store.first_look(options.tolerate_lookup_failure).await?;
        Ok(trust_store)
    }

    pub(crate) fn current(&self) -> Arc<Trust> {
        Arc::clone(&self.lock())
    }

    /// Follows changes; never ends.
    pub(crate) async fn follow(&self, every: Duration) {
        tokio::join!(self.follow_files(every), self.follow_cluster());
    }

    async fn first_look(&self, tolerate: bool) -> Result<()> {
        let Some(api) = &self.cluster else { return Ok(()) };
        let found = match timeout(TIMEOUT, api.get_opt(NAME)).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        };
        let problem = match found {
            Ok(None) => {
                tracing::warn!("ConfigMap {NAMESPACE}/{NAME} does not exist; waiting for it");
                None
            }
            Ok(Some(map)) => self.take(&map),
            Err(why) => Some(why),
        };
        match problem {
            // Without an authority for clients, nobody can use a certificate; that alone is no reason to stop.
            Some(why) if self.proxies.is_none() && !tolerate => Err(Error::new(format!(
                "cannot learn from ConfigMap {NAMESPACE}/{NAME} whom to trust: {why}; grant the right to read it, or \
                 set --authentication-tolerate-lookup-failure or --authentication-skip-lookup"
            ))),
            Some(why) => {
                tracing::warn!("cannot learn from ConfigMap {NAMESPACE}/{NAME} whom to trust: {why}");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Applies the readable parts that no file gives. Returns what is wrong with the part about front proxies.
    fn take(&self, map: &ConfigMap) -> Option<String> {
        let announced = ClusterTrust::read(&map.data.clone().unwrap_or_default());
        let mut trust = Trust::clone(&self.current());
        match announced.clients.filter(|_| self.clients.is_none()) {
            Some(Ok(pool)) => trust.clients = Some(pool),
            Some(Err(why)) => tracing::warn!("ConfigMap {NAMESPACE}/{NAME}: {why}"),
            None => {}
        }
        let problem = match announced.proxies.filter(|_| self.proxies.is_none()) {
            Some(Ok(proxies)) => {
                trust.proxies = Some(proxies);
                None
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        *self.lock() = Arc::new(trust);
        problem
    }

    async fn follow_cluster(&self) {
        let Some(api) = &self.cluster else { return };
        let mut failures = 0_u32;
        let changes = watch_object(api.clone(), NAME);
        pin_mut!(changes);
        while let Some(change) = changes.next().await {
            match change {
                Ok(Some(map)) => {
                    failures = 0;
                    if let Some(why) = self.take(&map) {
                        tracing::warn!("ConfigMap {NAMESPACE}/{NAME}: {why}");
                    }
                }
                // The last content stays in force.
                Ok(None) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "cannot watch ConfigMap {NAMESPACE}/{NAME}");
                    failures = failures.saturating_add(1);
                    sleep(self.random.jitter(BACKOFF.after(failures), 0.2)).await;
                }
            }
        }
    }

    async fn follow_files(&self, every: Duration) {
        if self.clients.is_none() && self.proxies.is_none() {
            return;
        }
        loop {
            sleep(every).await;
            self.look_at_files();
        }
    }

    fn look_at_files(&self) {
        let changed = |file: &Option<AuthorityFile>| {
            let result = file.as_ref()?.changed();
            result
                .inspect_err(
                    |error| tracing::warn!(%error, "reloading authorities failed; keeping those in use"),
                )
                .ok()
                .flatten()
        };
        let (clients, proxies) = (changed(&self.clients), changed(&self.proxies));
        if clients.is_none() && proxies.is_none() {
            return;
        }
        let mut trust = Trust::clone(&self.current());
        if clients.is_some() {
            trust.clients = clients;
        }
        if let Some(pool) = proxies {
            trust.proxies = Some(Proxies { pool, headers: self.headers.clone() });
        }
        *self.lock() = Arc::new(trust);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Trust>> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}

impl std::fmt::Debug for TrustStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustStore")
            .field("asks_the_cluster", &self.cluster.is_some())
            .finish_non_exhaustive()
    }
}
