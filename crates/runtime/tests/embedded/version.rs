//! The version of the API server is asked for until it is said, and nothing hangs on it.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Random, lb::ServerVersion};
use embedded_kube::Action;
use tokio::time::timeout;

use crate::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_its_version_is_asked_again_ever_more_rarely() {
    let fixture = Fixture::new();
    fixture.api.set_version("v1.29+vendor.3");
    let refuse = |_: &_, action: &Action| (action.path == "/version").then(|| "not now".to_owned());
    fixture.api.set_policy(Some(Arc::new(refuse)));
    let random = Random::seeded(1);
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, fixture.cluster.learn_version(&random)).await.is_err());
    assert_eq!(fixture.cluster.version(), None);
    let asked = fixture.calls("get", "/version").len();
    assert!((10..=24).contains(&asked), "L12-180 {asked} times in an hour");
    fixture.api.set_policy(None);
    timeout(hour, fixture.cluster.learn_version(&random)).await.unwrap();
    assert_eq!(fixture.cluster.version(), ServerVersion::read("1", "29"), "CS-128");
    assert_eq!(fixture.calls("get", "/version").len(), asked + 1, "once it is known nobody asks");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_none_stays_unknown() {
    let fixture = Fixture::new();
    fixture.api.set_version("vX.Y");
    fixture.cluster.ask_version().await.unwrap();
    assert_eq!(fixture.cluster.version(), None);
}
