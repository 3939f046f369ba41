//! A candidate for a Lease that uses client-go's leader election.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use sim_kit::Surroundings;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::Error;

/// Which Lease is contended for, and with which timing.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// The lease duration: others wait this long before they take over.
    pub lease_duration: Duration,
    /// The renew deadline: a leader that cannot renew gives up after this long.
    pub renew_deadline: Duration,
    /// The time between two attempts.
    pub retry_period: Duration,
}

/// An event that a candidate reported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// `started`, `stopped`, `released`, `leader` (somebody else leads), `killed`, or `frozen`.
    pub event: String,
    /// Who leads, or led.
    pub leader: String,
    /// The number of transitions in the Lease at that time.
    pub transitions: u64,
    /// When.
    pub at: Timestamp,
}

/// The candidate. It is killed when this is dropped, and ends by itself when our process does.
#[derive(Debug)]
pub struct Elector {
    identity: String,
    child: Child,
    orders: Option<ChildStdin>,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    log: PathBuf,
    history: Vec<Event>,
}

impl Elector {
    /// Starts `program` (see `kube_assets::elector`), which is a candidate at once. Its log goes beside the kubeconfig.
    pub fn start(
        program: &Path,
        kubeconfig: &Path,
        contest: &Contest,
        identity: &str,
    ) -> Result<Self, Error> {
        let log = kubeconfig.with_file_name(format!("elector-{identity}.log"));
        let stderr = File::options().create(true).append(true).open(&log);
        let stderr = stderr.map_err(Error::io("cannot write", &log))?;
        let millis = |duration: Duration| format!("{}ms", duration.as_millis());
        let mut child = Command::new(program)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--namespace={}", contest.namespace))
            .arg(format!("--name={}", contest.name))
            .arg(format!("--identity={identity}"))
            .arg(format!("--lease-duration={}", millis(contest.lease_duration)))
            .arg(format!("--renew-deadline={}", millis(contest.renew_deadline)))
            .arg(format!("--retry-period={}", millis(contest.retry_period)))
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io("cannot start", program))?;
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        let orders = child.stdin.take();
        Ok(Self { identity: identity.to_owned(), child, orders, lines, log, history: Vec::new() })
    }

    /// Who it is.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The events that were read so far.
    pub fn history(&self) -> &[Event] {
        &self.history
    }

    /// Reads events until one is `event`.
    pub async fn says(&mut self, event: &str, within: Duration) -> Result<Event, Error> {
        let reading = async {
            loop {
                let next = self.next().await?;
                if next.event == event {
                    return Ok(next);
                }
            }
        };
        let told = timeout(within, reading).await;
        told.unwrap_or_else(|_| {
            Err(Error::Never {
                what: format!("candidate {} says {event}", self.identity),
                within,
                last: format!("{:?}\n{}", self.history, self.log()),
            })
        })
    }

    async fn next(&mut self) -> Result<Event, Error> {
        let what = format!("candidate {}", self.identity);
        let line = match &mut self.lines {
            Some(lines) => lines.next_line().await.map_err(|error| Error::transport(&what, &error))?,
            None => None,
        };
        let line = line.ok_or_else(|| Error::Ended { program: what, log: self.log() })?;
        let event: Event = serde_json::from_str(&line)?;
        self.history.push(event.clone());
        Ok(event)
    }

    /// Releases the Lease, if it holds it, and is no candidate any more.
    pub async fn release(&mut self) -> Result<(), Error> {
        self.order("release").await
    }

    /// Becomes a candidate again.
    pub async fn stand(&mut self) -> Result<(), Error> {
        self.order("stand").await
    }

    async fn order(&mut self, order: &str) -> Result<(), Error> {
        let what = format!("order {order} to candidate {}", self.identity);
        let Some(orders) = &mut self.orders else {
            return Err(Error::Ended { program: what, log: self.log() });
        };
        orders
            .write_all(format!("{order}\n").as_bytes())
            .await
            .map_err(|error| Error::transport(&what, &error))
    }

    /// Releases the Lease, if it holds it, and ends; its last events are in the history.
    pub async fn quit(&mut self, within: Duration) -> Result<(), Error> {
        self.order("quit").await?;
        let reading = async { while self.next().await.is_ok() {} };
        let ended = timeout(within, reading).await;
        ended.map_err(|_| Error::Deadline { what: format!("the end of candidate {}", self.identity) })
    }

    /// Kills it. It leads no longer, though the Lease still names it.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(Error::io("cannot kill", &self.log))?;
        while self.next().await.is_ok() {}
        let last = self.history.iter().rev().find(|event| event.leader == self.identity);
        let transitions = last.map_or(0, |event| event.transitions);
        let at = Surroundings::of_this_machine().now();
        self.history.push(Event { event: "killed".into(), leader: self.identity.clone(), transitions, at });
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// The first moment at which two candidates led at once, if there was one: who began while who had not ended.
/// A candidate that still leads has not ended.
pub fn two_at_once(histories: &[&[Event]]) -> Option<(Event, Event)> {
    let mut reigns: Vec<(&Event, Option<&Event>)> =
        histories.iter().flat_map(|history| reigns(history)).collect();
    reigns.sort_by_key(|(begin, _)| begin.at);
    reigns.windows(2).find_map(|pair| match pair {
        [(first, end), (second, _)] if end.is_none_or(|end| end.at > second.at) => {
            Some(((*first).clone(), (*second).clone()))
        }
        _ => None,
    })
}

fn reigns(history: &[Event]) -> Vec<(&Event, Option<&Event>)> {
    let begins = history.iter().enumerate().filter(|(_, event)| event.event == "started");
    begins
        .map(|(at, begin)| {
            let rest = history.get(at + 1..).unwrap_or_default();
            (begin, rest.iter().find(|event| matches!(event.event.as_str(), "stopped" | "killed" | "frozen")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(who: &str, events: &[(&str, i64)]) -> Vec<Event> {
        let event = |(event, second): &(&str, i64)| Event {
            event: (*event).to_owned(),
            leader: who.to_owned(),
            transitions: 0,
            at: Timestamp::from_second(*second).unwrap(),
        };
        events.iter().map(event).collect()
    }

    #[test]
    fn two_leaders_at_once_are_found() {
        let one =
            history("one", &[("started", 1), ("leader", 2), ("stopped", 3), ("started", 7), ("killed", 8)]);
        let table = [
            (history("two", &[("started", 3), ("stopped", 7)]), None),
            (history("two", &[("leader", 0), ("started", 9)]), None),
            (history("two", &[("started", 2), ("stopped", 4)]), Some(("one", "two"))),
            (history("two", &[("started", 4), ("stopped", 8)]), Some(("two", "one"))),
            (history("two", &[("started", 4)]), Some(("two", "one"))),
        ];
        for (two, want) in table {
            let found = two_at_once(&[&one, &two]).map(|(first, second)| (first.leader, second.leader));
            assert_eq!(found, want.map(|(a, b)| (a.to_owned(), b.to_owned())), "{two:?}");
        }
    }
}
