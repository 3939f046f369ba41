//! Where a scenario takes place: a cluster of its own, real or embedded, with no difference that it could see.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embedded_kube::{KubeApi, User};
use http::Method;
use kube_assets::Assets;
use serde_json::{Value, json};

use crate::control_plane::Store;
use crate::gate::Gate;
use crate::{
    Answer, Client, ControlPlane, Credentials, Embedded, Error, Kubectl, Options, Output, Request, Rights,
    Row, calls, eventually, kubeconfig, manifests,
};

/// What a server needs for itself is there within this time, on a busy machine too.
const SETTLED_WITHIN: Duration = Duration::from_mins(3);

/// What a server makes for itself.
const OWN: &[&str] = &[
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/kube-system",
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
];

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The API of `embedded-kube`, served on loopback.
    Embedded,
    /// kube-apiserver and etcd.
    Real,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Embedded, Self::Real];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| format!("there is no world {text:?}; there are embedded and real"))
    }
}

/// What worlds of one kind share: the programs, and one etcd for all real ones. It may be used from several threads.
#[derive(Debug)]
pub struct Ground {
    assets: Assets,
    store: Option<Arc<Store>>,
}

impl Ground {
    /// Makes ready for worlds of this kind.
    pub async fn lay(kind: Kind, assets: &Assets) -> Result<Self, Error> {
        let store = match kind {
            Kind::Embedded => None,
            Kind::Real => Some(Arc::new(Store::start(assets).await?)),
        };
        Ok(Self { assets: assets.clone(), store })
    }

    /// A new world: an empty cluster that nobody else uses, ready to be asked. It lives on the runtime of the caller,
    /// which must not be blocked.
    pub async fn world(&self) -> Result<World, Error> {
        let options = Options { audit: true, ..Options::default() };
        let side = match &self.store {
            None => Side::Embedded(Embedded::start().await?),
            Some(store) => Side::Real(ControlPlane::on(Arc::clone(store), &options).await?),
        };
        let gate = Gate::to(side.address()?, side.dir()).await?;
        let world = World {
            side,
            gate,
            granted: Mutex::default(),
            audit: Mutex::default(),
            marks: AtomicU32::default(),
            assets: self.assets.clone(),
        };
        world.settle().await?;
        Ok(world)
    }
}

#[derive(Debug)]
enum Side {
    Embedded(Embedded),
    Real(ControlPlane),
}

/// A cluster of a scenario's own.
#[derive(Debug)]
pub struct World {
    gate: Gate,
    side: Side,
    /// Roles and bindings so far, which the embedded API is told of as a whole.
    granted: Mutex<Vec<Value>>,
    /// What was read of the audit log of a real server.
    audit: Mutex<calls::Audit>,
    /// Requests of our own by which we see how far the record is.
    marks: AtomicU32,
    assets: Assets,
}

/// Somebody with rights of their own.
#[derive(Debug)]
pub struct Account {
    /// Name and groups, as the server sees them.
    pub user: User,
    /// What the manifests let it do.
    pub rights: Rights,
    /// Its kubeconfig, whose server is behind the gate.
    pub kubeconfig: PathBuf,
    /// The token in there.
    pub token: String,
    /// A client with its token, not behind the gate.
    pub client: Client,
}

impl World {
    /// Waits for what a real server makes for itself soon after it is ready, and makes the one thing that the embedded
    /// one does not: what programs that check client certificates read.
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

    /// Which of the two it is: for messages, since a scenario runs the same on both.
    pub fn kind(&self) -> Kind {
        match self.side {
            Side::Embedded(_) => Kind::Embedded,
            Side::Real(_) => Kind::Real,
        }
    }

    /// The embedded API, if it is that, for faults which no real server can be talked into.
    pub fn embedded(&self) -> Option<&KubeApi> {
        match &self.side {
            Side::Embedded(embedded) => Some(embedded.api()),
            Side::Real(_) => None,
        }
    }

    /// A directory that is gone when the world is.
    pub fn dir(&self) -> &Path {
        self.side.dir()
    }

    /// A client that may do everything, not behind the gate.
    pub fn admin(&self) -> &Client {
        match &self.side {
            Side::Embedded(embedded) => embedded.admin(),
            Side::Real(plane) => plane.admin(),
        }
    }

