//! The version of the API server is asked for until it is said, and nothing hangs on it.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Random, lb::ServerVersion};
use embedded_kube::Action;
use tokio::time::timeout;

use crate::stage::Stage;

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_its_version_is_asked_again_ever_more_rarely() {
    let stage = Stage::new();
    stage.api.set_version("v1.29+vendor.3");
    let refuse = |_: &_, action: &Action| (action.path == "/version").then(|| "not now".to_owned());
    stage.api.set_policy(Some(Arc::new(refuse)));
    let random = Random::seeded(1);
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, stage.cluster.learn_version(&random)).await.is_err());
    assert_eq!(stage.cluster.version(), None);
    let asked = stage.calls("get", "/version").len();
    assert!((10..=24).contains(&asked), "L12-180 {asked} times in an hour");
    stage.api.set_policy(None);
    timeout(hour, stage.cluster.learn_version(&random)).await.unwrap();
    assert_eq!(stage.cluster.version(), ServerVersion::read("1", "29"), "CS-128");
    assert_eq!(stage.calls("get", "/version").len(), asked + 1, "once it is known nobody asks");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_none_stays_unknown() {
    let stage = Stage::new();
    stage.api.set_version("vX.Y");
    stage.cluster.ask_version().await.unwrap();
    assert_eq!(stage.cluster.version(), None);
}
