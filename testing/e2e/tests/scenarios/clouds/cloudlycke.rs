//! Cloudlycke: its own service, with real sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use cloudberth_core::{Clock, Secret};
use cloudberth_e2e::{Cluster, eventually};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::api::Api;
use cloudberth_lycke::control::{Control, Parts};
use cloudberth_lycke::events::EventLog;
use cloudberth_lycke::inventory::{self, MachineState};
use cloudberth_lycke::plane::BalancerKey;
use cloudberth_lycke::plane::socket::{PlaneSettings, SocketPlane};
use cloudberth_lycke::state::Balancers;
use cloudberth_lycke::store::NoStore;
use futures_util::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::json;
use sim_kit::{Disconnected, Served, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tower::Service;

use crate::fixture::{Fixture, SOON, text};
use crate::services::{SERVICES, WEB};
use crate::simulated_cloud::{Balancer, Call, CardCloud, SimulatedCloud};
use crate::{Fallible, Outcome};

const TOKEN: &str = "token-of-the-service-77a1c3e9";
const TYPE: &str = "vbox.vm.1g.2cpu";

/// What is the matter with the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trouble {
    #[default]
    None,
    /// It answers every request with 503.
    Down,
    /// It answers nobody.
    Silent,
}

#[derive(Default)]
struct Log {
    calls: Vec<Call>,
    unanswered: usize,
    trouble: Trouble,
    stall_next_creation: bool,
}

/// The API behind a door that writes down who came, and that can be shut.
#[derive(Clone)]
struct Door {
    api: Api,
    control: Control,
    log: Arc<Mutex<Log>>,
}

impl Door {
    fn operation(&self, method: &Method, path: &str) -> &'static str {
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        match (parts.as_slice(), method.as_str()) {
            (["loadbalancers"], _) => "loadbalancers.list",
            (["loadbalancers", cluster, namespace, name], "PUT") => {
                let [cluster, namespace, name] = [cluster, namespace, name].map(|part| (*part).to_owned());
                match self.control.balancer(&BalancerKey { cluster, namespace, name }) {
                    None => "loadbalancers.create",
                    Some(_) => "loadbalancers.update",
                }
            }
            (["loadbalancers", ..], "DELETE") => "loadbalancers.delete",
            (["machines"], _) => "machines.list",
            (["machines", ..], _) => "machines.get",
            _ => "other",
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let operation = self.operation(request.method(), request.uri().path());
        let mutation = request.method() != Method::GET;
        let note = |status: Option<u16>| {
            let succeeded = status.is_some_and(|status| status < 300);
            self.log.lock().unwrap().calls.push(Call {
                operation: operation.to_owned(),
                mutation,
                status,
                succeeded,
            });
        };
        let trouble = self.log.lock().unwrap().trouble;
        match trouble {
            Trouble::None => {}
            Trouble::Down => {
                note(Some(503));
                let body = Full::new(Bytes::from_static(b"{\"code\":\"down\",\"message\":\"ordered\"}"));
                return Response::builder().status(503).body(body).unwrap();
            }
            Trouble::Silent => {
                self.log.lock().unwrap().unanswered += 1;
                return std::future::pending().await;
            }
        }
        let answer = self.api.clone().call(request).await.unwrap_or_else(|never| match never {});
        note(Some(answer.status().as_u16()));
        let creates = operation == "loadbalancers.create";
        if creates && std::mem::take(&mut self.log.lock().unwrap().stall_next_creation) {
            self.log.lock().unwrap().unanswered += 1;
            return std::future::pending().await;
        }
        answer
    }
}

impl Service<Request<Incoming>> for Door {
    type Response = Response<Full<Bytes>>;
    type Error = Disconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Disconnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let door = self.clone();
        Box::pin(async move { Ok(door.answer(request).await) })
    }
}

pub(crate) struct Cloudlycke {
    control: Control,
    log: Arc<Mutex<Log>>,
    served: Served,
}

/// Addresses that no other scenario of this process uses; those of another process are elsewhere too, most likely.
pub(crate) fn next_pool() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let process = 80 + std::process::id() % 40;
    format!("127.{process}.{}.0/24", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn next_address() -> Ipv4Addr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u8::try_from(130 + std::process::id() % 40).unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let part = |number: u16| u8::try_from(number + 1).unwrap();
    Ipv4Addr::new(127, process, part(number / 250), part(number % 250))
}

/// Does at once what it can, and the rest later.
fn at_once<T>(work: impl Future<Output = T> + Send + 'static) {
    let mut work = Box::pin(work);
    if (&mut work).now_or_never().is_none() {
        tokio::spawn(async move {
            work.await;
        });
    }
}

