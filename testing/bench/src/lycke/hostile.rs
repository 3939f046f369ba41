//! Clients that mean no good to one load balancer, and what another one of the same plane does meanwhile.
//!
//! They are a process of their own, so that what they cost is not taken for what the plane does. It costs the computer
//! something all the same; so there is a second plane, and for comparison they go there.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind::WouldBlock, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinSet,
    time::{Instant, interval, sleep},
};

use super::{
    load::{Kind, Outcome, connect, measure},
    proxies::{Player, line},
    role::say,
    trials::{AT, MOST_EACH, OTHER, PATIENCE, Trial, plane, resident},
};

const CLIENTS: u64 = 5_000;
/// So many of them are let in.
const LIMIT: u64 = 4_096;
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(3);
/// Their load balancer at the second plane.
const ELSEWHERE: ([u8; 4], u16) = ([127, 78, 2, 3], 8080);
/// Every second one says a byte a second: each time so many parts of a second after the one before.
const PARTS: usize = 100;

/// The clients.
#[derive(Default)]
struct Crowd {
    clients: Arc<Vec<TcpStream>>,
    /// Those that were gone before they knew that they were connected.
    failed: usize,
    trickle: JoinSet<()>,
}

impl Crowd {
    async fn come(at: SocketAddr, count: usize) -> Self {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.extend(connect(at).await.and_then(tokio::net::TcpStream::into_std));
        }
        let (failed, clients) = (count - clients.len(), Arc::new(clients));
        let mut trickle = JoinSet::new();
        trickle.spawn(say_something(Arc::clone(&clients)));
        Self { clients, failed, trickle }
    }

    /// How many of them have been reset. None of those that were let in is told anything.
    fn refused(&self) -> usize {
        let waits = |client: &&TcpStream| client.peek(&mut [0]).is_err_and(|why| why.kind() == WouldBlock);
        self.failed + self.clients.len() - self.clients.iter().filter(waits).count()
    }

    async fn leave(mut self) {
        self.trickle.shutdown().await;
    }
}

async fn say_something(clients: Arc<Vec<TcpStream>>) {
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(PARTS).unwrap_or(u32::MAX));
    for part in (0..PARTS).cycle() {
        ticks.tick().await;
        for mut client in clients.iter().skip(2 * part).step_by(2 * PARTS) {
            // One that was refused cannot.
            let _ = client.write(b".");
        }
    }
}

/// Plays the clients. They `come ADDRESS COUNT`, tell how many were `refused`, and `leave`.
pub(crate) async fn crowd() -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut crowd = Crowd::default();
    say("ready").await?;
    while let Some(line) = lines.next_line().await? {
        let not_understood = || io::Error::other(format!("not understood: {line}"));
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["come", at, count] => {
                let (Ok(at), Ok(count)) = (at.parse(), count.parse()) else { return Err(not_understood()) };
                crowd = Crowd::come(at, count).await;
                say("here").await?;
            }
            ["refused"] => say(&crowd.refused().to_string()).await?,
            ["leave"] => {
                std::mem::take(&mut crowd).leave().await;
                say("gone").await?;
            }
            _ => return Err(not_understood()),
        }
    }
    Ok(())
}

/// Where the clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    Nowhere,
    Elsewhere,
    Here,
}

use Whereabouts::{Elsewhere, Here, Nowhere};

struct Fixture {
    here: Player,
    elsewhere: Player,
    crowd: Player,
    /// The memory that they took here, at most.
    grown: u64,
    /// How many were refused, each time.
    refused: BTreeSet<u64>,
}

/// What was measured with the clients at one place.
#[derive(Clone, Copy, Debug)]
struct Seen {
    outcome: Outcome,
    /// The processor time of the plane meanwhile.
    processor: Duration,
}

/// Connections that are open at the load balancer of the clients, and those that were refused so far.
async fn count(plane: &mut Player) -> io::Result<(u64, u64)> {
    let said = plane.ask("victim").await?;
    let count =
        said.split_once(' ').and_then(|(open, refused)| Some((open.parse().ok()?, refused.parse().ok()?)));
    count.ok_or_else(|| io::Error::other(format!("not understood: {said}")))
}

/// Waits until the counts are so.
async fn until(plane: &mut Player, so: impl Fn((u64, u64)) -> bool) -> io::Result<()> {
    let start = Instant::now();
    loop {
        let seen = count(plane).await?;
        if so(seen) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("hostile clients, open and refused: {seen:?}")));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

impl Fixture {
    async fn new(backends: &[SocketAddr]) -> io::Result<Self> {
        let (mut here, mut elsewhere) = (plane().await?, plane().await?);
        let limit = usize::try_from(LIMIT).unwrap_or(usize::MAX);
        here.tell(&line("victim", limit, AT.into(), backends)).await?;
        here.tell(&line("other", limit, OTHER.into(), backends)).await?;
        elsewhere.tell(&line("victim", limit, ELSEWHERE.into(), backends)).await?;
        let crowd = Player::start(&["hostile".to_owned()]).await?;
        Ok(Self { here, elsewhere, crowd, grown: 0, refused: BTreeSet::new() })
    }

