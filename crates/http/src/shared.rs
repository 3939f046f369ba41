//! A listing that all Services of a pass share, fetched when the first of them needs it.

use std::sync::Arc;

use cloudberth_core::Result;
use tokio::sync::OnceCell;

/// A value that is fetched at most once, by whoever needs it first. The others wait for that fetch and share its
/// result, an error included.
///
/// Fetching late makes a listing only newer, so what holds for a survey that was begun at some time holds for it.
#[derive(Debug)]
pub struct Shared<T>(OnceCell<Result<Arc<T>>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> Shared<T> {
    /// The value; `fetch` is polled only if nobody fetched before.
    pub async fn get(&self, fetch: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        self.0.get_or_init(|| async { fetch.await.map(Arc::new) }).await.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use cloudberth_core::Error;

    use super::*;

    #[tokio::test]
    async fn one_fetch_serves_all_and_its_error_too() {
        for want in [Ok(7), Err(Error::temporary("503"))] {
            let (shared, fetched) = (Shared::default(), AtomicU32::new(0));
            let get = || {
                shared.get(async {
                    fetched.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    want.clone()
                })
            };
            let (one, two) = futures_util::future::join(get(), get()).await;
            let three = get().await;
            for got in [one, two, three] {
                assert_eq!(got.map(|value| *value), want);
            }
            assert_eq!(fetched.load(Ordering::Relaxed), 1);
        }
    }
}
