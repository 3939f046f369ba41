//! What a connection is doing, and when it has been quiet for too long.
//!
//! A client that sends nothing, sends half a request or does not read its response must not hold a connection for ever.
//! hyper's own timer treats the first two alike, but an idle connection may wait longer than a half-sent header.

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the handshake and the first header together, and from the first byte of a later request to the end of its
    /// header.
    pub(crate) header: Duration,
    pub(crate) idle: Duration,
    /// For a client that does not read what we send.
    pub(crate) stall: Duration,
}

/// What a connection has done so far; decides which one is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No request of it has been answered yet.
    New {
        /// Whether it has sent a byte.
        sent_bytes: bool,
        since: Instant,
    },
    Idle(Instant),
    /// Requests are being answered; the first of them began then.
    Busy(Instant),
}

#[derive(Clone, Debug)]
struct State {
    accepted: Instant,
    sent_bytes: bool,
    served: bool,
    /// HTTP/2: its bytes do not show where one request ends and another begins.
    interleaved: bool,
    in_flight: usize,
    /// When it last changed between idle and busy.
    since: Instant,
    header_since: Option<Instant>,
    stalled_since: Option<Instant>,
}

impl State {
    fn deadline(&self, timeouts: Timeouts) -> Option<Instant> {
        let usual = match (self.in_flight, self.header_since) {
            (1.., _) => None,
            (0, _) if !self.served => Some(self.accepted + timeouts.header),
            (0, Some(since)) if !self.interleaved => Some(since + timeouts.header),
            (0, _) => Some(self.since + timeouts.idle),
        };
        let stalled = self.stalled_since.map(|since| since + timeouts.stall);
        usual.into_iter().chain(stalled).min()
    }
}

#[derive(Debug)]
pub(crate) struct Activity {
    state: Mutex<State>,
    timeouts: Timeouts,
    pub(crate) changed: Notify,
}

impl Activity {
    /// The activity of a connection that was accepted just now.
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Self> {
        let now = Instant::now();
        let state = State {
            accepted: now,
            sent_bytes: false,
            served: false,
            interleaved: false,
            in_flight: 0,
            since: now,
            header_since: None,
            stalled_since: None,
        };
        Arc::new(Self { state: Mutex::new(state), timeouts, changed: Notify::new() })
    }

    pub(crate) fn phase(&self) -> Phase {
        let state = self.lock();
        match (state.in_flight, state.served) {
            (1.., _) => Phase::Busy(state.since),
            (0, true) => Phase::Idle(state.since),
            (0, false) => Phase::New { sent_bytes: state.sent_bytes, since: state.accepted },
        }
    }

    /// When the connection times out as things are; `None` while a request is in flight, which has its own deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline(self.timeouts)
    }

    pub(crate) fn sent_bytes(&self) {
        self.lock().sent_bytes = true;
    }

    pub(crate) fn agreed(&self, interleaved: bool) {
        self.lock().interleaved = interleaved;
    }

    /// A request arrived; it is in flight until the returned guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        let mut state = self.lock();
        if state.in_flight == 0 {
            state.since = Instant::now();
        }
        state.in_flight += 1;
        state.header_since = None;
        drop(state);
        self.changed.notify_one();
        InFlight(Arc::clone(self))
    }

    fn heard(&self) {
        let mut state = self.lock();
        if state.in_flight == 0 && state.header_since.is_none() {
            state.header_since = Some(Instant::now());
            drop(state);
            self.changed.notify_one();
        }
    }

    fn wrote(&self, went: bool) {
        let mut state = self.lock();
        match (went, state.stalled_since) {
            (true, None) | (false, Some(_)) => return,
            (true, Some(_)) => state.stalled_since = None,
            (false, None) => state.stalled_since = Some(Instant::now()),
        }
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.served = true;
        if state.in_flight == 0 {
            state.since = Instant::now();
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

/// A stream that reports its reads and writes to an [`Activity`].
pub(crate) struct Tracked<S> {
    pub(crate) stream: S,
    pub(crate) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Tracked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.heard();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tracked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.activity.wrote(polled.is_ready());
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.activity.wrote(polled.is_ready());
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.activity.wrote(polled.is_ready());
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

    const PATIENCE: Timeouts = Timeouts { header: seconds(5), idle: seconds(90), stall: seconds(10) };

    #[tokio::test(start_paused = true)]
    async fn patience_depends_on_what_is_going_on() {
        for interleaved in [false, true] {
            let activity = Activity::new(PATIENCE);
            let left = || activity.deadline().map(|at| at - Instant::now());
            assert_eq!(left(), Some(seconds(5)), "L12-902: nothing yet");
            advance(seconds(2)).await;
            activity.sent_bytes();
            activity.agreed(interleaved);
            activity.heard();
            assert_eq!(left(), Some(seconds(3)), "L12-902: handshake and first header together");
            let (first, second) = (activity.begin(), activity.begin());
            assert_eq!(left(), None, "it is being answered");
            advance(seconds(1000)).await;
            drop(first);
            assert_eq!(left(), None, "the other one still is");
            drop(second);
            assert_eq!(left(), Some(seconds(90)), "idle");
            advance(seconds(50)).await;
            activity.heard();
            let header =
                |passed: u64| Some(if interleaved { seconds(40 - passed) } else { seconds(5 - passed) });
            assert_eq!(left(), header(0), "L12-903: another request begins");
            advance(seconds(1)).await;
            activity.heard();
            assert_eq!(left(), header(1), "more of it");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn patience_with_those_who_take_nothing_is_short() {
        let activity = Activity::new(PATIENCE);
        let (here, mut there) = tokio::io::duplex(4);
        let mut heard = Tracked { stream: here, activity: Arc::clone(&activity) };
        let busy = activity.begin();
        let mut write = async || {
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut heard).poll_write(cx, b"1234").is_ready()))
                .await
        };
        let left = || activity.deadline().map(|at| at - Instant::now());
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
        let activity = Activity::new(PATIENCE);
        let accepted = Instant::now();
        assert_eq!(activity.phase(), Phase::New { sent_bytes: false, since: accepted });
        advance(seconds(1)).await;
        activity.sent_bytes();
        activity.agreed(true);
        activity.heard();
        assert_eq!(activity.phase(), Phase::New { sent_bytes: true, since: accepted });
        let (first, began) = (activity.begin(), Instant::now());
        advance(seconds(1)).await;
        let second = activity.begin();
        drop(first);
        assert_eq!(activity.phase(), Phase::Busy(began));
        drop(second);
        assert_eq!(activity.phase(), Phase::Idle(Instant::now()));
    }
}
