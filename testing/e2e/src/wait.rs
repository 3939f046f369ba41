//! Waiting for a condition, with a deadline and a useful message when it is not met.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::Error;

/// The time between the first two looks. It grows, because on a busy machine every look slows down what is waited for.
const FIRST_PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// The time between two looks at a condition that has to hold.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Calls `look` until it succeeds. Its error says what it saw instead; the last one is in the message when the deadline
/// has passed, also if a look itself hangs.
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

/// Checks for all of `within` that `look` succeeds; the error is the first one of `look`.
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
    async fn it_returns_what_was_found_or_reports_what_was_seen_last() {
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
    async fn a_condition_that_stops_holding_is_noticed() {
        let mut left = 5;
        let broken = throughout(Duration::from_secs(5), "light", async || {
            left -= 1;
            if left > 0 { Ok(()) } else { Err("dark".to_owned()) }
        });
        assert!(broken.await.unwrap_err().to_string().ends_with("last seen: dark"));
        throughout(Duration::from_secs(5), "light", async || Ok(())).await.unwrap();
    }
}
