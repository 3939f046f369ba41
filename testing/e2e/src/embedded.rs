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
use crate::supervise::Nest;
use crate::{Client, Credentials, Error, Kubectl, eventually};

/// Who may do everything has to say this.
const TOKEN: &str = "embedded";

/// An embedded API behind TLS and a token, for clients that cannot tell it from a real one.
///
/// It is served by the runtime that started it: nobody is answered while that runtime is blocked. Dropping it
/// closes the port and removes its files, which happens too when the process dies.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: nobody reads the files any more when they go. None while it is stopped.
    served: Mutex<Option<Served>>,
    api: KubeApi,
    tls: Tls,
    address: SocketAddr,
    authority: String,
    admin: Client,
    nest: Nest,
}

impl Embedded {
    /// Serves a fresh cluster with the ranges that [`crate::ControlPlane`] uses.
    pub async fn start() -> Result<Self, Error> {
        let nest = Nest::new()?;
        let config =
            Config { service_ranges: SERVICE_RANGE.parse().into_iter().collect(), ..Config::default() };
        let api = KubeApi::with_config(&config, Surroundings::of_this_machine());
        let listener = listen(nest.dir()).await?;
        let tls = Tls::for_loopback()?;
        let served = serve(&api, listener, Some(tls.clone()), Some(TOKEN.to_owned()))?;
        let address = served.address;
        let authority = served.authority_pem().unwrap_or_default().to_owned();
        let admin =
            Client::new(format!("https://{address}"), &authority, &Credentials::Token(TOKEN.to_owned()))?;
        let write = |name: &str, text: &str| {
            let path = nest.dir().join(name);
            fs::write(&path, text).map_err(Error::io("cannot write", &path))
        };
        write("admin.kubeconfig", &served.kubeconfig())?;
        write("ca.crt", &authority)?;
        Ok(Self { served: Mutex::new(Some(served)), api, tls, address, authority, admin, nest })
    }

    /// Closes the port and ends all connections. What is stored stays.
    pub fn stop(&self) {
        self.api.restart();
        drop(self.slot().take());
    }

    /// Listens again, on the same port and with the same certificate.
    pub async fn resume(&self) -> Result<(), Error> {
        self.stop();
        // What served before lets go of the port when the runtime next looks after it.
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
        self.nest.dir()
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
        self.nest.dir().join("admin.kubeconfig")
    }

    /// The given `kubectl`, as administrator.
    pub fn kubectl_command(&self, program: &Path) -> Kubectl {
        Kubectl {
            program: program.to_path_buf(),
            kubeconfig: self.kubeconfig(),
            home: self.nest.dir().to_path_buf(),
        }
    }
}

/// A port to which it can come back after it was stopped.
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
