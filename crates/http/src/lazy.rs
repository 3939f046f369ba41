//! A listing that all Services of a pass share, fetched when the first of them needs it.

use std::sync::Arc;

use cloudberth_core::Result;
use tokio::sync::OnceCell;

/// A listing, or what was made of one, that is fetched at most once, by whoever needs it first. The others wait for that
/// fetch and share its result, an error included. It belongs to one survey and ends with it, so the next one asks again.
///
/// Fetching late makes a listing only newer, so what holds for a survey that was begun at some time holds for it.
#[derive(Debug)]
pub struct LazyListing<T>(OnceCell<Result<Arc<T>>>);

impl<T> Default for LazyListing<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> LazyListing<T> {
    /// The listing; `fetch` is polled only if nobody fetched before. Somebody who gives up while fetching leaves it to
    /// the next in line.
    pub async fn get(&self, fetch: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        self.0.get_or_init(|| async { fetch.await.map(Arc::new) }).await.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use cloudberth_core::Error;
    use futures_util::future::join_all;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// A listing that takes a second, and how often it was fetched.
    #[derive(Default)]
    struct Counted {
        lazy: LazyListing<u32>,
        fetched: AtomicU32,
    }

    impl Counted {
        async fn get(&self, answer: Result<u32>) -> Result<u32> {
            let fetch = async {
                self.fetched.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                answer
            };
            self.lazy.get(fetch).await.map(|value| *value)
        }

        fn fetched(&self) -> u32 {
            self.fetched.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_fetch_serves_all_and_its_error_too() {
        for want in [Ok(7), Err(Error::temporary("503"))] {
            let counted = Counted::default();
            assert_eq!(counted.fetched(), 0, "nobody needs it yet");
            let at_once = join_all((0..9).map(|_| counted.get(want.clone()))).await;
            let later = counted.get(Ok(8)).await;
            for got in at_once.into_iter().chain([later]) {
                assert_eq!(got, want);
            }
            assert_eq!(counted.fetched(), 1, "L7-1503");
        }
        assert_eq!(Counted::default().get(Ok(7)).await, Ok(7), "an error ends with its survey");
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_was_given_up_is_taken_over() {
        let counted = Counted::default();
        let impatient = timeout(Duration::from_millis(500), counted.get(Ok(1)));
        let (gave_up, got) = tokio::join!(impatient, counted.get(Ok(2)));
        assert!(gave_up.is_err());
        assert_eq!((got, counted.fetched()), (Ok(2), 2));
    }
}
