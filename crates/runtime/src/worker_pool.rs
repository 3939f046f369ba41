//! Workers and their queue.
//!
//! A panic on one key is caught here: it is counted, the key backs off, and the other keys go on (law 11).

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Clock,
    decide::queue::{Requeue, Taken, WorkQueue},
    time::Tick,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use crate::{
    bug::message,
    lock,
    metrics::{Meter, QueueMetrics},
};

/// A queue of keys and its workers.
pub struct WorkerPool<K, T = ()> {
    name: &'static str,
    queue: Mutex<WorkQueue<K, T>>,
    clock: Arc<dyn Clock>,
    news: Notify,
    closing: Notify,
    panics: Mutex<u64>,
    meter: Option<Meter>,
}

impl<K: Ord + Clone + Send + fmt::Debug, T: Clone + Send> WorkerPool<K, T> {
    /// A pool without work. `name` is the queue's name in the metrics.
    pub fn new(name: &'static str, queue: WorkQueue<K, T>, clock: Arc<dyn Clock>) -> Self {
        let (news, closing, panics) = (Notify::new(), Notify::new(), Mutex::new(0));
        Self { name, queue: Mutex::new(queue), clock, news, closing, panics, meter: None }
    }

    /// Reports to these metrics.
    #[must_use]
    pub fn metered(mut self, metrics: &QueueMetrics) -> Self {
        self.meter = Some(metrics.queue(self.name, &self.clock));
        self
    }

    /// The name of its queue.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The key needs work.
    pub fn add(&self, key: K) {
        self.with_queue(|queue, now| queue.add(key, now));
        self.news.notify_one();
    }

    /// The key needs work, and its next run does `task`; the newest wins. Returns the task that never runs: one that was
    /// replaced, or `task` itself where there is no room for it.
    pub fn assign(&self, key: K, task: T) -> Option<T> {
        let replaced = self.with_queue(|queue, now| queue.assign(key, task, now));
        self.news.notify_one();
        replaced.unwrap_or_else(Some)
    }

    /// Takes back the task of the key's next run. The run in progress goes on, and is not tried again.
    pub fn withdraw(&self, key: &K) -> Option<T> {
        self.with_queue(|queue, _| queue.withdraw(key))
    }

    /// The key needs work after `wait`.
    pub fn add_after(&self, key: K, wait: Duration) {
        self.with_queue(|queue, now| queue.add_after(key, wait, now));
        self.news.notify_one();
    }

    /// The reason why the key failed may be gone: it is worked on after `wait`, as if it had not failed before. A key that
    /// did not fail is left alone.
    pub fn revive(&self, key: &K, wait: Duration) {
        if self.with_queue(|queue, now| queue.revive(key, wait, now)) {
            self.news.notify_one();
        }
    }

    /// Reads from the queue: its depth, its counters, its failures.
    pub fn look<R>(&self, at: impl FnOnce(&WorkQueue<K, T>) -> R) -> R {
        at(&lock(&self.queue))
    }

    /// How often a worker panicked.
    pub fn panics(&self) -> u64 {
        *lock(&self.panics)
    }

    /// Hands out no more work. [`run`](Self::run) ends when the work in progress is done.
    pub fn close(&self) {
        self.with_queue(|queue, _| queue.close());
        self.meter.iter().for_each(Meter::emptied);
        self.news.notify_one();
        self.closing.notify_one();
    }

    /// Waits for what has to be there before work can begin. False if the pool was closed before.
    pub async fn starts_after(&self, ready: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = self.closing.notified() => false,
            () = ready => true,
        }
    }

    /// Works until it is dropped or closed, on at most `workers` keys at once and never twice on one.
    ///
    /// `bug` is called for a key whose work panicked, before the key backs off. `refill` is called when keys were refused
    /// because the queue was full and there is room again: it adds whatever needs work.
    pub async fn run<W, F>(&self, workers: usize, work: W, bug: impl Fn(&K, &str), refill: impl Fn())
    where
        W: Fn(K, Option<T>) -> F,
        F: Future<Output = Requeue>,
    {
        let mut running = FuturesUnordered::new();
        let work = &work;
        loop {
            let mut wakeup = None;
            while running.len() < workers {
                match self.with_queue(WorkQueue::get) {
                    Taken::Work { key, task, waited } => {
                        if let Some(meter) = &self.meter {
                            meter.began(waited, self.clock.now());
                        }
                        running.push(async move {
                            let turn = AssertUnwindSafe(async { work(key.clone(), task).await });
                            let ended = turn.catch_unwind().await;
                            (key, ended.map_err(|panic| message(panic.as_ref())))
                        });
                    }
                    Taken::Idle(at) => {
                        wakeup = at;
                        break;
                    }
                    Taken::Closed if running.is_empty() => return,
                    Taken::Closed => break,
                }
            }
            // While all workers are busy, a delayed key waits for the next free one anyway.
            let nap = wakeup.map(|at| at.since(self.clock.now()));
            tokio::select! {
                biased;
                Some((key, ended)) = running.next(), if !running.is_empty() => {
                    if let Err(text) = &ended {
                        tracing::error!(queue = self.name, ?key, text, "internal error: a worker panicked");
                        *lock(&self.panics) += 1;
                        self.meter.iter().for_each(Meter::panicked);
                        bug(&key, text);
                    }
                    if self.finish(&key, ended.unwrap_or(Requeue::RateLimited)) {
                        refill();
                    }
                }
                () = self.news.notified() => {}
                () = tokio::time::sleep(nap.unwrap_or_default()), if nap.is_some() => {}
            }
        }
    }

    /// Uses the queue and updates the metrics.
    fn with_queue<R>(&self, with: impl FnOnce(&mut WorkQueue<K, T>, Tick) -> R) -> R {
        let mut queue = lock(&self.queue);
        let done = with(&mut queue, self.clock.now());
        if let Some(meter) = &self.meter {
            meter.counted(queue.counters());
        }
        done
    }

    /// Whether the queue was full and has room again.
    fn finish(&self, key: &K, after: Requeue) -> bool {
        self.with_queue(|queue, now| {
            let took = queue.finish(key, after, now);
            if let Some(meter) = &self.meter {
                meter.ended(took, now);
            }
            queue.take_overflow()
        })
    }
}

