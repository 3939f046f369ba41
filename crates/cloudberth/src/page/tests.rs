//! The page on a port, with a world of its own behind it, asked byte by byte as no browser would.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time::timeout,
};

use super::*;
use crate::world::{Command, Entry, Happening, Later, NodeCard, Snapshot};

/// It ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world that does what it is told, and nothing by itself.
struct Toy {
    now: Mutex<(Snapshot, Vec<Entry>)>,
    changed: watch::Sender<u64>,
}

impl Toy {
    fn new(nodes: usize) -> Arc<Self> {
        let card = |n| NodeCard { name: format!("node-{n}"), ready: true, ..NodeCard::default() };
        let snapshot = Snapshot { seq: 1, nodes: (0..nodes).map(card).collect(), ..Snapshot::default() };
        Arc::new(Self { now: Mutex::new((snapshot, Vec::new())), changed: watch::Sender::new(1) })
    }

    fn now(&self) -> MutexGuard<'_, (Snapshot, Vec<Entry>)> {
        self.now.lock().unwrap()
    }

    /// Something happens, and every node changes.
    fn happen(&self, what: &str) {
        let (snapshot, entries) = &mut *self.now();
        snapshot.seq += 1;
        snapshot.nodes.iter_mut().for_each(|node| node.ready = !node.ready);
        entries.push(Entry { seq: snapshot.seq, at_ms: 5, what: Happening::Deed { what: what.to_owned() } });
        self.changed.send_replace(snapshot.seq);
    }
}

impl Watched for Toy {
    fn snapshot(&self) -> Snapshot {
        self.now().0.clone()
    }

    fn happenings(&self, after: u64) -> Vec<Entry> {
        self.now().1.iter().filter(|entry| entry.seq > after).cloned().collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn run(&self, command: Command) -> Later<'_, Result<String, String>> {
        Box::pin(async move {
            match command {
                Command::AddInstance => Ok("node-9 boots".to_owned()),
                Command::StopInstance { name } => Err(format!("there is no instance {name}")),
                Command::KillLeader => std::future::pending().await,
                _ => Ok(String::new()),
            }
        })
    }
}

async fn page(world: &Arc<Toy>, limits: Limits) -> Page {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = Arc::clone(world) as Arc<dyn Watched>;
    Page::serve_within(world, listener, Secrets::known("t0k3n", "s3ss10n"), limits).unwrap()
}

