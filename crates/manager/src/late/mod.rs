//! Clouds that do not answer when the program starts.
//!
//! ```text
//!   start ──► ready ──► the provider itself
//!     │  └──► fatal ──► the program ends with the reason
//!     └─────► later ──► a LateProvider: everything is unknown (law 1), until a later start says ready
//! ```

mod stand_in;

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Error, Provider, Random, Result,
    call::ReadOnly,
    error::Retry,
    provider::{Boxed, Start},
    rate::Backoff,
};
use futures_util::{FutureExt, future::join_all};

/// How long one start may take. The pages of the program are not served before the first.
const PATIENCE: Duration = Duration::from_secs(5);

/// The waits between two starts of a cloud that does not answer.
const WAITS: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// By how much they are stretched at most.
const JITTER: f64 = 0.5;

/// The clouds after their first start.
#[derive(Default)]
pub struct Begun {
    /// Those that are ready, and stand-ins for those that are late, in the order in which they were given.
    pub clouds: Vec<Arc<dyn Provider>>,
    /// Those that did not answer.
    pub late: Vec<Arc<LateProvider>>,
    /// Why clouds refused for good. With any of these the program must not go on.
    pub refused: Vec<Error>,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun")
            .field("clouds", &self.clouds.len())
            .field("late", &self.late)
            .field("refused", &self.refused)
            .finish()
    }
}

/// Starts all clouds once, at the same time.
pub async fn begin(clouds: Vec<Arc<dyn Provider>>, clock: &Arc<dyn Clock>) -> Begun {
    let starts = join_all(clouds.iter().map(|cloud| start(&**cloud, clock))).await;
    let mut begun = Begun::default();
    for (cloud, start) in clouds.into_iter().zip(starts) {
        match start {
            Start::Ready => begun.clouds.push(cloud),
            Start::Later(why) => {
                let late = Arc::new(LateProvider { inner: cloud, why: Mutex::new(Some(why)) });
                late.complain();
                begun.clouds.push(Arc::clone(&late) as _);
                begun.late.push(late);
            }
            Start::Fatal(why) => begun.refused.push(why.context(cloud.name())),
        }
    }
    begun
}

async fn start(cloud: &dyn Provider, clock: &Arc<dyn Clock>) -> Start {
    let call = Call::new(clock.now() + PATIENCE, Arc::new(ReadOnly));
    let start = AssertUnwindSafe(cloud.start(&call)).catch_unwind();
    match tokio::time::timeout(PATIENCE, start).await {
        Ok(Ok(start)) => start,
        // Other clouds must not suffer from a bug in one (law 11).
        Ok(Err(_)) => Start::Later(Error::temporary("internal error: the start panicked")),
        Err(_) => Start::Later(Error::temporary(format!("no answer in {PATIENCE:?}"))),
    }
}

/// A cloud that does not answer yet. What is pure is the provider's own; whatever the cloud is asked is unknown.
pub struct LateProvider {
    inner: Arc<dyn Provider>,
    /// Why it is not ready; `None` once it is.
    why: Mutex<Option<Error>>,
}

impl LateProvider {
    /// Starts it again and again, until it is ready. An error is that it refused for good.
    pub async fn until_ready(&self, clock: &Arc<dyn Clock>, random: &Random) -> Result<()> {
        let mut failures = 0;
        loop {
            failures += 1;
            let asked = match self.why().map(|why| why.category().retry()) {
                Some(Retry::After(wait)) => wait,
                _ => Duration::ZERO,
            };
            tokio::time::sleep(random.jitter(WAITS.after(failures), JITTER).max(asked)).await;
            match start(&*self.inner, clock).await {
                Start::Ready => {
                    self.set(None);
                    tracing::info!(cloud = self.name(), "cloud ready");
                    return Ok(());
                }
                Start::Later(why) => {
                    self.set(Some(why));
                    self.complain();
                }
                Start::Fatal(why) => return Err(why.context(self.name())),
            }
        }
    }

    fn complain(&self) {
        if let Some(why) = self.why() {
            tracing::warn!(cloud = self.name(), %why, "cloud not ready; nothing is done about it until it is");
        }
    }

    fn set(&self, why: Option<Error>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    fn why(&self) -> Option<Error> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_late(&self) -> bool {
        self.why().is_some()
    }

    /// What every question to the cloud brings.
    fn unknown(&self) -> Error {
        let why = self.why().map_or_else(|| "it has just answered".to_owned(), |why| why.to_string());
        Error::temporary(format!("{} is not ready yet: {why}", self.name()))
    }

    fn later<'a, T: Send + 'a>(&self, answer: impl FnOnce(Error) -> T) -> Boxed<'a, T> {
        Box::pin(std::future::ready(answer(self.unknown())))
    }
}