    /// The administrator's kubeconfig; its server is not behind the gate.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.side {
            Side::Embedded(embedded) => embedded.kubeconfig(),
            Side::Real(plane) => plane.kubeconfig(),
        }
    }

    /// A kubeconfig of the administrator whose server is behind the gate.
    pub fn gated_kubeconfig(&self) -> Result<PathBuf, Error> {
        let user = match &self.side {
            Side::Embedded(_) => json!({ "token": Embedded::token() }),
            Side::Real(plane) => json!({
                "client-certificate": plane.dir().join("admin.crt"), "client-key": plane.dir().join("admin.key"),
            }),
        };
        self.write_gated("gated-admin.kubeconfig", &user)
    }

    /// A client with the administrator's rights, behind the gate.
    pub fn gated_admin(&self) -> Result<Client, Error> {
        let credentials = match &self.side {
            Side::Embedded(_) => Credentials::Token(Embedded::token().to_owned()),
            Side::Real(plane) => plane.admin_credentials().clone(),
        };
        Client::new(self.gated(), self.side.ca_pem(), &credentials)
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

    /// What is at a path.
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
    /// are used, and the account itself is made if they lack it. When this returns, the rights count.
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
        let rights = Rights::read(&objects)?;
        let user = service_account(namespace, name);
        self.believed(&rights, &user).await?;

        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let ask = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let answer = self.create(&path, &ask).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default().to_owned();
        let kubeconfig =
            self.write_gated(&format!("{namespace}-{name}.kubeconfig"), &json!({ "token": token }))?;
        let client = Client::new(self.side.base(), self.side.ca_pem(), &Credentials::Token(token.clone()))?;
        Ok(Account { user, rights, kubeconfig, token, client })
    }

    async fn grant(&self, objects: &[Value]) -> Result<(), Error> {
        let is_stored = |object: &&Value| self.embedded().is_none() || !manifests::is_rbac(object);
        for object in objects.iter().filter(is_stored) {
            self.put_in_place(object).await?;
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

    /// Creates an object about access, or changes the one that is there. Every scenario does this, and `kubectl apply`
    /// would keep a real server busy for seconds: it reads the descriptions of all kinds first.
    async fn put_in_place(&self, object: &Value) -> Result<(), Error> {
        let path = manifests::collection(object);
        let made = self.admin().send(&Request::post(&path, object)).await?;
        if made.status == 409 {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.patch(&format!("{path}/{name}"), object).await?;
            return Ok(());
        }
        succeeded(&Request::post(&path, object), &made).map(drop)
    }

    /// A real server's authorizer learns of new bindings from a watch.
    async fn believed(&self, rights: &Rights, user: &User) -> Result<(), Error> {
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
        match &self.side {
            Side::Embedded(embedded) => calls::from_log(&embedded.api().calls(0)),
            Side::Real(plane) => {
                let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
                audit.read_on(&plane.audit_file()).to_vec()
            }
        }
    }

    /// The requests of one user.
    pub fn calls_of(&self, user: &User) -> Vec<Row> {
        self.calls().into_iter().filter(|row| row.user == user.name).collect()
    }

    /// How many writes of one user, as far as `wanted` picks them, have been begun and not yet answered.
    pub fn writes_in_flight(&self, user: &User, wanted: impl Fn(&Row) -> bool) -> usize {
        match &self.side {
            // It answers and writes down in one go.
            Side::Embedded(_) => 0,
            Side::Real(plane) => {
                let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
                audit.read_on(&plane.audit_file());
                audit.in_flight().filter(|row| row.user == user.name && row.is_write() && wanted(row)).count()
            }
        }
    }

    /// The requests of one user, once everything that was answered before this call is on record: a real server writes
    /// its log a moment after it has answered.
    pub async fn settled_calls_of(&self, user: &User) -> Result<Vec<Row>, Error> {
        let mark = format!("mark-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        self.admin().send(&Request::get(format!("/api/v1/namespaces/{mark}"))).await?;
        eventually(SETTLED_WITHIN, "the record is complete", async || {
            let rows = self.calls();
            let marked = rows.iter().any(|row| row.name == mark && row.status != 0);
            let open = self.writes_in_flight(user, |_| true);
            if marked && open == 0 {
                Ok(rows.into_iter().filter(|row| row.user == user.name).collect())
            } else {
                Err(format!("marked: {marked}, writes without an answer: {open}"))
            }
        })
        .await
    }

    /// Cuts every connection that goes through the gate: watches end in the middle.
    pub fn cut(&self) {
        self.gate.cut();
    }

    /// Closes the gate: to those behind it, the server is gone, though it runs.
    pub fn close_gate(&self) {
        self.gate.close();
    }

    /// Holds up everything at the gate: to those behind it, the server has fallen silent, and no connection breaks.
    pub fn hold_gate(&self) {
        self.gate.hold();
    }

    /// Opens the gate again. What was held up arrives now.
    pub fn open_gate(&self) {
        self.gate.open();
    }

    /// Ends the API server at once, as `kill -9` does. What it stored stays.
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

    /// Starts it again, where it was.
    pub async fn start_api(&self) -> Result<(), Error> {
        match &self.side {
            Side::Embedded(embedded) => embedded.resume().await,
            Side::Real(plane) => plane.resume().await,
        }
    }

    fn gated(&self) -> String {
        format!("https://{}", self.gate.address())
    }

    fn write_gated(&self, name: &str, user: &Value) -> Result<PathBuf, Error> {
        kubeconfig::write(self.dir().join(name), &self.gated(), &self.side.ca_file(), user)
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
