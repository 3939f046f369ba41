//! etcd and API servers on loopback.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_assets::Assets;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::kubeconfig;
use crate::pki::Pki;
use crate::supervise::{Process, TempDir};
use crate::{Answer, Client, Credentials, Error, Kubectl, Output, Request};

/// Generous: an idle machine with two cores needs three seconds, one with much else to do thirty.
const READY_WITHIN: Duration = Duration::from_mins(4);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// A port that was free a moment ago can be taken by another test; so often it is tried again.
pub(crate) const PORT_ATTEMPTS: u32 = 5;
/// Ports for programs that have to be told one: below those that the kernel gives to whoever connects, and above the
/// well-known ones.
const PORTS: std::ops::Range<u32> = 12_000..30_000;
/// What an API server has said in its current life.
const LOG: &str = "kube-apiserver.log";
/// Where etcd listens.
const SOCKET: &str = "etcd.sock";
/// Cluster IPs are drawn from here.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/12";

/// What may differ between API servers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Write an audit log of every request (metadata level); see [`ControlPlane::audit_log`].
    pub audit: bool,
    /// Further command line arguments of kube-apiserver.
    pub args: Vec<String>,
}

/// etcd, shared by the API servers that were started beside each other.
#[derive(Debug)]
pub(crate) struct Store {
    // Dropped in this order: first the program, then the directory it writes to.
    _etcd: Process,
    temp: TempDir,
    assets: Assets,
    servers: AtomicU32,
}

/// One kube-apiserver with its own certificates and its own prefix in etcd.
///
/// RBAC is on; the `ServiceAccount` admission plugin is off, since most have no controller that makes default accounts.
/// When the last control plane on an etcd is dropped, all processes are dead and all files are gone. The same
/// happens shortly after the process that holds it dies, however it dies.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the API server before the etcd it uses. None while it is stopped.
    apiserver: Mutex<Option<Process>>,
    store: Arc<Store>,
    args: Vec<String>,
    dir: PathBuf,
    base: String,
    pki: Pki,
    admin: Client,
}

impl ControlPlane {
    /// Starts etcd and one API server on it, and waits until that is ready.
    pub async fn start(assets: &Assets, options: &Options) -> Result<Self, Error> {
        Self::on(Arc::new(Store::start(assets).await?), options).await
    }

    /// As [`ControlPlane::start`], but version 1 has been compacted.
    pub async fn start_with_a_past(assets: &Assets, options: &Options) -> Result<Self, Error> {
        Self::start(assets, &Options::default()).await?.beside(options).await
    }

    /// Starts another API server on the same etcd. Neither sees the other's objects.
    pub async fn beside(&self, options: &Options) -> Result<Self, Error> {
        Self::on(Arc::clone(&self.store), options).await
    }

