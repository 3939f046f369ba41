//! The real Helm behind our trait, with real charts: whatever state a release is in, what we decide about it heals it.

use cloudberth_e2e::{Chart, ClusterKind};
use cloudberth_rancher_fip::helm::stand_in::{Planted, record};
use cloudberth_rancher_fip::helm::{
    ChartRef, Helm as _, HelmAction, HelmDecision, HelmFailure, ReleaseStatus,
};
use serde_json::json;

use crate::fixture::{Fixture, NAMESPACE};

/// One long story, so that one cluster serves for all of it.
pub(crate) async fn tell(kind: ClusterKind) {
    let fixture = &Fixture::start(kind).await;
    installed_and_upgraded(fixture).await;
    asked_for_versions(fixture).await;
    failed_and_mended(fixture).await;
    told_to_end(fixture).await;
    killed(fixture).await;
    left_by_others(fixture).await;
    refused(fixture).await;
    assert_eq!(fixture.left_in_scratch(), 0, "RF-78 nothing is left");
}

async fn installed_and_upgraded(fixture: &Fixture) {
    let first = fixture.http("lb", "0.1.0", "greeting: hello\n");
    assert_eq!(fixture.decide(&first).await, HelmDecision::Run(HelmAction::Install), "RF-57");
    // RF-208: a directory named like the chart lies where this program runs.
    fixture.run(&first, HelmAction::Install).await.unwrap();
    assert_eq!(
        fixture.settings("lb").await,
        json!({"version": "0.1.0", "greeting": "hello"}),
        "RF-55 RF-57 RF-208"
    );
    assert_eq!(fixture.decide(&first).await, HelmDecision::Skip, "RF-58");

    let values = fixture.http("lb", "0.1.0", "greeting: moin\n");
    assert_eq!(fixture.decide(&values).await, HelmDecision::Run(HelmAction::Upgrade), "RF-61");
    fixture.run(&values, HelmAction::Upgrade).await.unwrap();
    assert_eq!(fixture.settings("lb").await["greeting"], "moin", "RF-61");
    assert_eq!(fixture.decide(&values).await, HelmDecision::Skip, "RF-61 the hash was recorded");

    let oci = fixture.oci("lb", "0.2.0", "");
    assert_eq!(fixture.decide(&oci).await, HelmDecision::Run(HelmAction::Upgrade), "RF-60");
    fixture.run(&oci, HelmAction::Upgrade).await.unwrap();
    assert_eq!(fixture.settings("lb").await, json!({"version": "0.2.0", "greeting": "moin"}), "RF-54 RF-62");
    assert_eq!(fixture.decide(&oci).await, HelmDecision::Skip, "RF-205");

    // Somebody tunes it by hand; the configuration is as it was.
    let reference = fixture.oci.reference("lb");
    fixture.helm_itself(&["upgrade", "lb", &reference, "--version=0.2.0", "--set=greeting=ahoy"]).await;
    assert_eq!(fixture.settings("lb").await["greeting"], "ahoy");
    assert_eq!(
        fixture.decide(&fixture.oci("lb", "0.2.0", "greeting: moin\n")).await,
        HelmDecision::Skip,
        "not fought over"
    );
}

async fn asked_for_versions(fixture: &Fixture) {
    let resolve = async |chart: &ChartRef| fixture.helm.resolve(chart, &fixture.leash()).await.unwrap();
    for (case, chart, want) in [
        ("RF-63 the newest", fixture.http("lb", "", ""), "0.2.0"),
        ("RF-64 a range", fixture.http("lb", "~0.1.0", ""), "0.1.0"),
        ("RF-204 two numbers", fixture.http("lb", "0.1", ""), "0.1.0"),
        ("RF-64 in a registry", fixture.oci("lb", "~0.1.0", ""), "0.1.0"),
        ("RF-63 in a registry", fixture.oci("lb", "", ""), "0.2.0"),
    ] {
        assert_eq!(resolve(&chart).await, want, "{case}");
    }
}

async fn failed_and_mended(fixture: &Fixture) {
    fixture.publish(Chart::new("lb", "0.3.0").that_is_refused());
    let (bad, good) = (fixture.http("lb", "0.3.0", ""), fixture.http("lb", "0.2.0", ""));
    let error = fixture.run(&bad, HelmAction::Upgrade).await.unwrap_err();
    println!("a chart that the server refuses: {error}");
    assert_eq!(fixture.status("lb").await, Some(ReleaseStatus::Failed));
    assert_eq!(fixture.decide(&good).await, HelmDecision::Run(HelmAction::Upgrade), "RF-65");
    fixture.run(&good, HelmAction::Upgrade).await.unwrap();
    assert_eq!(fixture.decide(&good).await, HelmDecision::Skip, "RF-65");
}

/// The program ends while Helm waits.
async fn told_to_end(fixture: &Fixture) {
    fixture.publish(Chart::new("lb", "0.4.0").that_hangs());
    let hanging = fixture.http("lb", "0.4.0", "");
    let stop = async {
        fixture.until_status("lb", ReleaseStatus::PendingUpgrade).await;
        fixture.until_pod("lb").await;
        fixture.stop.send_replace(true);
    };
    let (done, ()) = tokio::join!(fixture.run(&hanging, HelmAction::Upgrade), stop);
    assert_eq!(done.unwrap_err().failure, HelmFailure::Stopped, "RF-75");
    assert_eq!(fixture.status("lb").await, Some(ReleaseStatus::Failed), "RF-75 never left pending");
    fixture.stop.send_replace(false);
    fixture.run(&fixture.http("lb", "0.2.0", ""), HelmAction::Upgrade).await.unwrap();
}

