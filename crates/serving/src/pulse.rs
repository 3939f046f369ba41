//! Whether a connection is doing anything.
//!
//! A client that sends nothing, or half a request, or does not take its answer must not hold a connection for ever. The
//! timer of hyper knows no difference between the first two, and idle connections may wait longer than the header of a
//! request.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::Instant,
};

/// How long a connection may take for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the handshake and the first header together, and from the first byte of a later request to the end of its
    /// header.
    pub(crate) header: Duration,
    /// From one request to the next.
    pub(crate) idle: Duration,
    /// For a client that takes nothing of what is sent to it.
    pub(crate) stall: Duration,
}

/// What a connection has done so far, for whoever has to choose one to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No request of it has been answered yet.
    Newcomer {
        /// Whether it has sent a byte.
        spoke: bool,
        /// When it was accepted.
        since: Instant,
    },
    /// Its last request was answered then.
    Idle(Instant),
    /// Requests are being answered; the first of them began then.
    Busy(Instant),
}

#[derive(Clone, Debug)]
struct Beat {
    accepted: Instant,
    spoke: bool,
    served: bool,
    /// HTTP/2: where one request begins and another ends cannot be seen from its bytes.
    interleaved: bool,
    in_flight: usize,
    /// Since when requests are being answered, or none is.
    since: Instant,
    header_since: Option<Instant>,
    stalled_since: Option<Instant>,
}

impl Beat {
    fn deadline(&self, patience: Patience) -> Option<Instant> {
        let usual = match (self.in_flight, self.header_since) {
            (1.., _) => None,
            (0, _) if !self.served => Some(self.accepted + patience.header),
            (0, Some(since)) if !self.interleaved => Some(since + patience.header),
            (0, _) => Some(self.since + patience.idle),
        };
        let stalled = self.stalled_since.map(|since| since + patience.stall);
        usual.into_iter().chain(stalled).min()
    }
}

/// What happens on one connection.
#[derive(Debug)]
pub(crate) struct Pulse {
    beat: Mutex<Beat>,
    patience: Patience,
    pub(crate) changed: Notify,
}

impl Pulse {
    /// Of a connection that was accepted just now.
    pub(crate) fn new(patience: Patience) -> Arc<Self> {
        let now = Instant::now();
        let beat = Beat {
            accepted: now,
            spoke: false,
            served: false,
            interleaved: false,
            in_flight: 0,
            since: now,
            header_since: None,
            stalled_since: None,
        };
        Arc::new(Self { beat: Mutex::new(beat), patience, changed: Notify::new() })
    }

    pub(crate) fn standing(&self) -> Standing {
        let beat = self.lock();
        match (beat.in_flight, beat.served) {
            (1.., _) => Standing::Busy(beat.since),
            (0, true) => Standing::Idle(beat.since),
            (0, false) => Standing::Newcomer { spoke: beat.spoke, since: beat.accepted },
        }
    }

    /// When patience ends, as things are; `None` while a request is being answered, which has a deadline of its own.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline(self.patience)
    }

    /// The first byte has come.
    pub(crate) fn spoke(&self) {
        self.lock().spoke = true;
    }

    /// The handshake is over.
    pub(crate) fn agreed(&self, interleaved: bool) {
        self.lock().interleaved = interleaved;
    }

    /// A request has arrived in full; it is being answered until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut beat = self.lock();
        if beat.in_flight == 0 {
            beat.since = Instant::now();
        }
        beat.in_flight += 1;
        beat.header_since = None;
        drop(beat);
        self.changed.notify_one();
        Busy(Arc::clone(self))
    }

    fn heard(&self) {
        let mut beat = self.lock();
        if beat.in_flight == 0 && beat.header_since.is_none() {
            beat.header_since = Some(Instant::now());
            drop(beat);
            self.changed.notify_one();
        }
    }

    fn wrote(&self, went: bool) {
        let mut beat = self.lock();
        match (went, beat.stalled_since) {
            (true, None) | (false, Some(_)) => return,
            (true, Some(_)) => beat.stalled_since = None,
            (false, None) => beat.stalled_since = Some(Instant::now()),
        }
        drop(beat);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Beat> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut beat = self.0.lock();
        beat.in_flight = beat.in_flight.saturating_sub(1);
        beat.served = true;
        if beat.in_flight == 0 {
            beat.since = Instant::now();
        }
        drop(beat);
        self.0.changed.notify_one();
    }
}