    pub(crate) async fn on(store: Arc<Store>, options: &Options) -> Result<Self, Error> {
        let name = format!("server-{}", store.servers.fetch_add(1, Ordering::Relaxed));
        let dir = store.temp.dir().join(&name);
        let pki = Pki::make(&dir)?;
        let mut attempt = 1;
        let (apiserver, args, base, admin) = loop {
            let port = free_port(&dir)?;
            let base = format!("https://127.0.0.1:{port}");
            let admin = Client::new(&base, &pki.ca_pem, &pki.admin)?;
            let args = arguments(&store, &pki, &name, port, options)?;
            let mut process = store.temp.start(&store.assets.apiserver, &args, dir.join(LOG))?;
            match ready(&mut process, &admin).await {
                Ok(()) => break (process, args, base, admin),
                Err(Error::Ended { log, .. })
                    if attempt < PORT_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        };
        let plane = Self { apiserver: Mutex::new(Some(apiserver)), store, args, dir, base, pki, admin };
        plane.certificate_kubeconfig("admin")?;
        Ok(plane)
    }

    /// Kills the API server. What it stored stays.
    pub fn stop(&self) {
        drop(self.slot().take());
    }

    /// Starts the API server again, on the same port and the same store, and waits until it is ready.
    pub async fn resume(&self) -> Result<(), Error> {
        self.stop();
        let mut attempt = 1;
        loop {
            let mut process =
                self.store.temp.start(&self.store.assets.apiserver, &self.args, self.dir.join(LOG))?;
            match ready(&mut process, &self.admin).await {
                Ok(()) => {
                    *self.slot() = Some(process);
                    return Ok(());
                }
                Err(Error::Ended { log, .. })
                    if attempt < PORT_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.apiserver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it listens: `https://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The certificate authority that vouches for the server, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.pki.ca_pem
    }

    /// A client that may do everything.
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// A client with other credentials.
    pub fn client(&self, credentials: &Credentials) -> Result<Client, Error> {
        Client::new(&self.base, &self.pki.ca_pem, credentials)
    }

    /// Sends a request as administrator.
    pub async fn send(&self, request: &Request) -> Result<Answer, Error> {
        self.admin.send(request).await
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// A directory that lives as long as the control planes on this etcd.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a kubeconfig for a bearer token and says where it is.
    pub fn token_kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf, Error> {
        self.write_kubeconfig(name, &json!({ "token": token }))
    }

    /// Writes a kubeconfig for one of the clients that have a certificate and says where it is.
    pub(crate) fn certificate_kubeconfig(&self, client: &str) -> Result<PathBuf, Error> {
        let file = |end: &str| self.pki.path(&format!("{client}.{end}"));
        let user = json!({ "client-certificate": file("crt"), "client-key": file("key") });
        self.write_kubeconfig(&format!("{client}.kubeconfig"), &user)
    }

    /// `kubectl` as administrator.
    pub fn kubectl_command(&self) -> Kubectl {
        Kubectl {
            program: self.store.assets.kubectl.clone(),
            kubeconfig: self.kubeconfig(),
            home: self.dir.clone(),
        }
    }

    /// Runs `kubectl` as administrator.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output, Error> {
        self.kubectl_command().run(args).await
    }

    /// The audit log so far, one JSON event per line; empty unless [`Options::audit`] was set.
    pub fn audit_log(&self) -> String {
        fs::read_to_string(self.audit_file()).unwrap_or_default()
    }

    /// Where the audit log is.
    pub(crate) fn audit_file(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    fn write_kubeconfig(&self, name: &str, user: &serde_json::Value) -> Result<PathBuf, Error> {
        kubeconfig::write(self.dir.join(name), &self.base, &self.ca_file(), user)
    }

    /// Who the administrator is.
    pub(crate) fn admin_credentials(&self) -> &Credentials {
        &self.pki.admin
    }

    /// The file with [`ControlPlane::ca_pem`].
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }
}

impl Store {
    pub(crate) async fn start(assets: &Assets) -> Result<Self, Error> {
        let temp = TempDir::new()?;
        // Sockets with a path instead of ports: two tests cannot want the same one. What is advertised must
        // look like an address with a port; to a store of one member it does not matter.
        let args = [
            format!("--data-dir={}", temp.dir().join("etcd").display()),
            format!("--listen-client-urls={}", socket(&temp)),
            "--advertise-client-urls=http://127.0.0.1:1".into(),
            format!("--listen-peer-urls={}-peer", socket(&temp)),
            "--initial-advertise-peer-urls=http://127.0.0.1:1".into(),
            "--initial-cluster=default=http://127.0.0.1:1".into(),
            "--unsafe-no-fsync".into(),
        ];
        let mut etcd = temp.start(&assets.etcd, &args, temp.dir().join("etcd.log"))?;
        let listening = temp.dir().join(SOCKET);
        until(&mut etcd, async || if listening.exists() { Ok(()) } else { Err("no socket yet".to_owned()) })
            .await?;
        Ok(Self { _etcd: etcd, temp, assets: assets.clone(), servers: AtomicU32::new(0) })
    }
}

fn socket(temp: &TempDir) -> String {
    format!("unix://{}", temp.dir().join(SOCKET).display())
}

fn arguments(
    store: &Store,
    pki: &Pki,
    name: &str,
    port: u16,
    options: &Options,
) -> Result<Vec<String>, Error> {
    let mut args = vec![
        format!("--etcd-servers={}", socket(&store.temp)),
        format!("--etcd-prefix=/{name}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(),
        format!("--secure-port={port}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=RBAC".into(),
        "--disable-admission-plugins=ServiceAccount".into(),
        format!("--client-ca-file={}", pki.path("ca.crt")),
        format!("--tls-cert-file={}", pki.path("apiserver.crt")),
        format!("--tls-private-key-file={}", pki.path("apiserver.key")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki.path("accounts.pub")),
        format!("--service-account-signing-key-file={}", pki.path("accounts.key")),
    ];
    if options.audit {
        let policy = pki.dir.join("audit-policy.yaml");
        let text =
            json!({ "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{ "level": "Metadata" }] });
        fs::write(&policy, text.to_string()).map_err(Error::io("cannot write", &policy))?;
        args.push(format!("--audit-policy-file={}", policy.display()));
        args.push(format!("--audit-log-path={}", pki.path("audit.log")));
    }
    args.extend(options.args.iter().cloned());
    Ok(args)
}

/// A port on loopback that nobody listens on, for programs that cannot be told to pick one themselves.
///
/// It is not in the kernel's ephemeral range: any connection could take such a port while a program restarts. No port is
/// given twice by one process, and two processes begin at different ports.
pub(crate) fn free_port(dir: &Path) -> Result<u16, Error> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for _ in PORTS {
        let number = std::process::id().wrapping_mul(97).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + number % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).unwrap_or_default();
        match TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) {
            Ok(_) => return Ok(port),
            Err(taken) => last = taken,
        }
    }
    Err(Error::io("cannot find a free port for", dir)(last))
}

/// Its certificates are unique, so an answer on the port can only be its own.
async fn ready(process: &mut Process, admin: &Client) -> Result<(), Error> {
    until(process, async || match admin.send(&Request::get("/readyz")).await {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(String::from_utf8_lossy(&answer.body).into_owned()),
        Err(error) => Err(error.to_string()),
    })
    .await
}

/// Calls `ask` until it succeeds, the program has ended, or it took too long.
async fn until(process: &mut Process, ask: impl AsyncFn() -> Result<(), String>) -> Result<(), Error> {
    let mut why = String::new();
    let asked = async {
        loop {
            match ask().await {
                Ok(()) => return Ok(()),
                Err(not_yet) => why = not_yet,
            }
            if process.ended() {
                return Err(Error::Ended { program: process.name().to_owned(), log: process.log_tail() });
            }
            sleep(ASK_EVERY).await;
        }
    };
    let outcome = timeout(READY_WITHIN, asked).await;
    outcome.unwrap_or_else(|_| {
        Err(Error::Late { program: process.name().to_owned(), why, log: process.log_tail() })
    })
}
