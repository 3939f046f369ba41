//! The cluster of one scenario, real or embedded. The scenario cannot tell which.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embedded_kube::{KubeApi, User};
use http::Method;
use kube_assets::{Assets, PodAssets};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::control_plane::Store;
use crate::proxy::Proxy;
use crate::{
    Answer, Client, ControlPlane, Credentials, Embedded, Error, Kubectl, Options, Output, Request, Rights,
    Row, calls, eventually, kubeconfig, manifests,
};

/// A new server has its own objects within this time, also on a busy machine.
const SETTLED_WITHIN: Duration = Duration::from_mins(3);

/// The objects that a server creates for itself.
const OWN: &[&str] = &[
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/kube-system",
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
];

/// Whether a cluster is embedded or real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// The API of `embedded-kube`, served on loopback.
    Embedded,
    /// kube-apiserver and etcd.
    Real,
}

impl ClusterKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Embedded, Self::Real];
}

impl fmt::Display for ClusterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        })
    }
}

impl FromStr for ClusterKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| format!("there is no cluster {text:?}; there are embedded and real"))
    }
}

/// So many API servers start at the same time. A start keeps a core busy for seconds; more at once would all be late, and
/// so would everything else that runs meanwhile.
const STARTS_AT_ONCE: usize = 2;

/// Makes clusters of one kind, which share the programs and, if they are real, one etcd. It may be used from several
/// threads.
#[derive(Debug)]
pub struct ClusterFactory {
    assets: Assets,
    pods: Option<PodAssets>,
    store: Option<Arc<Store>>,
    starts: Semaphore,
}

impl ClusterFactory {
    /// Starts what all clusters of this kind share. With `pods`, real ones can run pods.
    pub async fn start(kind: ClusterKind, assets: &Assets, pods: Option<PodAssets>) -> Result<Self, Error> {
        let store = match kind {
            ClusterKind::Embedded => None,
            ClusterKind::Real => Some(Arc::new(Store::start(assets).await?)),
        };
        Ok(Self { assets: assets.clone(), pods, store, starts: Semaphore::new(STARTS_AT_ONCE) })
    }

    /// A new, empty cluster that nobody else uses, ready for requests. It lives on the runtime of the caller, which must
    /// not be blocked.
    pub async fn cluster(&self) -> Result<Cluster, Error> {
        let options = Options { audit: true, ..Options::default() };
        let side = match &self.store {
            None => Side::Embedded(Embedded::start().await?),
            Some(store) => {
                // It is never closed; without a permit it would only be slower.
                let _permit = self.starts.acquire().await.ok();
                Side::Real(ControlPlane::on(Arc::clone(store), &options).await?)
            }
        };
        Cluster::on(side, self.assets.clone(), self.pods.clone()).await
    }
}

#[derive(Debug)]
enum Side {
    Embedded(Embedded),
    Real(ControlPlane),
}

/// A cluster that one scenario has for itself.
#[derive(Debug)]
pub struct Cluster {
    proxy: Proxy,
    side: Side,
    /// Roles and bindings so far: the embedded API gets them as one policy.
    granted: Mutex<Vec<Value>>,
    /// The audit log of a real server, as far as it was read.
    audit: Mutex<calls::Audit>,
    /// Counts our own requests that show how far the log is.
    marks: AtomicU32,
    assets: Assets,
    pods: Option<PodAssets>,
}

/// A service account with its credentials and rights.
#[derive(Debug)]
pub struct Account {
    /// Name and groups, as the server sees them.
    pub user: User,
    /// What the manifests let it do.
    pub rights: Rights,
    /// Its kubeconfig, which goes through the proxy.
    pub kubeconfig: PathBuf,
    /// The token in the kubeconfig.
    pub token: String,
    /// A client with its token, which does not go through the proxy.
    pub client: Client,
}

impl Cluster {
    async fn on(side: Side, assets: Assets, pods: Option<PodAssets>) -> Result<Self, Error> {
        let proxy = Proxy::to(side.address()?, side.dir()).await?;
        let cluster = Self {
            side,
            proxy,
            granted: Mutex::default(),
            audit: Mutex::default(),
            marks: AtomicU32::default(),
            assets,
            pods,
        };
        cluster.settle().await?;
        Ok(cluster)
    }

