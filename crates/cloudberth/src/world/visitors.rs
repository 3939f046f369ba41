//! Visitors: they send requests through every load balancer that has an address, and say what came back.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cloudberth_core::ObjectKey;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::node_ports::NODE_HEADER;

/// The most that a person may ask for.
pub(crate) const MOST_PER_SECOND: u32 = 100;
/// A request that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// The newest visits are remembered.
const REMEMBERED: usize = 4_096;
/// Answers are small; more than this is not ours.
const LARGEST_ANSWER: u64 = 64 << 10;

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Its number: 1, 2, 3 and so on.
    pub number: u64,
    /// Through which load balancer: `namespace/name` of its Service.
    pub service: String,
    /// The node that answered, or why there was no answer.
    pub answer: Result<String, String>,
}

/// All visits.
pub(crate) struct Visitors {
    per_second: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    number: u64,
    visits: VecDeque<Visit>,
}

impl Visitors {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second: AtomicU32::new(per_second), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_rate(&self, per_second: u32) {
        self.per_second.store(per_second, Ordering::Relaxed);
    }

    /// The pause between two requests through one load balancer; `None` if nobody comes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        match self.per_second.load(Ordering::Relaxed) {
            0 => None,
            rate => Some(Duration::from_secs(1) / rate),
        }
    }

    pub(crate) fn note(&self, service: &ObjectKey, answer: Result<String, String>) {
        let mut inner = self.lock();
        inner.number += 1;
        let visit = Visit { number: inner.number, service: service.to_string(), answer };
        if inner.visits.len() == REMEMBERED {
            inner.visits.pop_front();
        }
        inner.visits.push_back(visit);
    }

    /// The number of the newest visit.
    pub(crate) fn newest(&self) -> u64 {
        self.lock().number
    }

    /// The visits after this one that are still remembered, oldest first.
    pub(crate) fn after(&self, number: u64) -> Vec<Visit> {
        self.lock().visits.iter().filter(|visit| visit.number > number).cloned().collect()
    }
}

/// Which nodes answered how often, of these visits.
pub fn answers(visits: &[Visit]) -> BTreeMap<String, usize> {
    let mut nodes = BTreeMap::new();
    for node in visits.iter().filter_map(|visit| visit.answer.as_ref().ok()) {
        *nodes.entry(node.clone()).or_insert(0) += 1;
    }
    nodes
}

/// One request over a new connection, as curl sends it. The answer is the node that sent it.
pub(crate) async fn visit(address: SocketAddr) -> Result<String, String> {
    let visit = timeout(PATIENCE, ask(address)).await;
    let answer = visit.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
    let answer = answer.map_err(|why| why.to_string())?;
    read(&answer)
}

async fn ask(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LARGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn read(answer: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(answer);
    let (head, _) = text.split_once("\r\n\r\n").ok_or("the connection ended before an answer")?;
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(format!("the answer was {status:?}"));
    }
    let node = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(NODE_HEADER).then(|| value.trim().to_owned())
    });
    node.ok_or_else(|| "the answer did not come from a node of this cluster".to_owned())
}

/// Visitors of one load balancer. They come until the task is dropped.
pub(crate) async fn come(
    visitors: Arc<Visitors>,
    service: ObjectKey,
    address: SocketAddr,
    heard: impl Fn(&ObjectKey, &Result<String, String>) -> bool,
) {
    loop {
        let Some(pause) = visitors.pause() else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let begun = tokio::time::Instant::now();
        let answer = visit(address).await;
        if answer.is_err() {
            // A load balancer that somebody deletes may end before this is heard of.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if heard(&service, &answer) {
            visitors.note(&service, answer);
        }
        tokio::time::sleep_until(begun + pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_of_a_node_is_one() {
        let table: [(&str, Result<&str, &str>); 5] = [
            ("HTTP/1.1 200 OK\r\nX-Node: node-1\r\n\r\nhello", Ok("node-1")),
            ("HTTP/1.1 503 Gone\r\nx-node: node-1\r\n\r\n", Err("503")),
            ("HTTP/1.1 200 OK\r\n\r\nhello", Err("not come from a node")),
            ("HTTP/1.1 200 OK\r\nx-no", Err("ended before")),
            ("", Err("ended before")),
        ];
        for (answer, want) in table {
            match (read(answer.as_bytes()), want) {
                (Ok(node), Ok(want)) => assert_eq!(node, want),
                (Err(why), Err(want)) => assert!(why.contains(want), "{answer:?}: {why}"),
                (have, want) => panic!("{answer:?}: {have:?} and not {want:?}"),
            }
        }
    }

    #[test]
    fn visits_are_counted_by_node() {
        let visitors = Visitors::new(5);
        let web = ObjectKey::new("default", "web");
        for answer in [Ok("a".to_owned()), Ok("b".to_owned()), Err("lost".to_owned()), Ok("a".to_owned())] {
            visitors.note(&web, answer);
        }
        assert_eq!(visitors.newest(), 4);
        let all = visitors.after(0);
        assert_eq!(answers(&all), [("a".to_owned(), 2), ("b".to_owned(), 1)].into());
        assert_eq!(visitors.after(3).len(), 1);
        assert_eq!(visitors.pause(), Some(Duration::from_millis(200)));
        visitors.set_rate(0);
        assert_eq!(visitors.pause(), None);
    }
}