impl CardCloud for Cloudlycke {
    const NAME: &'static str = "cloudlycke";
    /// Nobody needs rights for these.
    const PORTS: [u16; 2] = [8080, 8443];

    async fn over(_: &Path, instances: &[&str]) -> Fallible<Self> {
        let text = format!(
            "version: 1\nallowEmpty: true\nclusters: {{ c2: {{ kubernetesName: kubernetes }} }}\ntypes: {{ {TYPE}: \
             {{ cpus: 2 }} }}\nloadBalancers: {{ pool: {} }}\n",
            next_pool()
        );
        let file = Path::new("inventory.yaml");
        let inventory = inventory::read(&text, file).unwrap_or_else(|faults| panic!("{faults}"));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let events = EventLog::new(Arc::clone(&clock));
        let settings = PlaneSettings { workers: 1, ..PlaneSettings::default() };
        let plane = SocketPlane::start(settings, Arc::new(events.clone()), Arc::clone(&clock))?;
        let parts = Parts {
            inventory,
            file: file.to_owned(),
            balancers: Balancers::default(),
            plane: Arc::new(plane),
            store: Arc::new(NoStore),
            events,
        };
        let control = Control::new(parts, clock);
        control.restore().await;
        let log = Arc::new(Mutex::new(Log::default()));
        let api = Api::new(control.clone(), Some(Secret::new(TOKEN)?));
        let door = Door { api, control: control.clone(), log: Arc::clone(&log) };
        let served = serve(door, TcpListener::bind("127.0.0.1:0").await?, None)?;
        let cloud = Self { control, log, served };
        for name in instances {
            cloud.add(name);
        }
        Ok(cloud)
    }
}

impl Cloudlycke {
    fn log<T>(&self, look: impl FnOnce(&mut Log) -> T) -> T {
        look(&mut self.log.lock().unwrap())
    }

    fn set_state(&self, instance: &str, state: MachineState) {
        let (control, id) = (self.control.clone(), instance.to_owned());
        at_once(async move { control.set_machine_state(&id, state).await });
    }

    fn address(&self, instance: &str) -> IpAddr {
        let machine = self.control.machine(instance).unwrap_or_else(|why| panic!("{why:?}"));
        machine.machine.backend
    }
}

impl SimulatedCloud for Cloudlycke {
    fn env(&self) -> Vec<(String, String)> {
        vec![
            ("CLOUDLYCKE_API_URL".to_owned(), self.served.url()),
            ("CLOUDLYCKE_TOKEN".to_owned(), TOKEN.to_owned()),
        ]
    }

    fn secrets(&self) -> Vec<String> {
        vec![TOKEN.to_owned()]
    }

    fn add(&self, instance: &str) {
        let machine = json!({
            "id": instance, "name": instance, "cluster": "c2", "type": TYPE, "internal": [next_address()],
        });
        let (control, text) = (self.control.clone(), machine.to_string());
        at_once(async move { control.add_machine(&text).await });
        assert!(self.has(instance), "{machine} is refused");
    }

    fn stop(&self, instance: &str) {
        self.set_state(instance, MachineState::Stopped);
    }

    fn start(&self, instance: &str) {
        self.set_state(instance, MachineState::Running);
    }

    fn delete(&self, instance: &str) {
        let (control, id) = (self.control.clone(), instance.to_owned());
        at_once(async move { control.remove_machine(&id).await });
    }

    fn has(&self, instance: &str) -> bool {
        self.control.machine(instance).is_ok()
    }

    fn provider_id(&self, instance: &str) -> String {
        format!("cloudlycke://{instance}")
    }

    fn labels(&self, _: &str) -> Vec<(&'static str, String)> {
        vec![
            ("node.kubernetes.io/instance-type", TYPE.to_owned()),
            ("topology.kubernetes.io/region", "virtualbox".to_owned()),
            ("topology.kubernetes.io/zone", "virtualbox".to_owned()),
        ]
    }

    fn private_address(&self, instance: &str) -> String {
        self.address(instance).to_string()
    }

    fn balancers(&self) -> Vec<Balancer> {
        let all = self.control.balancers(None).into_iter().map(|status| {
            let (addresses, spec) = (&status.balancer.addresses, &status.balancer.spec);
            let members: BTreeSet<String> = spec.backends.iter().map(|one| one.machine.clone()).collect();
            let mut ports: BTreeMap<u16, (BTreeSet<String>, BTreeSet<u16>)> = BTreeMap::new();
            for listener in &spec.listeners {
                let entry = ports.entry(listener.port).or_insert_with(|| (members.clone(), BTreeSet::new()));
                entry.1.insert(listener.node_port);
            }
            Balancer {
                id: status.key.to_string(),
                addresses: addresses.iter().map(ToString::to_string).collect(),
                ports,
            }
        });
        all.collect()
    }