/// The program is killed while Helm waits, and Helm with it.
async fn killed(fixture: &Fixture) {
    let hanging = fixture.http("lb", "0.4.0", "");
    tokio::select! {
        done = fixture.run(&hanging, HelmAction::Upgrade) => panic!("{done:?}"),
        () = fixture.until_status("lb", ReleaseStatus::PendingUpgrade) => {}
    }
    assert_eq!(fixture.status("lb").await, Some(ReleaseStatus::PendingUpgrade));
    let good = fixture.http("lb", "0.1.0", "");
    let busy = fixture.run(&good, HelmAction::Upgrade).await.unwrap_err();
    assert_eq!(busy.failure, HelmFailure::Busy, "RF-72 {busy}");
    assert!(matches!(fixture.decide(&good).await, HelmDecision::Wait { .. }), "RF-203");
    let healed = fixture.heal(&good).await;
    assert!(
        matches!(
            healed[..],
            [HelmDecision::Run(HelmAction::Rollback { .. }), HelmDecision::Run(HelmAction::Upgrade)]
        ),
        "RF-68 {healed:?}"
    );
    assert_eq!(fixture.settings("lb").await["version"], "0.1.0", "RF-68");

    // The same while it installs for the first time.
    fixture.publish(Chart::new("fresh", "0.1.0").that_hangs());
    fixture.publish(Chart::new("fresh", "0.2.0"));
    let (hanging, good) = (fixture.http("fresh", "0.1.0", ""), fixture.http("fresh", "0.2.0", ""));
    tokio::select! {
        done = fixture.run(&hanging, HelmAction::Install) => panic!("{done:?}"),
        () = fixture.until_status("fresh", ReleaseStatus::PendingInstall) => {}
    }
    assert_eq!(fixture.status("fresh").await, Some(ReleaseStatus::PendingInstall));
    let healed = fixture.heal(&good).await;
    assert!(
        matches!(healed[..], [HelmDecision::DeleteRecord { .. }, HelmDecision::Run(HelmAction::Install)]),
        "RF-66 {healed:?}"
    );
    assert_eq!(fixture.settings("fresh").await["version"], "0.2.0", "RF-66 what was there is adopted");
}

/// States that others left behind.
async fn left_by_others(fixture: &Fixture) {
    let good = fixture.http("fresh", "0.2.0", "");
    fixture.helm_itself(&["uninstall", "fresh", "--keep-history"]).await;
    assert_eq!(fixture.decide(&good).await, HelmDecision::Run(HelmAction::InstallReplace), "RF-69");
    // Helm sorts the names of its records as text, and finds nothing deployed past nine revisions.
    let planted = Planted { version: "0.2.0".to_owned(), ..Planted::default() };
    for revision in 9..=12 {
        fixture
            .create_secret(&record(NAMESPACE, "fresh", revision, ReleaseStatus::Uninstalled, &planted))
            .await;
    }
    let healed = fixture.heal(&good).await;
    assert_eq!(healed, [HelmDecision::Run(HelmAction::InstallReplace)], "RF-202");

    fixture.delete_secret("sh.helm.release.v1.fresh.v13").await;
    let removing = record(NAMESPACE, "fresh", 13, ReleaseStatus::Uninstalling, &planted);
    fixture.create_secret(&removing).await;
    assert!(fixture.run(&good, HelmAction::Upgrade).await.is_err(), "Helm refuses it");
    let healed = fixture.heal(&good).await;
    assert_eq!(healed, [HelmDecision::Run(HelmAction::Uninstall), HelmDecision::Run(HelmAction::Install)]);
    assert_eq!(fixture.settings("fresh").await["version"], "0.2.0");
}

/// Everything that can be in the way.
async fn refused(fixture: &Fixture) {
    let chart = fixture.http("lb", "0.2.0", "");
    fixture.http.set_down(true);
    let error = fixture.run(&chart, HelmAction::Upgrade).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Fetch, "{error}");
    assert_eq!(
        fixture.decide(&fixture.http("lb", "0.1.0", "")).await,
        HelmDecision::Skip,
        "RF-59 nothing is fetched"
    );
    fixture.http.set_down(false);
    for missing in
        [fixture.http("lb", "9.9.9", ""), fixture.oci("lb", "9.9.9", ""), fixture.http("nothing", "", "")]
    {
        let error = fixture.helm.resolve(&missing, &fixture.leash()).await.unwrap_err();
        assert_eq!(error.failure, HelmFailure::Fetch, "{error}");
    }

    fixture.http.ask_for("Basic dTpoMWRkM24=");
    let error = fixture.run(&chart, HelmAction::Upgrade).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Fetch, "{error}");
    let with_password = fixture.http.repository().replace("://", "://u:h1dd3n@");
    let private = ChartRef { repo: Some(with_password), ..chart.clone() };
    fixture.run(&private, HelmAction::Upgrade).await.unwrap();
    assert_eq!(fixture.settings("lb").await["version"], "0.2.0", "RF-206");

    let leash = fixture.leash();
    let nobody = String::from_utf8(fixture.kubeconfig.clone()).unwrap().replace("127.0.0.1", "127.0.0.2");
    let error =
        fixture.helm.run(nobody.as_bytes(), &private, &HelmAction::Upgrade, &leash).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Unreachable, "RF-48 {error}");
    let stranger = fixture.kubeconfig_of_a_stranger();
    let error = fixture.helm.run(&stranger, &private, &HelmAction::Upgrade, &leash).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Unauthorised, "RF-47 {error}");
}
