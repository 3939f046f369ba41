//! The embedded Kubernetes API on loopback, set up as the real control plane is.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embedded_kube::{Config, KubeApi, Served, Tls, serve};
use sim_kit::Surroundings;
use tokio::net::TcpListener;

use crate::control_plane::{PORT_ATTEMPTS, SERVICE_RANGE, free_port};
use crate::supervise::TempDir;
use crate::{Client, Credentials, Error, Kubectl, eventually};

/// The administrator's token.
const TOKEN: &str = "embedded";

/// An embedded API behind TLS and a token, for clients that cannot tell it from a real one.
///
/// It is served by the runtime that started it, which must not be blocked. Dropping it closes the port and removes its
/// files, which also happens when the process dies.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the server before its files. None while it is stopped.
    served: Mutex<Option<Served>>,
    api: KubeApi,
    tls: Tls,
    address: SocketAddr,
    authority: String,
    admin: Client,
    temp: TempDir,
}

impl Embedded {
    /// Serves a fresh cluster with the ranges that [`crate::ControlPlane`] uses.
    pub async fn start() -> Result<Self, Error> {
        Self::start_below("").await
    }

    /// The same below a path, as a proxy in front of many clusters serves each of them.
    pub async fn start_below(path_prefix: &str) -> Result<Self, Error> {
        let temp = TempDir::new()?;
        let config = Config {
            service_ranges: SERVICE_RANGE.parse().into_iter().collect(),
            path_prefix: path_prefix.to_owned(),
            ..Config::default()
        };
        let api = KubeApi::with_config(&config, Surroundings::of_this_machine());
        let listener = listen(temp.dir()).await?;
        let tls = Tls::for_loopback()?;
        let served = serve(&api, listener, Some(tls.clone()), Some(TOKEN.to_owned()))?;
        let address = served.address;
        let authority = served.authority_pem().unwrap_or_default().to_owned();
        let admin = Client::new(
            format!("https://{address}{path_prefix}"),
            &authority,
            &Credentials::Token(TOKEN.to_owned()),
        )?;
        let write = |name: &str, text: &str| {
            let path = temp.dir().join(name);
            fs::write(&path, text).map_err(Error::io("cannot write", &path))
        };
        write("admin.kubeconfig", &served.kubeconfig())?;
        write("ca.crt", &authority)?;
        Ok(Self { served: Mutex::new(Some(served)), api, tls, address, authority, admin, temp })
    }

    /// Closes the port and ends all connections. What is stored stays.
    pub fn stop(&self) {
        self.api.restart();
        drop(self.slot().take());
    }

    /// Listens again, on the same port and with the same certificate.
    pub async fn resume(&self) -> Result<(), Error> {
        self.stop();
        // The earlier server releases the port when the runtime next polls it.
        let listener = eventually(Duration::from_mins(2), "the port is free again", async || {
            TcpListener::bind(self.address).await.map_err(|why| why.to_string())
        })
        .await?;
        let served = serve(&self.api, listener, Some(self.tls.clone()), Some(TOKEN.to_owned()))?;
        *self.slot() = Some(served);
        Ok(())
    }

    fn slot(&self) -> MutexGuard<'_, Option<Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate authority that vouches for the server, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.authority
    }

    /// The administrator's token.
    pub(crate) fn token() -> &'static str {
        TOKEN
    }

    /// A directory that lives as long as this.
    pub fn dir(&self) -> &Path {
        self.temp.dir()
    }

    /// The cluster itself.
    pub fn api(&self) -> &KubeApi {
        &self.api
    }

    /// A client that may do everything.
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.temp.dir().join("admin.kubeconfig")
    }

    /// The given `kubectl`, as administrator.
    pub fn kubectl_command(&self, program: &Path) -> Kubectl {
        Kubectl {
            program: program.to_path_buf(),
            kubeconfig: self.kubeconfig(),
            home: self.temp.dir().to_path_buf(),
        }
    }
}

/// Listens on a port to which it can come back after it was stopped.
async fn listen(dir: &Path) -> Result<TcpListener, Error> {
    let mut attempt = 1;
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, free_port(dir)?)).await {
            Ok(listener) => return Ok(listener),
            Err(_) if attempt < PORT_ATTEMPTS => attempt += 1,
            Err(why) => return Err(Error::io("no port for", dir)(why)),
        }
    }
}
