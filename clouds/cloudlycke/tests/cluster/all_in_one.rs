//! The service in the process of the manager, with real sockets.

use std::{path::Path, sync::Arc, time::Duration};

use cloudberth_cloudlycke::FACTORY;
use cloudberth_core::{Call, Clock, Provider, Random, call::Unguarded, provider::Start};
use cloudberth_http::{
    Env, GivenFlags, NoResolver, Notes, ProviderContext, Unobserved, surroundings::SystemClock,
};

const INVENTORY: &str = "
version: 1
clusters: { c2: { kubernetesName: kubernetes-2 } }
types: { small: { cpus: 1 } }
machines:
  - { id: n-c2-1, name: node-c2-1, cluster: c2, type: small, internal: [127.0.0.1] }
";

fn open(folder: &Path, file: &str, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
    let path = |name: &str| folder.join(name).display().to_string();
    let variables = [("CLOUDLYCKE_INVENTORY", path(file)), ("CLOUDLYCKE_STATE_DIR", path("state"))];
    let env: Env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let ctx = ProviderContext {
        env: &env,
        config: None,
        given: &GivenFlags::default(),
        cluster_name: "kubernetes-2",
        observer: Arc::new(Unobserved),
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
