//! The service in the process of the manager, with real sockets.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_cloudlycke::FACTORY;
use cloudberth_core::{Call, Clock, Provider, Random, call::Unguarded, provider::Start};
use cloudberth_http::{
    Attempt, Env, GivenFlags, NoResolver, Notes, Observer, ProviderContext, surroundings::SystemClock,
};

const INVENTORY: &str = "
version: 1
clusters: { c2: { kubernetesName: kubernetes-2 } }
types: { small: { cpus: 1 } }
machines:
  - { id: n-c2-1, name: node-c2-1, cluster: c2, type: small, internal: [127.0.0.1] }
";

/// How each call was answered.
#[derive(Default)]
struct Answers(Mutex<Vec<(&'static str, Option<u16>)>>);

impl Observer for Answers {
    fn attempted(&self, attempt: Attempt) {
        self.0.lock().unwrap().push((attempt.operation, attempt.status));
    }
}

impl Answers {
    fn take(&self) -> Vec<(&'static str, Option<u16>)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn open(folder: &Path, file: &str, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
    open_observed(folder, file, clock, Arc::new(Answers::default()))
}

fn open_observed(
    folder: &Path,
    file: &str,
    clock: &Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Arc<dyn Provider> {
    let path = |name: &str| folder.join(name).display().to_string();
    let variables = [("CLOUDLYCKE_INVENTORY", path(file)), ("CLOUDLYCKE_STATE_DIR", path("state"))];
    let env: Env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let ctx = ProviderContext {
        env: &env,
        config: None,
        given: &GivenFlags::default(),
        cluster_name: "kubernetes-2",
        observer,
        clock: Arc::clone(clock),
        random: Arc::new(Random::seeded(1)),
        resolver: Arc::new(NoResolver),
        notes: &Notes::default(),
    };
    (FACTORY.open)(&ctx).unwrap()
}

#[tokio::test]
async fn an_inventory_is_all_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("inv.yaml"), INVENTORY).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "version: 1\nmachines: [{ id: x }]\n").unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let call = Call::new(clock.now() + Duration::from_secs(60), Arc::new(Unguarded));

    let wrong = open(folder.path(), "bad.yaml", &clock);
    let Start::Fatal(why) = wrong.start(&call).await else { panic!("CL-77 faults are fatal") };
    assert!(why.message().contains("bad.yaml:2"), "CL-77 {why}");

    let provider = open(folder.path(), "inv.yaml", &clock);
    assert_eq!(provider.start(&call).await, Start::Ready, "CL-77");
    let listed = provider.instances().unwrap().list(&call).await.unwrap();
    assert_eq!(listed.items[0].id.to_string(), "cloudlycke://n-c2-1", "CL-77 CL-1");
    let second = open(folder.path(), "inv.yaml", &clock);
    let Start::Fatal(why) = second.start(&call).await else { panic!("CL-90 one service for one state") };
    assert!(why.message().contains("in use"), "CL-90 {why}");
    provider.stop(&call).await;
}

#[tokio::test]
async fn a_listing_that_has_not_changed_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inv.yaml");
    std::fs::write(&file, INVENTORY).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let call = Call::new(clock.now() + Duration::from_secs(60), Arc::new(Unguarded));
    let answers = Arc::new(Answers::default());
    let provider = open_observed(folder.path(), "inv.yaml", &clock, answers.clone());
    assert_eq!(provider.start(&call).await, Start::Ready);
    let list = async || {
        let listed = provider.instances().unwrap().list(&call).await.unwrap();
        listed.items.iter().map(|one| format!("{} {:?}", one.id, one.addresses)).collect::<Vec<_>>()
    };
    let first = list().await;
    answers.take();
    assert_eq!(list().await, first, "CL-71 the same machines");
    assert_eq!(answers.take(), [("list machines", Some(304))], "CL-71 one call, and nothing new");
    std::fs::write(&file, INVENTORY.replace("127.0.0.1", "127.0.0.2")).unwrap();
    let end = clock.now() + Duration::from_secs(30);
    while list().await == first {
        assert!(clock.now() < end, "CL-92 the file is read again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(answers.take().last(), Some(&("list machines", Some(200))), "CL-71 what has changed is sent");
    provider.stop(&call).await;
}
