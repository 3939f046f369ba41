//! What the plane must live through: idle connections, and changes under load.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
    time::sleep,
};

use super::{
    load::{ask, connect},
    proxies::{Player, line},
    role::{KEEP, MESSAGE, ONCE, PIECE, TICK},
};
use crate::memory::memory_of;

/// What came out, and whether that is good enough.
#[derive(Debug)]
pub(crate) struct Trial {
    text: String,
    holds: bool,
}

impl Trial {
    pub(crate) fn new(text: String, holds: bool) -> Self {
        Self { text, holds }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.text, if self.holds { "holds" } else { "DOES NOT HOLD" })
    }
}

pub(super) const AT: ([u8; 4], u16) = ([127, 78, 2, 1], 8080);
pub(super) const OTHER: ([u8; 4], u16) = ([127, 78, 2, 2], 8080);

/// As many as the goal asks for. Each takes two descriptors of the plane.
const IDLE: u64 = 10_000;
/// Planes that share them, at most.
const MOST_PLANES: u64 = 16;
/// Descriptors of a process for everything else, and some to spare.
const OTHERS: u64 = 200;
/// What an idle connection may take.
pub(super) const MOST_EACH: u64 = 8 * 1024;
/// Connections that stream while the backends change.
const STREAMS: usize = 200;
/// Ends a hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn plane() -> io::Result<Player> {
    Player::start(&["plane".to_owned()]).await
}

pub(super) fn resident(plane: &Player) -> u64 {
    plane.id().and_then(memory_of).map_or(0, |memory| memory.now * 1024)
}

/// How many planes it takes for so many idle connections, where a process may open this many files, and how many
/// connections they take together.
fn planes_for(idle: u64, files: u64) -> (u64, u64) {
    let (each, here) = (files.saturating_sub(OTHERS) / 2, files.saturating_sub(OTHERS));
    let wanted = idle.min(here).max(1);
    (wanted.div_ceil(each.max(1)).min(MOST_PLANES), wanted)
}

/// Connections that have served a request and went quiet. Where one process may not open that many files, several planes
/// have them; each is asked for the memory that it has more than before.
pub(crate) async fn idle(backends: &[SocketAddr], files: u64) -> io::Result<Trial> {
    let (number, wanted) = planes_for(IDLE, files);
    let mut planes = Vec::new();
    for last in 1..=u8::try_from(number).unwrap_or(u8::MAX) {
        let at = SocketAddr::from(([127, 78, 3, last], 8080));
        let mut plane = plane().await?;
        plane.tell(&line("web", 20_000, at, backends)).await?;
        let before = resident(&plane);
        planes.push((plane, at, before));
    }
    let mut quiet = Vec::new();
    let mut refused = 0;
    for (_, at, _) in planes.iter().cycle().take(usize::try_from(wanted).unwrap_or(usize::MAX)) {
        let asked = async {
            let mut stream = connect(*at).await?;
            ask(&mut stream, KEEP).await?;
            io::Result::Ok(stream)
        };
        match asked.await {
            Ok(stream) => quiet.push(stream),
            Err(_) => refused += 1,
        }
    }
    let count = u64::try_from(quiet.len()).unwrap_or_default().max(1);
    let more = planes.iter().map(|(plane, _, before)| resident(plane).saturating_sub(*before));
    let each = more.sum::<u64>() / count;
    for (plane, ..) in planes {
        plane.end().await?;
    }
    let limit = if number > 1 || wanted < IDLE {
        format!(" in {number} processes (one may open {files} files here)")
    } else {
        String::new()
    };
    Ok(Trial {
        text: format!(
            "{count} idle connections of {IDLE}{limit}, {refused} refused: {each} bytes each, goal at most {MOST_EACH}"
        ),
        holds: each <= MOST_EACH && refused == 0 && count >= IDLE,
    })
}

/// Reads a stream until it is over; says how many bytes came, or fails.
async fn stream(over: &AtomicBool, bytes: &AtomicU64) -> io::Result<()> {
    let mut stream = connect(AT.into()).await?;
    stream.write_all(&[TICK; MESSAGE]).await?;
    let mut piece = [0; PIECE];
    while !over.load(Relaxed) {
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut piece)).await;
        read.map_err(|_| io::Error::other("the stream stands still"))??;
        bytes.fetch_add(PIECE as u64, Relaxed);
    }
    Ok(())
}

/// A hundred changes of the backends while two hundred connections stream and others go on asking.
pub(crate) async fn rolling(backends: &[SocketAddr]) -> io::Result<Trial> {
    let mut plane = plane().await?;
    plane.tell(&line("web", 20_000, AT.into(), backends)).await?;
    let (over, asked, failed) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (bytes, broken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..STREAMS {
        let (over, bytes, broken) = (Arc::clone(&over), Arc::clone(&bytes), Arc::clone(&broken));
        clients.spawn(async move {
            if stream(&over, &bytes).await.is_err() {
                broken.fetch_add(1, Relaxed);
            }
        });
    }
    for number in 0..40 {
        let (over, asked, failed) = (Arc::clone(&over), Arc::clone(&asked), Arc::clone(&failed));
        clients.spawn(async move {
            let mut kept = None;
            while !over.load(Relaxed) {
                let result = async {
                    // Half of them keep their connection.
                    if number % 2 == 0 {
                        let mut stream = match kept.take() {
                            Some(stream) => stream,
                            None => connect(AT.into()).await?,
                        };
                        ask(&mut stream, KEEP).await?;
                        kept = Some(stream);
                    } else {
                        ask(&mut connect(AT.into()).await?, ONCE).await?;
                    }
                    io::Result::Ok(())
                };
                match result.await {
                    Ok(()) => asked.fetch_add(1, Relaxed),
                    Err(_) => failed.fetch_add(1, Relaxed),
                };
            }
        });
    }
    for change in 0..100_usize {
        let away = change % backends.len().max(1);
        let there: Vec<_> =
            backends.iter().enumerate().filter(|(at, _)| *at != away).map(|(_, backend)| *backend).collect();
        plane.tell(&line("web", 20_000, AT.into(), &there)).await?;
        sleep(Duration::from_millis(50)).await;
    }
    over.store(true, Relaxed);
    while clients.join_next().await.is_some() {}
    plane.end().await?;
    let (asked, failed) = (asked.load(Relaxed), failed.load(Relaxed));
    let (bytes, broken) = (bytes.load(Relaxed), broken.load(Relaxed));
    Ok(Trial {
        text: format!(
            "100 changes while {STREAMS} connections streamed {} MB and others made {asked} requests: {broken} streams \
             broke and {failed} requests failed, goal 0",
            bytes / 1_000_000
        ),
        holds: failed == 0 && broken == 0 && asked > 0 && bytes > 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_share_what_one_may_not_open() {
        let table = [
            ("plenty of files", 1_048_576, (1, 10_000)),
            ("just enough", 20_200, (1, 10_000)),
            ("not enough for one", 20_000, (2, 10_000)),
            ("clients are processes too", 4_096, (2, 3_896)),
            ("next to nothing", 100, (1, 1)),
        ];
        for (case, files, want) in table {
            assert_eq!(planes_for(10_000, files), want, "{case}");
        }
    }
}
