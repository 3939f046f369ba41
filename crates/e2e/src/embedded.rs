//! The embedded Kubernetes API on loopback, set up as the real control plane is.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use cloudberth_sim::Surroundings;
use cloudberth_sim::kube::{Config, KubeApi, Served, Tls, serve};
use tokio::net::TcpListener;

use crate::control_plane::SERVICE_RANGE;
use crate::supervise::Nest;
use crate::{Client, Credentials, Error, Kubectl};

/// Who may do everything has to say this.
const TOKEN: &str = "embedded";

/// An embedded API behind TLS and a token, for clients that cannot tell it from a real one.
///
/// It is served by the runtime that started it: nobody is answered while that runtime is blocked. Dropping it
/// closes the port and removes its files, which happens too when the process dies.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: nobody reads the files any more when they go.
    _served: Served,
    api: KubeApi,
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(Error::io("no port for", nest.dir()))?;
        let served = serve(&api, listener, Some(Tls::for_loopback()?), Some(TOKEN.to_owned()))?;
        let base = format!("https://{}", served.address);
        let authority = served.authority_pem().unwrap_or_default();
        let admin = Client::new(base, authority, &Credentials::Token(TOKEN.to_owned()))?;
        let kubeconfig = nest.dir().join("admin.kubeconfig");
        fs::write(&kubeconfig, served.kubeconfig()).map_err(Error::io("cannot write", &kubeconfig))?;
        Ok(Self { _served: served, api, admin, nest })
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