/// Sends a request as it stands and gives the stream to read the answer from. `{}` is the page's address, `{port}` its
/// port.
async fn send(page: &Page, request: &str) -> TcpStream {
    let address = page.address();
    let request = request.replace("{}", &address.to_string()).replace("{port}", &address.port().to_string());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The whole answer to a request, which must be the last of its connection.
async fn ask(page: &Page, request: &str) -> String {
    let mut stream = send(page, request).await;
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

async fn get(page: &Page, path: &str) -> String {
    ask(page, &format!("GET {path} HTTP/1.1\r\n{OURS}\r\n")).await
}

async fn post(page: &Page, body: &str) -> String {
    let length = body.len();
    let kind = "content-type: application/json";
    ask(page, &format!("POST /do HTTP/1.1\r\n{OURS}{kind}\r\ncontent-length: {length}\r\n\r\n{body}")).await
}

const OURS: &str = "host: {}\r\ncookie: cloudberth-{port}=s3ss10n\r\nconnection: close\r\n";

/// Reads until this was read.
async fn reads(stream: &mut TcpStream, what: &str) -> String {
    let mut read = Vec::new();
    let found = timeout(PATIENCE, async {
        while !String::from_utf8_lossy(&read).contains(what) {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{}", String::from_utf8_lossy(&read));
        }
    });
    found.await.unwrap_or_else(|_| panic!("{what:?} never came"));
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn the_link_is_exchanged_for_a_cookie_once() {
    let page = page(&Toy::new(1), Limits::default()).await;
    assert_eq!(page.link(), format!("http://{}/?token=t0k3n", page.address()));
    let visit = "GET /?token=t0k3n HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n";
    let answer = ask(&page, visit).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let cookie = format!(
        "set-cookie: cloudberth-{}=s3ss10n; Path=/; HttpOnly; SameSite=Strict\r\n",
        page.address().port()
    );
    assert!(answer.contains(&cookie), "{answer}");
    assert!(answer.contains("http-equiv=\"refresh\" content=\"0;url=/\""), "{answer}");
    assert!(!answer.contains("t0k3n"), "{answer}");
    let again = ask(&page, visit).await;
    assert!(again.starts_with("HTTP/1.1 403 ") && !again.contains("set-cookie"), "{again}");
    let answer = get(&page, "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<h1>cloudberth"), "{answer}");
}

#[tokio::test]
async fn strangers_get_403_whatever_they_ask_for() {
    let page = page(&Toy::new(1), Limits::default()).await;
    let cookie = "cookie: cloudberth-{port}=s3ss10n\r\n";
    let table = [
        ("no cookie", "host: {}\r\n".to_owned()),
        ("a foreign host", format!("host: evil.example\r\n{cookie}")),
        ("another origin", format!("host: {{}}\r\n{cookie}origin: https://evil.example\r\n")),
        ("another port here", format!("host: {{}}\r\n{cookie}origin: http://127.0.0.1:1\r\n")),
    ];
    for (who, headers) in table {
        for what in ["GET /", "GET /main.js", "GET /events", "GET /none", "POST /do"] {
            let body = "content-type: application/json\r\ncontent-length: 20\r\nconnection: close\r\n\r\n{\"do\":\"AddInstance\"}";
            let answer = ask(&page, &format!("{what} HTTP/1.1\r\n{headers}{body}")).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{who}, {what}: {answer}");
            assert!(
                answer.contains("content-security-policy: default-src 'none'"),
                "{who}, {what}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn answers_are_not_stored_and_run_no_foreign_script() {
    let page = page(&Toy::new(1), Limits::default()).await;
    for (path, kind) in [("/", "text/html"), ("/main.js", "text/javascript"), ("/page.css", "text/css")] {
        let answer = get(&page, path).await;
        for header in [
            "cache-control: no-store",
            "script-src 'self'; style-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
            &format!("content-type: {kind}"),
        ] {
            assert!(answer.contains(header), "{path} lacks {header}: {answer}");
        }
        assert!(!answer.contains("unsafe-inline") && !answer.contains("unsafe-eval"), "{path}");
    }
}

#[tokio::test]
async fn commands_are_carried_out_or_refused_in_words() {
    let page = page(&Toy::new(1), Limits { command: Duration::from_millis(50), ..Limits::default() }).await;
    let large = format!("{{\"do\":\"CreateService\",\"yaml\":\"{}\"}}", "x".repeat(routes::MAX_BODY));
    let table = [
        ("done", r#"{"do":"AddInstance"}"#, 200, r#"{"done":"node-9 boots"}"#),
        ("not done", r#"{"do":"StopInstance","name":"x"}"#, 200, r#"{"refused":"there is no instance x"}"#),
        ("too slow", r#"{"do":"KillLeader"}"#, 200, "longer than it should"),
        ("bad JSON", "{", 400, "This is no command: EOF"),
        ("not UTF-8 once decoded", r#"{"do":"\ud800"}"#, 400, "This is no command: "),
        ("nothing", "", 400, "This is no command: "),
        (
            "an unknown command",
            r#"{"do":"Explode"}"#,
            400,
            "unknown variant `Explode`, expected one of `AddInstance`",
        ),
        (
            "an unknown way to break it",
            r#"{"do":"BreakCloud","how":"softly"}"#,
            400,
            "unknown variant `softly`",
        ),
        ("a field that is missing", r#"{"do":"StopInstance"}"#, 400, "missing field `name`"),
        ("a field too many", r#"{"do":"StopInstance","name":"x","now":1}"#, 400, "unknown field `now`"),
        ("too large", &large, 413, "larger than 256 KiB"),
    ];
    for (case, body, status, want) in table {
        let answer = post(&page, body).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(want),
            "{case}: {answer}"
        );
    }
}

#[tokio::test]
async fn what_does_not_exist_or_does_not_fit_is_said_to_be_so() {
    let page = page(&Toy::new(1), Limits::default()).await;
    let table = [
        ("GET /none HTTP/1.1", "", "404"),
        ("GET /../Cargo.toml HTTP/1.1", "", "404"),
        ("GET /do HTTP/1.1", "", "405"),
        ("POST /events HTTP/1.1", "content-length: 0\r\n", "405"),
        ("DELETE / HTTP/1.1", "", "405"),
        ("POST /do HTTP/1.1", "content-type: text/plain\r\ncontent-length: 2\r\n", "415"),
    ];
    for (line, more, status) in table {
        let answer = ask(&page, &format!("{line}\r\n{OURS}{more}\r\n{{}}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
    }
    let head = ask(&page, &format!("HEAD / HTTP/1.1\r\n{OURS}\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn a_stream_begins_with_everything_and_goes_on_with_what_changes() {
    let world = Toy::new(3);
    world.happen("first");
    let page = page(&world, Limits { pace: Duration::from_millis(5), ..Limits::default() }).await;
    let mut stream = send(&page, &format!("GET /events HTTP/1.1\r\n{OURS}\r\n")).await;
    let start = reads(&mut stream, "first").await;
    assert!(start.contains("content-type: text/event-stream"), "{start}");
    assert!(start.contains("event: world\ndata: {\"full\":true,"), "{start}");
    assert!(start.contains("id: 2\nevent: happened\n"), "{start}");
    world.happen("second");
    let more = reads(&mut stream, "second").await;
    assert!(
        more.contains("{\"full\":false,") && more.contains("id: 3\n") && !more.contains("first"),
        "{more}"
    );

    let resume = |id: u64| format!("GET /events HTTP/1.1\r\n{OURS}last-event-id: {id}\r\n\r\n");
    let again = reads(&mut send(&page, &resume(2)).await, "second").await;
    assert!(again.contains("{\"full\":true,") && !again.contains("first"), "{again}");
    let other = reads(&mut send(&page, &resume(99)).await, "second").await;
    assert!(other.contains("first"), "the numbers of another world say nothing: {other}");
}

#[tokio::test]
async fn who_does_not_read_is_disconnected_and_there_are_only_so_many() {
    let world = Toy::new(2_000);
    let short = Duration::from_millis(400);
    let limits = Limits {
        readers: 1,
        pace: Duration::from_millis(1),
        heartbeat: short / 4,
        header: short / 2,
        command: short / 2,
        silence: short,
        ..Limits::default()
    };
    let page = page(&world, limits).await;
    let request = format!("GET /events HTTP/1.1\r\n{OURS}\r\n");
    let mut reader = send(&page, &request).await;
    reads(&mut reader, "event: world").await;
    let refused = ask(&page, &request).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");

    // It is quiet, and it reads: it stays for longer than the limit.
    let quiet = tokio::time::Instant::now();
    while quiet.elapsed() < short * 2 {
        reads(&mut reader, "still here").await;
    }

    // Every piece is some hundred kilobytes, so all buffers on the way are full soon.
    let busy = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            loop {
                world.happen("more");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let other = timeout(PATIENCE, async {
        loop {
            let mut stream = send(&page, &request).await;
            let mut first = vec![0; 12];
            stream.read_exact(&mut first).await.unwrap();
            if first == *b"HTTP/1.1 200" {
                return stream;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut other = other.await.expect("the place of the one who does not read becomes free");
    reads(&mut other, "event: world").await;
    busy.abort();
}

#[tokio::test]
async fn it_ends_with_the_page_and_frees_the_port() {
    let page = page(&Toy::new(1), Limits::default()).await;
    let mut stream = send(&page, &format!("GET /events HTTP/1.1\r\n{OURS}\r\n")).await;
    reads(&mut stream, "event: world").await;
    let address = page.address();
    drop(page);
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the stream ends");
    drop(stream);
    let free = timeout(PATIENCE, async {
        while TcpListener::bind(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    free.await.expect("the port is free");
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let world = Toy::new(1) as Arc<dyn Watched>;
    let why = Page::serve(world, listener, Secrets::of_this_machine().unwrap()).unwrap_err();
    assert!(why.to_string().contains("0.0.0.0 is not a loopback address"), "{why}");
}

#[test]
fn secrets_are_long_and_never_the_same() {
    let (one, other) = (Secrets::of_this_machine().unwrap(), Secrets::of_this_machine().unwrap());
    assert!(one.token.len() == 32 && one.session.len() == 32);
    assert!(one.token != other.token && one.session != other.session && one.token != one.session);
}