impl fmt::Debug for LateProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateProvider")
            .field("name", &self.name())
            .field("why", &self.why())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use cloudberth_controllers::inventory::{Inventory, SurveyFleet};
    use cloudberth_core::{
        Category, Instances, LoadBalancers, ProviderId, Routes, Tick, call::Unguarded, lb::Fleet,
    };
    use cloudberth_fake::{Cloud, FakeProvider, SimSettings};
    use cloudberth_http::surroundings::SystemClock;

    use super::*;

    /// A cloud whose starts are a script; after its end no start ever ends.
    struct Scripted {
        fake: FakeProvider,
        starts: Mutex<VecDeque<Start>>,
    }

    impl Provider for Scripted {
        fn name(&self) -> &str {
            self.fake.name()
        }

        fn scheme(&self) -> &str {
            self.fake.scheme()
        }

        fn start<'a>(&'a self, call: &'a Call) -> Boxed<'a, Start> {
            assert!(call.write_until(Tick::ZERO).is_err(), "L9-1501: a start writes nothing");
            let next = self.starts.lock().unwrap().pop_front();
            Box::pin(async {
                match next {
                    Some(start) => start,
                    None => std::future::pending().await,
                }
            })
        }

        fn instances(&self) -> Option<&dyn Instances> {
            self.fake.instances()
        }

        fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
            self.fake.load_balancers()
        }

        fn routes(&self) -> Option<&dyn Routes> {
            self.fake.routes()
        }
    }

    struct Fixture {
        clock: Arc<dyn Clock>,
        cloud: Cloud,
    }

    impl Fixture {
        fn new() -> Self {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            let cloud = Cloud::new(Arc::clone(&clock), Random::seeded(1), SimSettings::default());
            cloud.add_instance("a", "north-1");
            Self { clock, cloud }
        }

        fn fake(&self) -> FakeProvider {
            FakeProvider::new("alpha", &self.cloud, "manager", Arc::clone(&self.clock))
        }

        fn provider(&self, name: &str, starts: impl IntoIterator<Item = Start>) -> Arc<dyn Provider> {
            let fake = FakeProvider::new(name, &self.cloud, "manager", Arc::clone(&self.clock));
            Arc::new(Scripted { fake, starts: Mutex::new(starts.into_iter().collect()) })
        }
    }

    fn later() -> Start {
        Start::Later(Error::temporary("connection refused"))
    }

    #[tokio::test(start_paused = true)]
    async fn each_cloud_is_ready_late_or_refused() {
        let fixture = Fixture::new();
        let refusal = Start::Fatal(Error::user_input("TOKEN is refused"));
        let clouds = vec![
            fixture.provider("ready", [Start::Ready]),
            fixture.provider("away", [later()]),
            fixture.provider("refused", [refusal]),
            fixture.provider("silent", []),
        ];
        let begun = begin(clouds, &fixture.clock).await;
        let names = |clouds: &[Arc<dyn Provider>]| {
            clouds.iter().map(|cloud| cloud.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&begun.clouds), ["ready", "away", "silent"]);
        let late: Vec<_> = begun.late.iter().map(|late| late.unknown().message().to_owned()).collect();
        assert_eq!(
            late,
            ["away is not ready yet: connection refused", "silent is not ready yet: no answer in 5s"]
        );
        let refused: Vec<_> = begun.refused.iter().map(|why| why.message().to_owned()).collect();
        assert_eq!(refused, ["refused: TOKEN is refused"]);
        assert_eq!(fixture.cloud.calls().len(), 0, "nobody asked the cloud anything");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_cloud_is_unknown_until_it_is_ready() {
        let fixture = Fixture::new();
        let provider = fixture.provider("alpha", [later(), later(), Start::Ready]);
        let begun = begin(vec![provider], &fixture.clock).await;
        let (cloud, late) = (&begun.clouds[0], &begun.late[0]);
        let call = Call::new(fixture.clock.now() + Duration::from_secs(600), Arc::new(Unguarded));

        let id: ProviderId = "alpha://1".parse().unwrap();
        let unknown = |why: Option<Error>| why.is_some_and(|why| why.category() == Category::Temporary);
        let instances = cloud.instances().unwrap();
        assert!(unknown(instances.list(&call).await.err()), "L1-1531");
        assert!(unknown(instances.get(&call, &id).await.known().err()), "L1-1532");
        assert!(unknown(instances.find(&call, "a").await.known().err()), "L1-1533");
        let inventory = Inventory::new(Arc::clone(cloud), Arc::clone(&fixture.clock));
        let fleet: Arc<dyn Fleet> = Arc::new(SurveyFleet::new(Arc::new(inventory), fixture.clock.now()));
        let routes = cloud.routes().unwrap();
        assert!(unknown(routes.list(&call, &[], &fleet).await.err()), "L1-1534");
        assert_eq!((instances.ask_every(), routes.families().len()), (None, 1));
        let balancers = cloud.load_balancers().unwrap();
        assert!(unknown(balancers.shows(&call, "1").await.known().err()), "L1-1535");
        assert!(unknown(balancers.survey(&fleet).err()), "so nothing is written on a Service");
        assert_eq!(
            balancers.profile().settle_time,
            FakeProvider::balancers(&fixture.fake()).profile().settle_time
        );
        assert!(cloud.zones().is_none() && cloud.owns(&id));
        assert_eq!(fixture.cloud.calls().len(), 0, "nobody asked the cloud anything");

        late.until_ready(&fixture.clock, &Random::seeded(1)).await.unwrap();
        let listed = cloud.instances().unwrap().list(&call).await.unwrap();
        assert_eq!(listed.items.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn starts_are_spaced_out_and_a_refusal_ends_them() {
        let fixture = Fixture::new();
        let throttled =
            Error::new(Category::Throttled { retry_after: Some(Duration::from_secs(300)) }, "slow down");
        let starts = [later(), later(), Start::Later(throttled), Start::Fatal(Error::user_input("no"))];
        let begun = begin(vec![fixture.provider("alpha", starts)], &fixture.clock).await;
        let before = fixture.clock.now();
        let refused = begun.late[0].until_ready(&fixture.clock, &Random::seeded(1)).await.unwrap_err();
        assert_eq!(refused.message(), "alpha: no");
        let took = fixture.clock.now().since(before).as_secs();
        assert!((306..310).contains(&took), "L12-1501: 2, 4 and 300 seconds, somewhat stretched: {took}");
    }
}
