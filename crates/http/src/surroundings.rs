//! The one place that asks the system for time, chance, settings and the addresses of names.
//!
//! Everything else has them handed in, so that a test with paused time and a seed repeats exactly.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Call, Clock, Error, Lookup, Random, Result, Tick, provider::Boxed};
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use rustls::RootCertStore;

use crate::resolver::{Resolver, in_order};

/// The system's time: monotonic time from the runtime, so that a paused runtime pauses it too, and the time of day.
///
/// The runtime's time stops while the host is suspended, and a leader that wakes up would go on writing under an expired
/// claim. So the time that the host slept is added.
#[derive(Clone, Debug)]
pub struct SystemClock {
    started: tokio::time::Instant,
    sleeps: Arc<Mutex<Sleeps>>,
    /// The time of day at the start, for a clock with a fixed one; otherwise the system is asked each time.
    wall: Option<Timestamp>,
}

impl SystemClock {
    /// A clock that starts now and asks the system for the time of day each time: a host's clock is often set right after
    /// boot.
    pub fn new() -> Self {
        let (with_sleep, without) = time_since_boot();
        let sleeps = Arc::new(Mutex::new(Sleeps::new(with_sleep, without)));
        Self { started: tokio::time::Instant::now(), sleeps, wall: None }
    }