    fn calls(&self) -> Vec<Call> {
        self.log(|log| log.calls.clone())
    }

    fn under_way(&self) -> usize {
        self.log(|log| log.unanswered)
    }

    fn go_down(&self) {
        self.log(|log| log.trouble = Trouble::Down);
    }

    fn fall_silent(&self) {
        self.log(|log| log.trouble = Trouble::Silent);
    }

    fn come_back(&self) {
        self.log(|log| log.trouble = Trouble::None);
    }

    fn never_answer_the_next_creation(&self) {
        self.log(|log| log.stall_next_creation = true);
    }
}

/// Answers HTTP requests and datagrams at the node ports of an instance with its name, until it is dropped.
pub(crate) async fn answer_at(
    address: IpAddr,
    tcp: u16,
    udp: u16,
    name: &'static str,
    tasks: &mut JoinSet<()>,
) -> Outcome {
    let listener = TcpListener::bind((address, tcp)).await?;
    let socket = UdpSocket::bind((address, udp)).await?;
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 1024];
                if stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                    let length = name.len();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}");
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    tasks.spawn(async move {
        let mut datagram = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
            let answer = [&datagram[..length], b" ", name.as_bytes()].concat();
            let _ = socket.send_to(&answer, from).await;
        }
    });
    Ok(())
}

pub(crate) async fn get(at: SocketAddr) -> Result<String, String> {
    let mut stream = TcpStream::connect(at).await.map_err(|why| why.to_string())?;
    let request = b"GET / HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.map_err(|why| why.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(|why| why.to_string())?;
    answer.rsplit("\r\n\r\n").next().map(str::to_owned).ok_or(answer.clone())
}

async fn ask(at: SocketAddr) -> Result<String, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(|why| why.to_string())?;
    socket.send_to(b"hello", at).await.map_err(|why| why.to_string())?;
    let mut answer = [0; 64];
    let received =
        tokio::time::timeout(std::time::Duration::from_secs(5), socket.recv_from(&mut answer)).await;
    let (length, from) = received.map_err(|_| "no answer".to_owned())?.map_err(|why| why.to_string())?;
    if from != at {
        return Err(format!("{from} answered"));
    }
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

pub(crate) async fn http_and_datagrams_reach_the_nodes(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::<Cloudlycke>::at(cluster, &["one", "two"]).await?;
    let mut manager = fixture.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    fixture.nodes_join(&["one", "two"]).await?;
    let ports = json!([
        { "name": "http", "port": 8080, "protocol": "TCP" },
        { "name": "dns", "port": 5353, "protocol": "UDP" },
    ]);
    let web = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" }, "ports": ports } });
    cluster.create(SERVICES, &web).await?;
    fixture.serves(&[5353, 8080], &["one", "two"]).await?;
    let service = cluster.get(WEB).await?;
    let node_port = |at: usize| {
        u16::try_from(service["spec"]["ports"][at]["nodePort"].as_u64().unwrap_or_default()).unwrap()
    };
    let mut tasks = JoinSet::new();
    for name in ["one", "two"] {
        answer_at(fixture.cloud.address(name), node_port(0), node_port(1), name, &mut tasks).await?;
    }
    let entry = &service["status"]["loadBalancer"]["ingress"][0];
    assert_eq!(text(entry, "/ipMode"), "Proxy", "CL-32");
    let address: IpAddr = text(entry, "/ip").parse()?;
    for (what, port) in [("HTTP", 8080), ("datagrams", 5353)] {
        eventually(SOON, &format!("both nodes answer {what}"), async || {
            let mut heard = BTreeSet::new();
            for _ in 0..4 {
                let at = SocketAddr::new(address, port);
                heard.insert(if port == 8080 { get(at).await? } else { ask(at).await? });
            }
            let names = heard.iter().all(|text| text.ends_with("one") || text.ends_with("two"));
            if heard.len() == 2 && names { Ok(()) } else { Err(format!("CL-32 CL-58 {heard:?}")) }
        })
        .await?;
    }
    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    eventually(SOON, "nobody listens any more", async || match get(SocketAddr::new(address, 8080)).await {
        Err(_) => Ok(()),
        Ok(answer) => Err(format!("CL-38 {answer}")),
    })
    .await?;
    fixture.close(&mut [manager]).await
}
