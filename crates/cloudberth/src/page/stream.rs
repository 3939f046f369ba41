//! `GET /events`: how the world is and what happens in it, for as long as somebody reads.
//!
//! Nothing is queued for a reader. Whenever it can take more, it gets the difference between the newest snapshot and the
//! one that it has, and what the world remembers since. A slow reader gets fewer and larger pieces.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, stream::unfold};
use http_body::Frame;
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{sleep, timeout},
};

use super::{
    frames,
    port::{Limits, Pulse},
};
use crate::world::{Snapshot, Watched};

/// Somebody who reads.
pub(super) struct Reader {
    world: Arc<dyn Watched>,
    changes: watch::Receiver<u64>,
    shown: Option<Snapshot>,
    after: u64,
    limits: Limits,
    pulse: Arc<Pulse>,
    /// Its place among the readers, free again when it goes.
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// One who has seen the happenings up to `after`.
    pub(super) fn new(
        world: Arc<dyn Watched>,
        after: u64,
        limits: Limits,
        pulse: Arc<Pulse>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        // Before the first snapshot, so that no change is missed.
        let changes = world.changes();
        Self { world, changes, shown: None, after, limits, pulse, _place: place }
    }

    /// The pieces, until the world ends.
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send {
        unfold(self, |mut reader| async move {
            let piece = reader.next().await?;
            Some((Ok(Frame::data(Bytes::from(piece))), reader))
        })
    }

    async fn next(&mut self) -> Option<String> {
        self.pulse.beat();
        if self.shown.is_none() {
            return Some(frames::RETRY.to_owned() + &self.news());
        }
        // Many changes become one piece: nobody sees more than a few a second.
        sleep(self.limits.pace).await;
        loop {
            self.pulse.beat();
            let news = self.news();
            if !news.is_empty() {
                return Some(news);
            }
            match timeout(self.limits.heartbeat, self.changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(frames::HEARTBEAT.to_owned()),
            }
        }
    }

    fn news(&mut self) -> String {
        self.changes.mark_unchanged();
        let now = self.world.snapshot();
        // A number from the future is of a world that has ended.
        let after = if self.after > now.seq { 0 } else { self.after };
        let entries = self.world.happenings(after);
        let mut news = frames::world(self.shown.as_ref(), &now).unwrap_or_default();
        news.extend(frames::happened(after, &entries));
        self.after = entries.last().map_or(after, |last| last.seq);
        self.shown = Some(now);
        news
    }
}