impl<K, T> fmt::Debug for WorkerPool<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudberth_core::{decide::queue::ItemExponential, time::Tick};
    use jiff::Timestamp;

    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Tick {
            Tick(self.0.elapsed())
        }

        fn wall(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    fn pool(capacity: usize) -> WorkerPool<u32> {
        let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(8));
        WorkerPool::new(
            "test",
            WorkQueue::new(capacity, limiter),
            Arc::new(Paused(tokio::time::Instant::now())),
        )
    }

    async fn within<F: Future<Output = ()>>(seconds: u64, run: F) {
        assert!(tokio::time::timeout(Duration::from_secs(seconds), run).await.is_err(), "a pool never ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bug_stalls_its_own_key_only() {
        let pool = pool(10);
        (0..4).for_each(|key| pool.add(key));
        let (done, told) = (Mutex::new(vec![]), Mutex::new(vec![]));
        let work = async |key: u32, _| {
            assert_ne!(key, 1, "unlucky");
            lock(&done).push(key);
            Requeue::Forget
        };
        within(4, pool.run(2, work, |key, text| lock(&told).push((*key, text.contains("unlucky"))), || ()))
            .await;
        assert_eq!(*lock(&done), [0, 2, 3], "L11-20");
        assert_eq!(*lock(&told), [(1, true); 3], "L11-21 at 0 s, 1 s and 3 s");
        assert_eq!((pool.panics(), pool.look(|queue| queue.failures(&1))), (3, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_keys_at_once_than_workers_and_none_twice() {
        let pool = pool(100);
        (0..9).for_each(|key| pool.add(key));
        let (now, most) = (Mutex::new(vec![]), Mutex::new(0));
        let work = async |key: u32, _| {
            {
                let mut now = lock(&now);
                assert!(!now.contains(&key), "{key} is worked on twice at once");
                now.push(key);
                let mut most = lock(&most);
                *most = now.len().max(*most);
            }
            pool.add(key);
            tokio::time::sleep(Duration::from_secs(1)).await;
            lock(&now).retain(|other| *other != key);
            Requeue::Forget
        };
        within(10, pool.run(3, work, |_, text| panic!("{text}"), || ())).await;
        assert_eq!(*lock(&most), 3, "L12-21");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_is_closed_ends_what_it_began_and_begins_nothing() {
        let pool = pool(10);
        (0..4).for_each(|key| pool.add(key));
        pool.add_after(9, Duration::from_secs(2));
        let done = Mutex::new(vec![]);
        let work = async |key: u32, _| {
            tokio::time::sleep(Duration::from_secs(3)).await;
            lock(&done).push(key);
            Requeue::RateLimited
        };
        let close = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            pool.close();
        };
        tokio::join!(pool.run(2, work, |_, _| (), || ()), close);
        assert_eq!(*lock(&done), [0, 1], "L6-40");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_for_want_of_room_is_asked_for_again() {
        let pool = pool(2);
        (0..5).for_each(|key| pool.add(key));
        let done = Mutex::new(std::collections::BTreeSet::new());
        let work = async |key, _| {
            lock(&done).insert(key);
            Requeue::Forget
        };
        let refill = || (0..5).filter(|key| !lock(&done).contains(key)).for_each(|key| pool.add(key));
        within(1, pool.run(1, work, |_, _| (), refill)).await;
        assert_eq!(lock(&done).len(), 5, "L12-22");
    }
}
