//! A plane, its backends and its clients.

use std::{
    fmt::Debug,
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::plane::{
    Backend, BalancerConfig, BalancerKey, BalancerReport, Counters, Health, HealthKind, Limits, Listener,
    LowPorts, Plane, PlaneEvent, PlaneObserver, Policy, Protocol, ProxyProtocol,
    socket::{InheritedSockets, PlaneSettings, SocketPlane},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// Ends a hang, also on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);
pub(crate) const NODE_PORT: u16 = 30_080;
pub(crate) const PORT: u16 = 8080;

/// An address that no other test uses: by process, and by number within the process.
pub(crate) fn fresh_address() -> IpAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let number = NEXT.fetch_add(1, SeqCst);
    let block = u8::try_from(std::process::id() % 63).unwrap() * 4 + u8::try_from(number / 250).unwrap();
    Ipv4Addr::new(127, 77, block, u8::try_from(number % 250 + 1).unwrap()).into()
}

pub(crate) fn key(name: &str) -> BalancerKey {
    BalancerKey { cluster: "c2".to_owned(), namespace: "default".to_owned(), name: name.to_owned() }
}

/// What the plane has noticed.
#[derive(Debug, Default)]
pub(crate) struct Noticed(Mutex<Vec<PlaneEvent>>);

impl PlaneObserver for Noticed {
    fn notice(&self, _key: &BalancerKey, event: PlaneEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// A plane with one load balancer, `web`.
pub(crate) struct Fixture {
    pub(crate) plane: SocketPlane,
    pub(crate) noticed: Arc<Noticed>,
    pub(crate) config: BalancerConfig,
}

impl Fixture {
    /// A load balancer that leads from TCP port 8080 to these backends. It does not exist before `apply`.
    pub(crate) fn new(backends: &[&Server]) -> Self {
        Self::with(backends, PlaneSettings { workers: 2, ..PlaneSettings::default() })
    }

    pub(crate) fn with(backends: &[&Server], settings: PlaneSettings) -> Self {
        Self::inheriting(backends, settings, InheritedSockets::default())
    }

    pub(crate) fn inheriting(
        backends: &[&Server],
        settings: PlaneSettings,
        inherited: InheritedSockets,
    ) -> Self {
        let noticed = Arc::new(Noticed::default());
        let observer: Arc<dyn PlaneObserver> = noticed.clone();
        let clock = Arc::new(SystemClock::new());
        let plane = SocketPlane::start_with(settings, inherited, observer, clock).unwrap();
        let config = config(fresh_address(), backends.iter().map(|server| server.backend()).collect());
        Self { plane, noticed, config }
    }

    pub(crate) async fn apply(&self) -> BalancerReport {
        self.apply_as("web", self.config.clone()).await
    }

    pub(crate) async fn apply_as(&self, name: &str, config: BalancerConfig) -> BalancerReport {
        within("apply", self.plane.apply(&key(name), config)).await
    }

    pub(crate) async fn plane_remove(&self, name: &str) {
        self.plane.remove(&key(name)).await;
    }

    pub(crate) fn report(&self) -> BalancerReport {
        self.plane.report(&key("web")).unwrap()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.plane.counters(&key("web")).unwrap()
    }

    /// Waits until a counter says so. Bytes are counted when they have been sent, and whoever gets them may be faster.
    pub(crate) async fn counts<T: PartialEq + Debug>(
        &self,
        what: &str,
        want: T,
        of: impl Fn(&Counters) -> T,
    ) {
        eventually(what, || {
            let seen = of(&self.counters());
            if seen == want { Ok(()) } else { Err(format!("{seen:?} and not {want:?}")) }
        })
        .await;
    }

    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        (self.config.addresses[0], port).into()
    }

    pub(crate) fn events(&self) -> Vec<PlaneEvent> {
        self.noticed.0.lock().unwrap().clone()
    }

    pub(crate) fn healthy(&self) -> Vec<Option<bool>> {
        self.report().backends.iter().map(|backend| backend.healthy).collect()
    }

    pub(crate) async fn until_healthy(&self, want: &[Option<bool>]) {
        eventually("health", || {
            (self.healthy() == want).then_some(()).ok_or_else(|| format!("{:?}", self.report()))
        })
        .await;
    }

    /// Asks once over a connection of its own; the name of the backend that answered.
    pub(crate) async fn ask(&self) -> io::Result<String> {
        ask(self.at(PORT)).await
    }
}

pub(crate) fn config(address: IpAddr, backends: Vec<Backend>) -> BalancerConfig {
    BalancerConfig {
        uid: "u1".to_owned(),
        addresses: vec![address],
        listeners: vec![Listener { protocol: Protocol::Tcp, port: PORT, node_port: NODE_PORT }],
        backends,
        affinity: None,
        source_ranges: Vec::new(),
        health: Health {
            kind: HealthKind::Auto,
            interval: Duration::from_millis(200),
            timeout: Duration::from_secs(1),
            healthy_threshold: 1,
            unhealthy_threshold: 2,
        },
        proxy_protocol: ProxyProtocol::None,
        policy: Policy::RoundRobin,
        idle_timeout: Some(Duration::from_secs(600)),
        limits: Limits {
            drain: Duration::from_secs(30),
            connections: 4096,
            udp_idle: Duration::from_secs(60),
            udp_flows: 4096,
            low_ports: LowPorts::Shift,
        },
    }
}

/// A machine whose node ports answer each line with its name. It dies with this value.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) answered: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// A machine without node ports.
    pub(crate) fn dead(name: &str) -> Self {
        let (address, answered) = (fresh_address(), Arc::default());
        Self { name: name.to_owned(), address, answered, tasks: Vec::new() }
    }

    pub(crate) async fn start(name: &str) -> Self {
        let mut server = Self::dead(name);
        server.open(NODE_PORT).await;
        server
    }

    /// Answers at one more node port.
    pub(crate) async fn open(&mut self, port: u16) {
        let listener = TcpListener::bind((self.address, port)).await.unwrap();
        let (name, answered) = (self.name.clone(), Arc::clone(&self.answered));
        self.tasks.push(tokio::spawn(async move {
            let mut clients = tokio::task::JoinSet::new();
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        clients.spawn(answer_lines(stream, name.clone(), Arc::clone(&answered)));
                    }
                    // One test uses up all file descriptors.
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        }));
    }

    /// Closes all node ports, and the connections to them.
    pub(crate) async fn die(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        Backend { machine: self.name.clone(), address: self.address, down: None }
    }

    pub(crate) fn answered(&self) -> usize {
        self.answered.load(SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn answer_lines(stream: TcpStream, name: String, answered: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while let Ok(1..) = stream.read_line(&mut line).await {
        answered.fetch_add(1, SeqCst);
        if stream.write_all(format!("{name}\n").as_bytes()).await.is_err() {
            return;
        }
        line.clear();
    }
}

/// A client that keeps its connection.
#[derive(Debug)]
pub(crate) struct Client(pub(crate) BufReader<TcpStream>);

impl Client {
    pub(crate) async fn connect(to: SocketAddr) -> io::Result<Self> {
        Ok(Self(BufReader::new(within("connect", TcpStream::connect(to)).await?)))
    }

    /// The name of the backend.
    pub(crate) async fn ask(&mut self) -> io::Result<String> {
        let mut line = String::new();
        within("answer", async {
            self.0.write_all(b"who?\n").await?;
            self.0.read_line(&mut line).await
        })
        .await?;
        if line.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line.trim().to_owned()) }
    }

    /// How the connection ends, if nothing more is sent: `Ok` is a proper end.
    pub(crate) async fn end(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        within("end", self.0.read_to_end(&mut rest)).await?;
        Ok(rest)
    }
}

pub(crate) async fn ask(to: SocketAddr) -> io::Result<String> {
    Client::connect(to).await?.ask().await
}

/// Says on standard error, also where the output of tests is kept back, that something cannot be shown on this computer.
pub(crate) fn not_shown(what: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED, {what} cannot be shown here: {why}");
}

/// What an error is, for comparing.
pub(crate) fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    timeout(DEADLINE, work).await.unwrap_or_else(|_| panic!("{what}: took longer than {DEADLINE:?}"))
}

/// Waits until something is so; `probe` says what it saw instead.
pub(crate) async fn eventually<T>(what: &str, mut probe: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match probe() {
            Ok(value) => return value,
            Err(seen) => assert!(start.elapsed() < DEADLINE, "{what}: {seen}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}
