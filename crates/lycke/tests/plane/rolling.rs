//! A hundred changes of the nodes while two hundred connections stream.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use cloudberth_lycke::plane::Backend;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::fixture::{Fixture, NODE_PORT, PORT, Server, eventually, fresh_address};

const STREAMS: usize = 200;
const CHANGES: usize = 100;
/// The numbers in one piece of a stream.
const PIECE: u64 = 256;
const PAUSE: Duration = Duration::from_millis(40);

/// A machine that sends to everybody who connects its own number, and then 0, 1, 2 and so on without an end.
struct Streamer {
    number: u64,
    address: IpAddr,
    listens: JoinHandle<()>,
    clients: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Streamer {
    async fn start(number: u64) -> Self {
        let address = fresh_address();
        let listener = TcpListener::bind((address, NODE_PORT)).await.unwrap();
        let clients: Arc<Mutex<Vec<AbortHandle>>> = Arc::default();
        let listens = tokio::spawn({
            let clients = Arc::clone(&clients);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let client = tokio::spawn(stream_numbers(stream, number));
                    clients.lock().unwrap().push(client.abort_handle());
                }
            }
        });
        Self { number, address, listens, clients }
    }

    fn backend(&self) -> Backend {
        Backend { machine: format!("m{}", self.number), address: self.address, down: None }
    }

    /// Its port is closed, and then all connections to it are: nobody who lost one gets to it again.
    async fn die(&mut self) {
        self.listens.abort();
        let _ = (&mut self.listens).await;
        self.clients.lock().unwrap().drain(..).for_each(|client| client.abort());
    }
}

impl Drop for Streamer {
    fn drop(&mut self) {
        self.listens.abort();
        self.clients.lock().unwrap().drain(..).for_each(|client| client.abort());
    }
}

async fn stream_numbers(mut stream: TcpStream, number: u64) -> io::Result<()> {
    stream.write_all(&number.to_be_bytes()).await?;
    let mut next = 0;
    loop {
        let piece: Vec<u8> = (next..next + PIECE).flat_map(u64::to_be_bytes).collect();
        stream.write_all(&piece).await?;
        next += PIECE;
        sleep(PAUSE).await;
    }
}

/// What the clients have seen.
#[derive(Default)]
struct Seen {
    over: AtomicBool,
    pieces: AtomicUsize,
    /// How many streams are on each machine now.
    on: Mutex<BTreeMap<u64, usize>>,
    /// How many streams of each machine broke.
    broken: Mutex<BTreeMap<u64, usize>>,
}

impl Seen {
    fn on(&self, machine: u64) -> usize {
        self.on.lock().unwrap().get(&machine).copied().unwrap_or_default()
    }
}

/// Follows a stream from its first number on, and makes a new one when it breaks. A client that cannot connect, or that
/// misses a number, fails.
async fn follow(at: SocketAddr, seen: Arc<Seen>) -> Result<(), String> {
    while !seen.over.load(SeqCst) {
        let mut stream = TcpStream::connect(at).await.map_err(|why| format!("connect: {why}"))?;
        let machine = stream.read_u64().await.map_err(|why| format!("first byte: {why}"))?;
        *seen.on.lock().unwrap().entry(machine).or_default() += 1;
        let ended = follow_one(&mut stream, &seen).await;
        *seen.on.lock().unwrap().entry(machine).or_default() -= 1;
        match ended {
            Ok(()) => return Ok(()),
            Err(why) if why.kind() == ErrorKind::InvalidData => return Err(why.to_string()),
            Err(_) => *seen.broken.lock().unwrap().entry(machine).or_default() += 1,
        }
    }
    Ok(())
}

async fn follow_one(stream: &mut TcpStream, seen: &Seen) -> io::Result<()> {
    let (mut next, mut piece) = (0, vec![0; usize::try_from(PIECE).unwrap() * 8]);
    while !seen.over.load(SeqCst) {
        let read = timeout(crate::fixture::DEADLINE, stream.read_exact(&mut piece)).await;
        read.unwrap_or_else(|_| Err(io::Error::new(ErrorKind::InvalidData, "the stream stands still")))?;
        for number in piece.chunks_exact(8) {
            if number != u64::to_be_bytes(next) {
                return Err(io::Error::new(ErrorKind::InvalidData, format!("{number:?} in place of {next}")));
            }
            next += 1;
        }
        seen.pieces.fetch_add(1, SeqCst);
    }
    Ok(())
}

#[tokio::test]
async fn a_hundred_changes_break_only_the_streams_of_a_machine_that_died() {
    let mut machines = Vec::new();
    for number in 0..4 {
        machines.push(Streamer::start(number).await);
    }
    let nobody: &[&Server] = &[];
    let mut fixture = Fixture::new(nobody);
    let all: Vec<_> = machines.iter().map(Streamer::backend).collect();
    fixture.config.backends = all.clone();
    fixture.apply().await;
    let (at, seen) = (fixture.at(PORT), Arc::new(Seen::default()));
    let mut clients = JoinSet::new();
    for _ in 0..STREAMS {
        clients.spawn(follow(at, Arc::clone(&seen)));
    }
    let flowing = |streams: usize| match seen.on.lock().unwrap().values().sum::<usize>() {
        count if count == streams => Ok(()),
        other => Err(format!("{other} streams")),
    };
    eventually("CL-87 all stream", || flowing(STREAMS)).await;

    let mut killed = 0;
    for change in 0..CHANGES {
        if change == CHANGES / 2 {
            killed = seen.on(3);
            machines[3].die().await;
            eventually("CL-87 its clients find others", || flowing(STREAMS)).await;
        }
        fixture.config.backends = all.clone();
        // Each time another one is away; the last change brings all of them back.
        if change + 1 < CHANGES {
            fixture.config.backends.remove(change % 4);
        }
        let before = seen.pieces.load(SeqCst);
        fixture.apply().await;
        eventually("CL-87 streams go on", || match seen.pieces.load(SeqCst) - before {
            STREAMS.. => Ok(()),
            few => Err(format!("{few} pieces")),
        })
        .await;
    }
    seen.over.store(true, SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap().expect("CL-87 nobody fails to connect, and no byte is lost");
    }
    assert!(killed > 0, "CL-87 somebody was on the machine that died");
    let broken = seen.broken.lock().unwrap().clone();
    assert_eq!(broken, BTreeMap::from([(3, killed)]), "CL-87 nobody else's stream broke");
    let counted = fixture.counters().connections;
    assert_eq!((counted.failed, counted.no_backend, counted.refused_limit), (0, 0, 0), "CL-87");
}
