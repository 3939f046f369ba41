//! Whether a connection is doing anything.
//!
//! A client that sends nothing, or half a request, must not hold a connection for ever. The timer of hyper knows no
//! difference between the two, and idle connections may wait longer than the header of a request.

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
    /// From the first byte of a request to the end of its header; none where requests are interleaved.
    pub(crate) header: Option<Duration>,
    /// From one request to the next.
    pub(crate) idle: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    in_flight: usize,
    idle_since: Instant,
    header_since: Option<Instant>,
}

impl Beat {
    fn deadline(&self, patience: Patience) -> Option<Instant> {
        match (self.in_flight, self.header_since, patience.header) {
            (1.., ..) => None,
            (0, Some(since), Some(header)) => Some(since + header),
            (0, ..) => Some(self.idle_since + patience.idle),
        }
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
    pub(crate) fn new(patience: Patience) -> Arc<Self> {
        let beat = Beat { in_flight: 0, idle_since: Instant::now(), header_since: None };
        Arc::new(Self { beat: Mutex::new(beat), patience, changed: Notify::new() })
    }

    /// When patience ends, as things are; `None` while a request is being answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline(self.patience)
    }

    /// A request has arrived in full; it is being answered until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut beat = self.lock();
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
        beat.idle_since = Instant::now();
        drop(beat);
        self.0.changed.notify_one();
    }
}

/// A stream whose reads are noticed.
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_depends_on_what_is_going_on() {
        let seconds = Duration::from_secs;
        for header in [Some(seconds(32)), None] {
            let pulse = Pulse::new(Patience { header, idle: seconds(90) });
            let left = || pulse.deadline().map(|at| at - Instant::now());
            assert_eq!(left(), Some(seconds(90)), "nothing yet");
            advance(seconds(50)).await;
            pulse.heard();
            assert_eq!(left(), Some(header.unwrap_or(seconds(40))), "a request begins");
            advance(seconds(10)).await;
            pulse.heard();
            assert_eq!(
                left(),
                Some(header.map_or(seconds(30), |h| h.saturating_sub(seconds(10)))),
                "more of it"
            );
            let (first, second) = (pulse.begin(), pulse.begin());
            assert_eq!(left(), None, "it is being answered");
            pulse.heard();
            advance(seconds(1000)).await;
            drop(first);
            assert_eq!(left(), None, "the other one still is");
            drop(second);
            assert_eq!(left(), Some(seconds(90)), "idle again");
        }
    }
}
