//! The settings of an election.

use std::time::Duration;

use crate::{call::CLAIM_RESERVE, error::Error};

/// The jitter of the retry period: 2 s become something in [2 s, 4.4 s).
pub const JITTER: f64 = 1.2;

/// The settings of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Our identity; no two replicas share it, and it changes with every restart.
    pub identity: String,
    /// How long others leave an unchanged record alone. Only whole seconds reach the record.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it stops leading.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
}

impl Config {
    /// The defaults of all Kubernetes components, with this identity.
    pub fn with_defaults(identity: &str) -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Every mistake, each naming the flag and what it must be; empty if there is none.
    pub fn mistakes(&self) -> Vec<Error> {
        let Self { lease_duration: lease, renew_deadline: renew, retry_period: retry, .. } = self;
        let checks = [
            (self.identity.is_empty(), "the identity of the leader election is empty".to_owned()),
            (
                self.claim() <= self.least_claim(),
                format!(
                    "--leader-elect-lease-duration is {lease:?}; with a --leader-elect-retry-period of {retry:?} it \
                     must be at least {}s, because nothing is written in the last {CLAIM_RESERVE:?} of it",
                    self.shortest_lease()
                ),
            ),
            (renew.is_zero(), "--leader-elect-renew-deadline is 0s; it must be more".to_owned()),
            (retry.is_zero(), "--leader-elect-retry-period is 0s; it must be more".to_owned()),
            (
                lease <= renew,
                format!(
                    "--leader-elect-lease-duration is {lease:?}; it must be more than --leader-elect-renew-deadline, \
                     which is {renew:?}"
                ),
            ),
            (
                renew.as_secs_f64() <= retry.as_secs_f64() * JITTER,
                format!(
                    "--leader-elect-renew-deadline is {renew:?}; it must be more than {JITTER} times \
                     --leader-elect-retry-period, which is {retry:?}"
                ),
            ),
        ];
        checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| Error::user_input(text)).collect()
    }

    /// The lease duration as the record carries it: whole seconds, and so the longest that a claim may last.
    pub fn whole_seconds(&self) -> u32 {
        self.lease_duration.as_secs().try_into().unwrap_or(u32::MAX)
    }

    /// How long a claim lasts: the whole seconds of the record, less a thousandth. Clocks do not run at quite the same
    /// speed, and another's may run faster than ours; one that is kept right by its time service differs by less.
    pub fn claim(&self) -> Duration {
        let whole = Duration::from_secs(self.whole_seconds().into());
        whole.saturating_sub(whole / 1_000)
    }

    /// A claim that is not longer than this never allows a write: it is renewed after a retry period, and by then no more
    /// than the reserve would be left.
    fn least_claim(&self) -> Duration {
        CLAIM_RESERVE.saturating_add(self.retry_period)
    }

    /// The shortest lease, in seconds, whose claim is long enough.
    fn shortest_lease(&self) -> u128 {
        // A claim is 999 ms for each second of the lease.
        self.least_claim().as_nanos() / 999_000_000 + 1
    }

    /// How long one request may take.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// The wait of a candidate between two tries; `fraction` is a number drawn from `[0, 1)`.
    pub fn pause(&self, fraction: f64) -> Duration {
        let extra = self.retry_period.as_secs_f64() * JITTER * fraction.clamp(0.0, 1.0);
        self.retry_period.saturating_add(Duration::try_from_secs_f64(extra).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lease: u64, renew: u64, retry: u64) -> Config {
        let [lease_duration, renew_deadline, retry_period] = [lease, renew, retry].map(Duration::from_millis);
        Config { lease_duration, renew_deadline, retry_period, ..Config::with_defaults("me") }
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let lease_over_renew = |lease, renew| {
            format!(
                "--leader-elect-lease-duration is {lease}; it must be more than --leader-elect-renew-deadline, which \
                 is {renew}"
            )
        };
        let renew_over_retry = |renew, retry| {
            format!(
                "--leader-elect-renew-deadline is {renew}; it must be more than 1.2 times \
                 --leader-elect-retry-period, which is {retry}"
            )
        };
        let no_renew = || "--leader-elect-renew-deadline is 0s; it must be more".to_owned();
        let no_retry = || "--leader-elect-retry-period is 0s; it must be more".to_owned();
        let short = |lease, retry, least| {
            format!(
                "--leader-elect-lease-duration is {lease}; with a --leader-elect-retry-period of {retry} it must be \
                 at least {least}s, because nothing is written in the last 3s of it"
            )
        };
        let nobody = Config { identity: String::new(), ..Config::with_defaults("") };
        let table = [
            ("the defaults", Config::with_defaults("me"), vec![]),
            ("just enough", config(6_000, 2_400, 1_999), vec![]),
            ("the shortest lease", config(4_000, 999, 100), vec![]),
            ("L9-515 it would never write", config(3_000, 2_500, 2_000), vec![short("3s", "2s", 6)]),
            (
                "L9-515 it would write only right after a renewal",
                config(5_000, 4_000, 2_000),
                vec![short("5s", "2s", 6)],
            ),
            ("L9-515 what is said to be enough is enough", config(6_000, 4_000, 2_000), vec![]),
            (
                "L9-515 parts of a second do not reach the record",
                config(5_999, 4_000, 2_000),
                vec![short("5.999s", "2s", 6)],
            ),
            (
                "L9-515 a long retry period",
                config(1_000_000, 999_999, 996_000),
                vec![short("1000s", "996s", 1_001), renew_over_retry("999.999s", "996s")],
            ),
            ("FW-354 nobody", nobody, vec!["the identity of the leader election is empty".to_owned()]),
            ("lease not above renew", config(10_000, 10_000, 2_000), vec![lease_over_renew("10s", "10s")]),
            ("renew not above retry", config(15_000, 2_400, 2_000), vec![renew_over_retry("2.4s", "2s")]),
            ("no retry period", config(15_000, 10_000, 0), vec![no_retry()]),
            ("no whole second", config(999, 500, 100), vec![short("999ms", "100ms", 4)]),
            (
                "nothing at all",
                config(0, 0, 0),
                vec![
                    short("0ns", "0ns", 4),
                    no_renew(),
                    no_retry(),
                    lease_over_renew("0ns", "0ns"),
                    renew_over_retry("0ns", "0ns"),
                ],
            ),
        ];
        for (case, config, want) in table {
            let got: Vec<_> = config.mistakes().iter().map(ToString::to_string).collect();
            assert_eq!(got, want, "{case}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_every_component() {
        let config = Config::with_defaults("me");
        assert_eq!(
            (config.namespace.as_str(), config.name.as_str()),
            ("kube-system", "cloud-controller-manager")
        );
        assert_eq!(config.whole_seconds(), 15);
        assert_eq!(config.request_timeout(), Duration::from_secs(5));
        assert_eq!(
            self::config(2_900, 1_500, 100).whole_seconds(),
            2,
            "what does not reach the record is not claimed"
        );
        assert_eq!(self::config(2_900, 1_500, 100).request_timeout(), Duration::from_secs(1));
    }

    #[test]
    fn the_pause_lies_between_one_and_two_point_two_periods() {
        let config = Config::with_defaults("me");
        for (fraction, millis) in [(0.0, 2_000), (0.5, 3_200), (1.0, 4_400), (-7.0, 2_000), (99.0, 4_400)] {
            assert_eq!(config.pause(fraction).as_millis(), millis, "{fraction}");
        }
        assert_eq!(config.pause(f64::NAN).as_millis(), 2_000);
    }
}
