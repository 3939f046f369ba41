//! How the provider starts.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Call, Clock, Provider, call::Unguarded, provider::Start};
use testing_kit::checks::{CloudFixture, CloudUnderTest as _};

use crate::under_test::Lycke;

async fn start(cloud: &Lycke, clock: &Arc<dyn Clock>, env: &[(&str, &str)]) -> Start {
    let call = Call::new(clock.now() + Duration::from_secs(20), Arc::new(Unguarded));
    cloud.provider_with(clock, env).start(&call).await
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_or_says_what_to_run_or_which_clusters_there_are() {
    let fixture: CloudFixture<Lycke> = CloudFixture::new();
    let (cloud, clock) = (&fixture.cloud, &fixture.cluster.clock);
    assert_eq!(start(cloud, clock, &[]).await, Start::Ready, "matched by --cluster-name");
    assert_eq!(start(cloud, clock, &[("CLOUDLYCKE_CLUSTER", "c1")]).await, Start::Ready, "CL-14");
    let Start::Fatal(why) = start(cloud, clock, &[("CLOUDLYCKE_CLUSTER", "c9")]).await else {
        panic!("CL-76")
    };
    for words in ["c9", "kubernetes-1 (key c1)", "test (key c2)"] {
        assert!(why.message().contains(words), "CL-76 {why}");
    }
    cloud.door.shut(true);
    let Start::Later(why) = start(cloud, clock, &[]).await else { panic!("it may come back") };
    assert!(why.message().contains("cloudberth lycke serve --inventory"), "{why}");
    cloud.door.shut(false);
    cloud.token.set("wrong");
    let Start::Fatal(why) = start(cloud, clock, &[]).await else { panic!("CL-69 waiting does not help") };
    assert!(!why.message().contains("serve --inventory"), "CL-69 {why}");
    assert_eq!(cloud.mutations(), 0, "nothing is written by a start");
}