    /// A clock that starts now with `wall` as the time of day: a test's fixed date, or a skewed replica.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { wall: Some(wall), ..Self::new() }
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the time of day comes in")]
    fn time_of_day() -> Timestamp {
        Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Tick {
        let (with_sleep, without) = time_since_boot();
        let slept = self.sleeps.lock().unwrap_or_else(PoisonError::into_inner).total(with_sleep, without);
        Tick(self.started.elapsed() + slept)
    }

    fn wall(&self) -> Timestamp {
        let Some(then) = self.wall else { return Self::time_of_day() };
        SignedDuration::try_from(self.now().0)
            .ok()
            .and_then(|elapsed| then.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

/// The host's uptime, with the time that it slept and without. In this order, because a pause between the two readings
/// then makes the difference smaller, never larger.
fn time_since_boot() -> (Duration, Duration) {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    (read(ClockId::Boottime), read(ClockId::Monotonic))
}

/// The two readings are not taken at the same moment, so a smaller difference does not count as sleep. One that matters
/// to a claim is larger.
const LEAST_SLEEP: Duration = Duration::from_millis(100);

/// How long the host has slept since this was made.
#[derive(Debug)]
struct Sleeps {
    before: Duration,
    total: Duration,
}

impl Sleeps {
    fn new(with_sleep: Duration, without: Duration) -> Self {
        Self { before: with_sleep.saturating_sub(without), total: Duration::ZERO }
    }

    /// Never less than the last time, so that time does not go back.
    fn total(&mut self, with_sleep: Duration, without: Duration) -> Duration {
        let all = with_sleep.saturating_sub(without).saturating_sub(self.before);
        if all.saturating_sub(self.total) >= LEAST_SLEEP {
            self.total = all;
        }
        self.total
    }
}

/// Randomness that nobody can predict.
pub fn random_from_os() -> Random {
    // The standard library seeds its hash state from the system's randomness.
    Random::seeded(RandomState::new().build_hasher().finish())
}

/// The system's resolver: its hosts file, its name servers.
///
/// It does not tell a name that does not exist from a name server that is away, so neither is `Absent` (law 1); the text
/// of the `Unknown` has the system's reason.
#[derive(Clone)]
pub struct SystemResolver(Arc<dyn Clock>);

impl SystemResolver {
    /// A resolver that keeps deadlines by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }

    async fn ask(&self, call: &Call, name: &str) -> Result<Vec<IpAddr>> {
        let now = self.0.now();
        let left = call.read_until(now)?.since(now);
        let found = tokio::time::timeout(left, tokio::net::lookup_host((name, 0)))
            .await
            .map_err(|_| Error::temporary("no answer in time"))?
            .map_err(|why| Error::temporary(why.to_string()))?;
        let addresses = in_order(found.map(|address| address.ip()).collect());
        if addresses.is_empty() { Err(Error::temporary("the answer has no address")) } else { Ok(addresses) }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>> {
        Box::pin(async move {
            match self.ask(call, name).await {
                Ok(addresses) => Lookup::Present(addresses),
                Err(why) => Lookup::Unknown(why.context(format!("the addresses of {name} are not known"))),
            }
        })
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemResolver")
    }
}

/// The environment variables that are text.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

/// The certificate authorities that the system trusts, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
pub fn system_roots() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map(|e| format!(": {e}")).unwrap_or_default();
    Err(Error::permanent(format!(
        "no certificate authority is trusted here, so no cloud can be reached over https; install the system's CA \
         certificates or set SSL_CERT_FILE{why}"
    )))
}

#[cfg(test)]
mod tests {
    use cloudberth_core::{Category, call::ReadOnly};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_times_move_with_the_runtime() {
        let noon: Timestamp = "2031-05-06T12:00:00Z".parse().unwrap();
        let clock = SystemClock::starting_at(noon);
        assert_eq!((clock.now(), clock.wall()), (Tick::ZERO, noon));
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), Tick::from_secs(90));
        assert_eq!(clock.wall(), "2031-05-06T12:01:30Z".parse().unwrap());
    }

    #[test]
    fn the_time_that_the_machine_slept_counts() {
        let ms = Duration::from_millis;
        let mut sleeps = Sleeps::new(ms(1_100_000), ms(1_000_000));
        let table = [
            ("L9-522 awake", 1_105_000, 1_005_000, 0),
            ("L9-522 it slept for a minute", 1_170_000, 1_010_000, 60_000),
            ("L9-522 awake again", 1_175_000, 1_015_000, 60_000),
            ("L9-523 a pause between the two readings", 1_176_000, 1_018_000, 60_000),
            ("L9-523 what two readings differ by is no sleep", 1_180_099, 1_020_000, 60_000),
            ("L9-522 it slept once more", 1_190_000, 1_020_000, 70_000),
        ];
        for (case, with_sleep, without, want) in table {
            assert_eq!(sleeps.total(ms(with_sleep), ms(without)), ms(want), "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_is_awake_adds_nothing() {
        let clock = SystemClock::new();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), Tick::from_secs(5), "L9-524");
    }

    #[tokio::test]
    async fn the_real_clock_shows_this_century() {
        assert!(SystemClock::new().wall() > "2024-01-01T00:00:00Z".parse().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_day_is_that_of_the_machine_whatever_passed_for_the_program() {
        let clock = SystemClock::new();
        let before = clock.wall();
        tokio::time::advance(Duration::from_secs(7_200)).await;
        assert_eq!(clock.now(), Tick::from_secs(7_200));
        let passed = clock.wall().duration_since(before);
        assert!(passed < SignedDuration::from_secs(3_600), "{passed:?}");
    }

    #[test]
    fn two_throws_from_the_system_differ() {
        assert_ne!(random_from_os().bits(), random_from_os().bits());
    }

    #[test]
    fn the_environment_is_a_plain_map() {
        assert!(environment().contains_key("PATH"));
    }

    #[tokio::test]
    async fn the_system_is_asked_for_addresses_until_the_deadline() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let resolver = SystemResolver::new(Arc::clone(&clock));
        let call = |limit| Call::new(clock.now() + limit, Arc::new(ReadOnly));
        let minute = Duration::from_secs(60);
        let found = resolver.resolve(&call(minute), "localhost").await.known().unwrap().unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        let literal = resolver.resolve(&call(minute), "2001:db8::1").await;
        assert_eq!(literal, Lookup::Present(vec!["2001:db8::1".parse().unwrap()]));
        // The system refuses a name with a zero byte by itself, so no name server is asked.
        for (limit, name) in [(Duration::ZERO, "localhost"), (minute, "no\0name")] {
            let why = resolver.resolve(&call(limit), name).await.known().unwrap_err();
            assert_eq!(why.category(), Category::Temporary, "L1-1523 {why}");
            assert!(why.message().starts_with(&format!("the addresses of {name} are not known: ")), "{why}");
        }
    }
}
