//! Waiting for something to come about, with a deadline, and with something to tell when it does not.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::Error;

/// Between the first two looks; what takes long is looked at less and less often, because on a busy machine every look
/// takes from what is waited for.
const FIRST_PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// Between two looks at what is to stay as it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks until `look` finds what it wants. Its error is what it saw instead; the last one ends up in the message
/// when the deadline has passed, also if a look itself hangs.
pub async fn eventually<T>(
    within: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T, Error> {
    let mut last = "nothing yet".to_owned();
    let looking = async {
        let mut pause = FIRST_PAUSE;
        loop {
            match look().await {
                Ok(found) => return found,
                Err(instead) => last = instead,
            }
            sleep(pause).await;
            pause = (pause * 5 / 4).min(LONGEST_PAUSE);
        }
    };
    let found = timeout(within, looking).await;
    found.map_err(|_| Error::Never { what: what.to_owned(), within, last })
}

/// Looks for all of `within` that what holds goes on to hold; the error is what `look` saw when it did not.
pub async fn throughout(
    within: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<(), String>,
) -> Result<(), Error> {
    let looking = async {
        loop {
            if let Err(instead) = look().await {
                return instead;
            }
            sleep(LOOK_EVERY).await;
        }
    };
    match timeout(within, looking).await {
        Err(_) => Ok(()),
        Ok(last) => Err(Error::Never { what: format!("that it stays so: {what}"), within, last }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_what_was_found_or_with_what_was_seen_last() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(5), "three looks", async || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(format!("{looks}")) }
        });
        assert_eq!(found.await.unwrap(), 3);

        let never = eventually::<()>(Duration::from_secs(5), "the moon", async || Err("the sun".to_owned()));
        assert_eq!(never.await.unwrap_err().to_string(), "the moon: not within 5s; last seen: the sun");

        let mut first = true;
        let hangs = eventually::<()>(Duration::from_secs(5), "an answer", async || {
            if !std::mem::take(&mut first) {
                std::future::pending::<()>().await;
            }
            Err("a first look".to_owned())
        });
        assert!(hangs.await.unwrap_err().to_string().ends_with("last seen: a first look"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_ceases_to_hold_is_noticed() {
        let mut left = 5;
        let broken = throughout(Duration::from_secs(5), "light", async || {
            left -= 1;
            if left > 0 { Ok(()) } else { Err("dark".to_owned()) }
        });
        assert!(broken.await.unwrap_err().to_string().ends_with("last seen: dark"));
        throughout(Duration::from_secs(5), "light", async || Ok(())).await.unwrap();
    }
}
