//! Watches: a cursor into the history of a table, read whenever the client is ready for more.
//!
//! A watch holds no queue of its own. It cannot lose or repeat an event, and a slow client costs nothing until the
//! history no longer reaches back to it; then it gets 410 and must list again.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep};

use super::KubeApi;
use super::render::{Renderer, error_line};
use super::select::Selection;
use super::status::Failure;
use sim_kit::{Disconnected, Harm};

/// Events taken out of the history at a time.
const BATCH: usize = 256;
/// How often a quiet watch gets a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long before its end it gets a last bookmark, so that the client resumes from there.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Entry {
    table: String,
    waker: Option<Waker>,
    cut: bool,
    /// It ends when everything is told.
    ending: bool,
}

/// The watches under way.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

impl Watchers {
    fn add(&mut self, table: &str) -> u64 {
        self.next += 1;
        self.entries
            .insert(self.next, Entry { table: table.to_owned(), waker: None, cut: false, ending: false });
        self.next
    }

    /// Wakes the watches of a table that has changed.
    pub(crate) fn wake(&mut self, table: &str) {
        for entry in self.entries.values_mut().filter(|entry| entry.table == table) {
            if let Some(waker) = entry.waker.take() {
                waker.wake();
            }
        }
    }

    /// Ends all watches, as a restart of the server does.
    pub(crate) fn cut_all(&mut self) {
        for entry in self.entries.values_mut() {
            entry.cut = true;
            if let Some(waker) = entry.waker.take() {
                waker.wake();
            }
        }
    }

    /// Ends the watches of a table that is no longer served, once they have told everything.
    pub(crate) fn end(&mut self, table: &str) {
        for entry in self.entries.values_mut().filter(|entry| entry.table == table) {
            entry.ending = true;
        }
        self.wake(table);
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }
}

/// Where a watch starts and what it sends.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) renderer: Renderer,
    pub(crate) selection: Selection,
    /// Events after this revision are shown.
    pub(crate) from: u64,
    /// The first lines: the initial state, or an error.
    pub(crate) opening: VecDeque<Bytes>,
    /// Nothing follows the opening.
    pub(crate) closed: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) harm: Option<Harm>,
}

/// The body of an answer to a watch.
pub(crate) struct WatchBody {
    api: KubeApi,
    id: u64,
    renderer: Renderer,
    selection: Selection,
    /// Where it began; a bookmark of that revision would say nothing new.
    start: u64,
    cursor: u64,
    lines: VecDeque<Bytes>,
    shown: u64,
    closed: bool,
    harm: Option<Harm>,
    deadline: Pin<Box<Sleep>>,
    bookmark: Option<Pin<Box<Sleep>>>,
}

impl std::fmt::Debug for WatchBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchBody")
            .field("id", &self.id)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl WatchBody {
    pub(crate) fn new(api: KubeApi, plan: Plan) -> Self {
        let id = api.lock().watchers.add(&plan.renderer.resource.table);
        Self {
            api,
            id,
            renderer: plan.renderer,
            selection: plan.selection,
            start: plan.from,
            cursor: plan.from,
            shown: 0,
            lines: plan.opening,
            closed: plan.closed,
            harm: plan.harm,
            bookmark: plan.bookmarks.then(|| Box::pin(tokio::time::sleep(next_bookmark(plan.timeout)))),
            deadline: Box::pin(tokio::time::sleep(plan.timeout)),
        }
    }

    /// Reads on in the history; registers for more when there is none.
    fn read(&mut self, context: &Context<'_>) {
        let api = self.api.clone();
        let mut state = api.lock();
        let now = state.world.now();
        let revision = state.store.revision();
        if state.watchers.entries.get(&self.id).is_none_or(|entry| entry.cut) {
            self.closed = true;
            return;
        }
        self.renderer.now = now;
        match state.store.events(&self.renderer.resource.table, self.cursor, BATCH) {
            Ok(events) => {
                if events.len() < BATCH {
                    self.cursor = self.cursor.max(revision);
                }
                for event in &events {
                    self.cursor = self.cursor.max(event.revision);
                    if let Some((kind, object)) = self.selection.sees(event) {
                        let first = self.shown == 0 && self.lines.is_empty();
                        self.lines.push_back(self.renderer.event(kind, &object, first));
                    }
                }
            }
            Err(gone) => {
                let message = format!("too old resource version: {} ({})", self.cursor, gone.oldest);
                self.lines.push_back(error_line(&Failure::expired(message)));
                self.closed = true;
            }
        }
        if self.lines.is_empty()
            && let Some(entry) = state.watchers.entries.get_mut(&self.id)
        {
            self.closed |= entry.ending;
            entry.waker = Some(context.waker().clone());
        }
    }

    fn await_cut(&mut self, context: &Context<'_>) {
        let mut state = self.api.lock();
        match state.watchers.entries.get_mut(&self.id) {
            Some(entry) if !entry.cut => entry.waker = Some(context.waker().clone()),
            _ => self.closed = true,
        }
    }

    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        loop {
            match self.harm {
                Some(Harm::DropWatch { after_events }) if self.shown >= after_events => {
                    return Poll::Ready(Some(Err(Disconnected::new("the connection was cut"))));
                }
                Some(Harm::StallWatch { after_events }) if self.shown >= after_events => {
                    self.await_cut(context);
                    return if self.closed { Poll::Ready(None) } else { Poll::Pending };
                }
                _ => {}
            }
            if let Some(line) = self.lines.pop_front() {
                self.shown += 1;
                return Poll::Ready(Some(Ok(Frame::data(line))));
            }
            if self.closed {
                return Poll::Ready(None);
            }
            self.read(context);
            if !self.lines.is_empty() || self.closed {
                continue;
            }
            if self.deadline.as_mut().poll(context).is_ready() {
                self.closed = true;
                continue;
            }
            let due =
                self.bookmark.as_mut().is_some_and(|bookmark| bookmark.as_mut().poll(context).is_ready());
            if due {
                let left = self.deadline.deadline().saturating_duration_since(Instant::now());
                self.bookmark = Some(Box::pin(tokio::time::sleep(next_bookmark(left))));
                if self.cursor > self.start {
                    self.lines.push_back(self.renderer.bookmark(self.cursor, false, self.shown == 0));
                }
                continue;
            }
            return Poll::Pending;
        }
    }
}

/// How long a watch with this much time left waits for its next bookmark.
fn next_bookmark(left: Duration) -> Duration {
    match left.checked_sub(LAST_BOOKMARK) {
        Some(wait) if !wait.is_zero() => wait.min(BOOKMARK_EVERY),
        _ => BOOKMARK_EVERY,
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.api.lock().watchers.entries.remove(&self.id);
    }
}

/// The lines of a watch that starts from a revision which is gone.
pub(crate) fn gone(asked: u64, oldest: u64) -> VecDeque<Bytes> {
    let message = format!("too old resource version: {asked} ({oldest})");
    VecDeque::from([error_line(&Failure::expired(message))])
}

/// The initial state of a watch, one line per object.
pub(crate) fn opening<'a>(
    renderer: &Renderer,
    objects: impl Iterator<Item = &'a Arc<serde_json::Value>>,
) -> VecDeque<Bytes> {
    objects.enumerate().map(|(index, object)| renderer.event("ADDED", object, index == 0)).collect()
}