    async fn measure(&mut self, clients: Whereabouts) -> io::Result<Seen> {
        let memory = resident(&self.here);
        let (victim, at) = match clients {
            Nowhere => return self.load().await,
            Elsewhere => (&mut self.elsewhere, SocketAddr::from(ELSEWHERE)),
            Here => (&mut self.here, SocketAddr::from(AT)),
        };
        let (_, before) = count(victim).await?;
        self.crowd.tell(&format!("come {at} {CLIENTS}")).await?;
        until(victim, |(open, refused)| open + refused - before == CLIENTS).await?;
        let seen = self.load().await?;
        if clients == Here {
            self.grown = self.grown.max(resident(&self.here).saturating_sub(memory));
        }
        let refused = self.crowd.ask("refused").await?;
        self.refused.insert(refused.parse().map_err(io::Error::other)?);
        self.crowd.tell("leave").await?;
        // One that is still counted would keep the place of one who comes in the next round.
        let victim = if clients == Here { &mut self.here } else { &mut self.elsewhere };
        until(victim, |(open, _)| open == 0).await?;
        Ok(seen)
    }

    async fn load(&self) -> io::Result<Seen> {
        let before = self.here.processor_time();
        let outcome = measure(Kind::Requests, OTHER.into(), TIME).await?;
        Ok(Seen { outcome, processor: self.here.processor_time().saturating_sub(before) })
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Clients that connect and say nothing, or a byte a second: what they cost, and what of it is due to sharing a plane.
pub(crate) async fn trial(backends: &[SocketAddr]) -> io::Result<[Trial; 2]> {
    let mut fixture = Fixture::new(backends).await?;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        // What drifts while this runs meets both ends alike.
        let (first, last) = if round % 2 == 0 { (Nowhere, Here) } else { (Here, Nowhere) };
        let first = fixture.measure(first).await?;
        let elsewhere = fixture.measure(Elsewhere).await?;
        let last = fixture.measure(last).await?;
        let (nowhere, here) = if round % 2 == 0 { (first, last) } else { (last, first) };
        rounds.push([nowhere, elsewhere, here]);
    }
    let Fixture { here, elsewhere, crowd, grown, refused } = fixture;
    for player in [crowd, here, elsewhere] {
        player.end().await?;
    }
    let rate = |seen: &Seen| seen.outcome.rate.max(1.0);
    let plain = median(rounds.iter().map(|[nowhere, _, here]| rate(here) / rate(nowhere)).collect());
    let shared = median(rounds.iter().map(|[_, elsewhere, here]| rate(here) / rate(elsewhere)).collect());
    let work = |seen: fn(&[Seen; 3]) -> &Seen| {
        let done: f64 = rounds.iter().map(|round| seen(round).outcome.done).sum();
        let processor: f64 = rounds.iter().map(|round| seen(round).processor.as_secs_f64()).sum();
        done / processor.max(0.01)
    };
    let (work_without, work_beside) = (work(|[nowhere, ..]| nowhere), work(|[.., here]| here));
    // No two of them come at once, and none leaves before it was counted: the number is exact.
    let as_wanted = refused == BTreeSet::from([CLIENTS - LIMIT]);
    let refused = refused.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
    let plain = Trial::new(
        format!(
            "{CLIENTS} hostile clients on one load balancer, {refused} of them refused, goal {}: requests/s of another \
             {plain:.2} of what they are without, goal at least 0.90; in a second of its own processor time the plane does \
             {work_beside:.0} requests, {work_without:.0} without; {} bytes of memory for each one let in, goal at most \
             {MOST_EACH}",
            CLIENTS - LIMIT,
            grown / LIMIT
        ),
        plain >= 0.9 && as_wanted && grown <= MOST_EACH * LIMIT,
    );
    let shared = Trial::new(
        format!(
            "the same clients on the same plane: requests/s of another load balancer {shared:.2} of what they are with the \
             clients at another plane, goal at least 0.95"
        ),
        shared >= 0.95,
    );
    Ok([plain, shared])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        for (numbers, want) in [(vec![3.0, 1.0, 2.0], 2.0), (vec![1.0], 1.0), (vec![], 0.0)] {
            assert!((median(numbers) - want).abs() < f64::EPSILON, "{want}");
        }
    }

    #[tokio::test]
    async fn clients_that_were_reset_are_told_from_those_that_wait() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let crowd = Crowd::come(listener.local_addr().unwrap(), 3).await;
        assert_eq!(crowd.refused(), 0);
        let (first, _) = listener.accept().await.unwrap();
        first.set_zero_linger().unwrap();
        drop(first);
        let told = async {
            while crowd.refused() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, told).await.unwrap();
        assert_eq!(crowd.refused(), 1);
        crowd.leave().await;
    }
}