/// A stream whose reads and writes are noticed.
pub(crate) struct Heard<S> {
    pub(crate) stream: S,
    pub(crate) pulse: Arc<Pulse>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pulse.heard();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.pulse.wrote(polled.is_ready());
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.pulse.wrote(polled.is_ready());
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.pulse.wrote(polled.is_ready());
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, time::advance};

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const PATIENCE: Patience = Patience { header: seconds(5), idle: seconds(90), stall: seconds(10) };

    #[tokio::test(start_paused = true)]
    async fn patience_depends_on_what_is_going_on() {
        for interleaved in [false, true] {
            let pulse = Pulse::new(PATIENCE);
            let left = || pulse.deadline().map(|at| at - Instant::now());
            assert_eq!(left(), Some(seconds(5)), "L12-902: nothing yet");
            advance(seconds(2)).await;
            pulse.spoke();
            pulse.agreed(interleaved);
            pulse.heard();
            assert_eq!(left(), Some(seconds(3)), "L12-902: handshake and first header together");
            let (first, second) = (pulse.begin(), pulse.begin());
            assert_eq!(left(), None, "it is being answered");
            advance(seconds(1000)).await;
            drop(first);
            assert_eq!(left(), None, "the other one still is");
            drop(second);
            assert_eq!(left(), Some(seconds(90)), "idle");
            advance(seconds(50)).await;
            pulse.heard();
            let header =
                |passed: u64| Some(if interleaved { seconds(40 - passed) } else { seconds(5 - passed) });
            assert_eq!(left(), header(0), "L12-903: another request begins");
            advance(seconds(1)).await;
            pulse.heard();
            assert_eq!(left(), header(1), "more of it");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn patience_with_those_who_take_nothing_is_short() {
        let pulse = Pulse::new(PATIENCE);
        let (here, mut there) = tokio::io::duplex(4);
        let mut heard = Heard { stream: here, pulse: Arc::clone(&pulse) };
        let busy = pulse.begin();
        let mut write = async || {
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut heard).poll_write(cx, b"1234").is_ready()))
                .await
        };
        let left = || pulse.deadline().map(|at| at - Instant::now());
        assert!(write().await);
        assert_eq!(left(), None);
        assert!(!write().await, "the client takes nothing");
        assert_eq!(left(), Some(seconds(10)), "L12-904");
        advance(seconds(4)).await;
        assert!(!write().await);
        assert_eq!(left(), Some(seconds(6)), "L12-904: trying again changes nothing");
        there.read_exact(&mut [0; 4]).await.unwrap();
        assert!(write().await);
        assert_eq!(left(), None, "it took some");
        drop(busy);
    }

    #[tokio::test(start_paused = true)]
    async fn standing_is_earned_by_answers() {
        let pulse = Pulse::new(PATIENCE);
        let accepted = Instant::now();
        assert_eq!(pulse.standing(), Standing::Newcomer { spoke: false, since: accepted });
        advance(seconds(1)).await;
        pulse.spoke();
        pulse.agreed(true);
        pulse.heard();
        assert_eq!(pulse.standing(), Standing::Newcomer { spoke: true, since: accepted });
        let (first, began) = (pulse.begin(), Instant::now());
        advance(seconds(1)).await;
        let second = pulse.begin();
        drop(first);
        assert_eq!(pulse.standing(), Standing::Busy(began));
        drop(second);
        assert_eq!(pulse.standing(), Standing::Idle(Instant::now()));
    }
}