    /// Another cluster of the same kind, with nothing in it: for what concerns several at once. Real ones share an etcd.
    pub async fn beside(&self) -> Result<Self, Error> {
        let options = Options { audit: true, ..Options::default() };
        let side = match &self.side {
            Side::Embedded(_) => Side::Embedded(Embedded::start().await?),
            Side::Real(plane) => Side::Real(plane.beside(&options).await?),
        };
        Self::on(side, self.assets.clone(), self.pods.clone()).await
    }

    /// Waits for the objects that a real server creates soon after it is ready, and creates the one that the embedded API
    /// lacks: the config map for programs that check client certificates.
    async fn settle(&self) -> Result<(), Error> {
        if let Side::Embedded(embedded) = &self.side {
            let name = "extension-apiserver-authentication";
            let authority = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
                "data": { "client-ca-file": embedded.ca_pem() } });
            self.create("/api/v1/namespaces/kube-system/configmaps", &authority).await?;
        }
        for path in OWN {
            let there = async || self.get(path).await.map_err(|why| why.to_string());
            eventually(SETTLED_WITHIN, path, there).await?;
        }
        Ok(())
    }

    /// Which kind it is; only for messages, since a scenario is the same on both.
    pub fn kind(&self) -> ClusterKind {
        match self.side {
            Side::Embedded(_) => ClusterKind::Embedded,
            Side::Real(_) => ClusterKind::Real,
        }
    }

    /// The embedded API, if it is one, for faults that cannot be injected into a real server.
    pub fn embedded(&self) -> Option<&KubeApi> {
        match &self.side {
            Side::Embedded(embedded) => Some(embedded.api()),
            Side::Real(_) => None,
        }
    }

    /// What [`crate::PodPrograms`] start, and where.
    pub(crate) fn for_pods(&self) -> Option<(&ControlPlane, &PodAssets)> {
        match &self.side {
            Side::Embedded(_) => None,
            Side::Real(plane) => self.pods.as_ref().map(|pods| (plane, pods)),
        }
    }

    /// A directory that is removed with the cluster.
    pub fn dir(&self) -> &Path {
        self.side.dir()
    }

    /// The administrator's client, which does not go through the proxy.
    pub fn admin(&self) -> &Client {
        match &self.side {
            Side::Embedded(embedded) => embedded.admin(),
            Side::Real(plane) => plane.admin(),
        }
    }

    /// The administrator's kubeconfig, which does not go through the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.side {
            Side::Embedded(embedded) => embedded.kubeconfig(),
            Side::Real(plane) => plane.kubeconfig(),
        }
    }

    /// A kubeconfig of the administrator that goes through the proxy.
    pub fn proxied_kubeconfig(&self) -> Result<PathBuf, Error> {
        let user = match &self.side {
            Side::Embedded(_) => json!({ "token": Embedded::token() }),
            Side::Real(plane) => json!({
                "client-certificate": plane.dir().join("admin.crt"), "client-key": plane.dir().join("admin.key"),
            }),
        };
        self.write_proxied("proxied-admin.kubeconfig", &user)
    }

    /// A client with the administrator's rights that goes through the proxy.
    pub fn proxied_admin(&self) -> Result<Client, Error> {
        let credentials = match &self.side {
            Side::Embedded(_) => Credentials::Token(Embedded::token().to_owned()),
            Side::Real(plane) => plane.admin_credentials().clone(),
        };
        Client::new(self.proxied(), self.side.ca_pem(), &credentials)
    }

    /// `kubectl` as administrator.
    pub fn kubectl_command(&self) -> Kubectl {
        Kubectl {
            program: self.assets.kubectl.clone(),
            kubeconfig: self.kubeconfig(),
            home: self.dir().to_path_buf(),
        }
    }

    /// Runs `kubectl` as administrator.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output, Error> {
        self.kubectl_command().run(args).await
    }

    /// Gets the object at a path.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.expect(&Request::get(path)).await
    }

    /// Creates an object.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.expect(&Request::post(path, object)).await
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, path: &str, change: &Value) -> Result<Value, Error> {
        let mut request = Request::new(Method::PATCH, path).json(change);
        request.content_type = "application/merge-patch+json".into();
        self.expect(&request).await
    }

    /// Replaces an object.
    pub async fn put(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.expect(&Request::new(Method::PUT, path).json(object)).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.expect(&Request::new(Method::DELETE, path)).await
    }

    async fn expect(&self, request: &Request) -> Result<Value, Error> {
        succeeded(request, &self.admin().send(request).await?)
    }

    /// A service account with the rights that `manifests` give it: of these, namespaces, accounts, roles and bindings
    /// are used, and the account itself is made if they lack it. When this returns, the rights are in force.
    pub async fn account(&self, namespace: &str, name: &str, text: &str) -> Result<Account, Error> {
        let mut objects = manifests::access(text)?;
        let is_it = |object: &Value| {
            let at = |pointer| object.pointer(pointer).and_then(Value::as_str);
            manifests::kind(object) == "ServiceAccount"
                && at("/metadata/name") == Some(name)
                && at("/metadata/namespace").unwrap_or("default") == namespace
        };
        if !objects.iter().any(is_it) {
            objects.push(json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": { "name": name, "namespace": namespace } }));
        }
        self.grant(&objects).await?;
        self.account_with(namespace, name, Rights::read(&objects)?).await
    }

    /// A service account that somebody else has made, together with what `text` says that it may do. Nothing is made here:
    /// if the server does not grant these rights, this fails.
    pub async fn account_made(&self, namespace: &str, name: &str, text: &str) -> Result<Account, Error> {
        self.account_with(namespace, name, Rights::read(&manifests::access(text)?)?).await
    }

    async fn account_with(&self, namespace: &str, name: &str, rights: Rights) -> Result<Account, Error> {
        let user = service_account(namespace, name);
        self.in_force(&rights, &user).await?;

        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let ask = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let answer = self.create(&path, &ask).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default().to_owned();
        let kubeconfig =
            self.write_proxied(&format!("{namespace}-{name}.kubeconfig"), &json!({ "token": token }))?;
        let client = Client::new(self.side.base(), self.side.ca_pem(), &Credentials::Token(token.clone()))?;
        Ok(Account { user, rights, kubeconfig, token, client })
    }

    async fn grant(&self, objects: &[Value]) -> Result<(), Error> {
        let is_stored = |object: &&Value| self.embedded().is_none() || !manifests::is_rbac(object);
        for object in objects.iter().filter(is_stored) {
            self.apply(object).await?;
        }
        if let Side::Embedded(embedded) = &self.side {
            let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
            granted.extend(objects.iter().cloned());
            let rights = Rights::read(&granted)?;
            let policy = move |user: &User, action: &_| (!rights.allow(user, action)).then(String::new);
            embedded.api().set_policy(Some(Arc::new(policy)));
        }
        Ok(())
    }

    /// Creates or patches an object. Every scenario does this, and `kubectl apply` would keep a real server busy for
    /// seconds, because it reads the descriptions of all kinds first.
    async fn apply(&self, object: &Value) -> Result<(), Error> {
        let path = manifests::collection(object);
        let made = self.admin().send(&Request::post(&path, object)).await?;
        if made.status == 409 {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.patch(&format!("{path}/{name}"), object).await?;
            return Ok(());
        }
        succeeded(&Request::post(&path, object), &made).map(drop)
    }

    /// Waits until the rights are in force: a real server's authorizer learns of new bindings from a watch.
    async fn in_force(&self, rights: &Rights, user: &User) -> Result<(), Error> {
        for spec in rights.questions(user) {
            let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": spec });
            eventually(SETTLED_WITHIN, &format!("{} is allowed {spec}", user.name), async || {
                let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
                let answer = self.create(path, &review).await.map_err(|why| why.to_string())?;
                let allowed = answer.pointer("/status/allowed").and_then(Value::as_bool);
                if allowed == Some(true) { Ok(()) } else { Err(answer.to_string()) }
            })
            .await?;
        }
        Ok(())
    }

    /// Every request so far, from the audit log of the real server or the call log of the embedded one. A request
    /// shows up in it shortly after it was answered.
    pub fn calls(&self) -> Vec<Row> {
        self.calls_that(|_| true)
    }

    /// The requests of one user.
    pub fn calls_of(&self, user: &User) -> Vec<Row> {
        self.calls_that(|row| row.user == user.name)
    }

    /// The log has thousands of requests and is read several times a second: what is not wanted is not copied.
    fn calls_that(&self, wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
        match &self.side {
            Side::Embedded(embedded) => {
                let mut rows = calls::from_log(&embedded.api().calls(0));
                rows.retain(wanted);
                rows
            }
            Side::Real(plane) => {
                let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
                let rows = audit.read_on(&plane.audit_file()).iter();
                rows.filter(|row| wanted(row)).cloned().collect()
            }
        }
    }

    /// How many of one user's writes that match `wanted` have no answer yet.
    pub fn writes_in_flight(&self, user: &User, wanted: impl Fn(&Row) -> bool) -> usize {
        match &self.side {
            // It answers and logs in one step.
            Side::Embedded(_) => 0,
            Side::Real(plane) => {
                let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
                audit.read_on(&plane.audit_file());
                audit.in_flight().filter(|row| row.user == user.name && row.is_write() && wanted(row)).count()
            }
        }
    }

    /// The requests of one user, once everything that was answered before this call is in the log: a real server writes
    /// its log a moment after it has answered.
    pub async fn settled_calls_of(&self, user: &User) -> Result<Vec<Row>, Error> {
        let mark = format!("mark-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        self.admin().send(&Request::get(format!("/api/v1/namespaces/{mark}"))).await?;
        eventually(SETTLED_WITHIN, "the log is complete", async || {
            let marked = !self.calls_that(|row| row.name == mark && row.status != 0).is_empty();
            let open = self.writes_in_flight(user, |_| true);
            if marked && open == 0 {
                Ok(self.calls_of(user))
            } else {
                Err(format!("marked: {marked}, writes without an answer: {open}"))
            }
        })
        .await
    }

    /// Cuts every connection that goes through the proxy: watches end in the middle.
    pub fn cut(&self) {
        self.proxy.cut();
    }

    /// Makes the proxy refuse connections, as if the server were gone, though it runs.
    pub fn close_proxy(&self) {
        self.proxy.close();
    }

    /// Makes the proxy hold up all traffic, as if the server were silent; no connection breaks.
    pub fn hold_proxy(&self) {
        self.proxy.hold();
    }

    /// Lets all traffic through again. What was held up arrives now.
    pub fn open_proxy(&self) {
        self.proxy.open();
    }

    /// Kills the API server, as `kill -9` does. What it stored stays.
    pub fn stop_api(&self) {
        match &self.side {
            Side::Embedded(embedded) => embedded.stop(),
            Side::Real(plane) => {
                plane.stop();
                let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
                audit.ended(&plane.audit_file());
            }
        }
    }

    /// Starts the API server again, on the same port.
    pub async fn start_api(&self) -> Result<(), Error> {
        match &self.side {
            Side::Embedded(embedded) => embedded.resume().await,
            Side::Real(plane) => plane.resume().await,
        }
    }

    fn proxied(&self) -> String {
        format!("https://{}", self.proxy.address())
    }

    fn write_proxied(&self, name: &str, user: &Value) -> Result<PathBuf, Error> {
        kubeconfig::write(self.dir().join(name), &self.proxied(), &self.side.ca_file(), user)
    }
}

impl Side {
    fn dir(&self) -> &Path {
        match self {
            Self::Embedded(embedded) => embedded.dir(),
            Self::Real(plane) => plane.dir(),
        }
    }

    fn ca_file(&self) -> PathBuf {
        self.dir().join("ca.crt")
    }

    fn ca_pem(&self) -> &str {
        match self {
            Self::Embedded(embedded) => embedded.ca_pem(),
            Self::Real(plane) => plane.ca_pem(),
        }
    }

    fn base(&self) -> String {
        match self {
            Self::Embedded(embedded) => format!("https://{}", embedded.address()),
            Self::Real(plane) => plane.base().to_owned(),
        }
    }

    fn address(&self) -> Result<SocketAddr, Error> {
        let base = self.base();
        let address = base.trim_start_matches("https://");
        address.parse().map_err(|_| Error::Transport { what: base.clone(), why: "is no address".into() })
    }
}

/// The user that a service account's token stands for.
fn service_account(namespace: &str, name: &str) -> User {
    let groups =
        ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        uid: String::new(),
        groups: groups.map(str::to_owned).to_vec(),
    }
}

fn succeeded(request: &Request, answer: &Answer) -> Result<Value, Error> {
    if (200..300).contains(&answer.status) {
        return Ok(answer.json());
    }
    Err(Error::Refused {
        what: format!("{} {}", request.method, request.path),
        status: answer.status,
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    })
}
