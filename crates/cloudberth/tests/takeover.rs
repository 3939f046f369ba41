//! `cloudberth plan` as a person calls it who is about to switch a cluster over: whatever the replaced program was told to
//! do, there is nothing left to do, and looking changes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, reason = "how many variants were looked at is worth reading")]
#![cfg(feature = "sim")]

mod fixture;

use std::{path::Path, sync::Arc};

use cloudberth_core::Random;
use cloudberth_http::surroundings::SystemClock;
use embedded_kube::{Call, KubeApi};
use fixture::{PROGRAM, Place, text};
use serde_json::{Value, json};
use sim_kit::{Entry, LeftBehind, Served, Surroundings};
use testing_kit::{People, takeover::leave};
use tokio::net::TcpListener;

/// A simulated cloud that a replaced program has worked in.
trait SwitchedCloud: Sized {
    /// How a person tells `plan` about it: arguments, and the variables for credentials and for the URL of the API.
    const ARGUMENTS: &[&str];
    const URL: &str;

    fn credentials(&self) -> Vec<(&str, String)>;
    fn empty() -> Self;
    async fn serve(&self) -> Served;
    fn journal(&self) -> Vec<Entry>;
    fn clear_journal(&self);
}

macro_rules! switched_cloud {
    ($sim:ident: $url:expr, $credentials:expr, $arguments:expr) => {
        impl SwitchedCloud for $sim::Cloud {
            const ARGUMENTS: &[&str] = $arguments;
            const URL: &str = $url;

            fn credentials(&self) -> Vec<(&str, String)> {
                $credentials(self)
            }

            fn empty() -> Self {
                Self::new(Arc::new(SystemClock::new()), Random::seeded(1), $sim::SimSettings::default())
            }

            async fn serve(&self) -> Served {
                $sim::serve_on_loopback(self).await.unwrap()
            }

            fn journal(&self) -> Vec<Entry> {
                self.journal()
            }

            fn clear_journal(&self) {
                self.clear_journal();
            }
        }
    };
}

fn token<C>(variable: &'static str) -> impl Fn(&C) -> Vec<(&str, String)> {
    move |_| vec![(variable, "any".to_owned())]
}

fn brightbox_client(cloud: &brightbox_sim::Cloud) -> Vec<(&str, String)> {
    let own = cloud.credentials();
    vec![("BRIGHTBOX_CLIENT", own.client), ("BRIGHTBOX_CLIENT_SECRET", own.secret)]
}

switched_cloud! { cloudscale_sim: "CLOUDSCALE_API_URL", token("CLOUDSCALE_ACCESS_TOKEN"),
&["--cloud-provider=cloudscale"] }
switched_cloud! { binarylane_sim: "BINARYLANE_API_URL", token("BINARYLANE_ACCESS_TOKEN"),
&["--cloud-provider=binarylane", "--cluster-name=test", "--cluster-cidr=10.244.0.0/16"] }
switched_cloud! { brightbox_sim: "BRIGHTBOX_API_URL", brightbox_client,
&["--cloud-provider=brightbox", "--cluster-name=test"] }

/// A cluster that was left behind, and its cloud, both on a port.
struct Site<C> {
    api: KubeApi,
    people: People,
    cloud: C,
    place: Place,
    on_ports: (embedded_kube::Served, Served),
}

/// What a plan came to.
struct PlanOutput {
    code: Option<i32>,
    text: String,
    /// What it wrote, in the cluster or in the cloud.
    writes: Vec<String>,
    /// How often it asked the cloud.
    looks: usize,
}

impl<C: SwitchedCloud> Site<C> {
    async fn left(variant: &impl LeftBehind<Cloud = C>) -> Self {
        let api = KubeApi::new(Surroundings::of_this_machine());
        let cloud = C::empty();
        let people = People::of(&api);
        leave(variant, &cloud, &people).await;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let served = embedded_kube::serve(&api, listener, None, None).unwrap();
        let on_ports = (served, cloud.serve().await);
        let place = Place::new();
        place.write("admin", &on_ports.0.kubeconfig());
        Self { api, people, cloud, place, on_ports }
    }

    async fn plan(&self, more: &[&str]) -> PlanOutput {
        let calls = self.api.calls(0).len();
        self.cloud.clear_journal();
        let mut command = self.place.command(Path::new(PROGRAM));
        command.envs(self.cloud.credentials()).env(C::URL, self.on_ports.1.url());
        command.args(["plan", "--kubeconfig=admin"]).args(C::ARGUMENTS).args(more);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let wrote = self.api.calls(0).into_iter().skip(calls).filter(Call::is_write);
        let wrote = wrote.map(|call| format!("{} {} {}", call.verb, call.resource, call.name));
        let asked = self.cloud.journal();
        let changed = asked.iter().filter(|entry| entry.mutation).map(|entry| entry.operation.clone());
        PlanOutput {
            code: output.status.code(),
            text: format!("{}{}", text(&output.stdout), text(&output.stderr)),
            writes: wrote.chain(changed).collect(),
            looks: asked.len(),
        }
    }
}

/// For every variant there is nothing to do but, in the cluster, what begins with these words.
async fn assert_empty<V: LeftBehind<Cloud: SwitchedCloud>>(
    number: &str,
    variants: &[V],
    more: &[&str],
    but: &[&str],
) {
    for variant in variants {
        let case = format!("{number} {}", variant.case());
        let told = Site::left(variant).await.plan(more).await;
        let steps: Vec<_> = told.text.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
        let allowed =
            |step: &&str| but.iter().any(|words| step.starts_with(words)) && step.ends_with("[impact: none]");
        assert!(steps.iter().all(allowed), "{case}:\n{}", told.text);
        assert_eq!(told.code, Some(if steps.is_empty() { 0 } else { 2 }), "{case}:\n{}", told.text);
        assert_eq!(told.writes, [""; 0], "{case}");
        assert!(told.looks > 0, "{case}: it looked");
    }
    println!("{number}: {} variants, and nothing to do in the cloud for any", variants.len());
}

/// An edit is told in these words, and not done. What the fixture does not notice, an empty plan would not show either.
async fn assert_told<V: LeftBehind<Cloud: SwitchedCloud>>(case: &str, variant: &V, edit: Value, want: &str) {
    let site = Site::left(variant).await;
    site.people.merge(&site.people.services(), "web", edit).await;
    let told = site.plan(&[]).await;
    assert_eq!(told.code, Some(2), "{case}:\n{}", told.text);
    assert!(told.text.contains(want), "{case}:\n{}", told.text);
    assert_eq!(told.writes, [""; 0], "{case}");
}

mod cloudscale {
    use cloudscale_sim::replaced::{annotated, plain, variants};

    use super::*;

    #[tokio::test]
    async fn nothing_is_left_to_do_for_whoever_switches_over() {
        let variants = variants();
        assert!(variants.len() >= 20, "{}", variants.len());
        assert_empty("CS-153", &variants, &[], &[]).await;
    }

    #[tokio::test]
    async fn what_was_changed_meanwhile_is_told_and_not_done() {
        let table = [
            ("the algorithm", annotated(&[("pool-algorithm", json!("source_ip"))]), "source_ip"),
            (
                "a timeout",
                annotated(&[("timeout-client-data-ms", json!("1234"))]),
                "set the time-out of clients on port tcp/80",
            ),
            (
                "who may connect",
                annotated(&[("listener-allowed-cidrs", json!("[\"10.0.0.0/8\"]"))]),
                "set who may connect on port tcp/80",
            ),
            ("a port", json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}}), "tcp/81"),
        ];
        for (case, edit, want) in table {
            assert_told(&format!("CS-153 {case}"), &plain(case), edit, want).await;
        }
    }
}

mod binarylane {
    use binarylane_sim::replaced::{annotated, first_generation, plain, ports, second_generation};

    use super::*;

    const ROUTES: &str = "--configure-cloud-routes=true";

    #[tokio::test]
    async fn nothing_is_left_to_do_for_whoever_switches_over() {
        // The first generation recorded no id, and gave nodes neither their types nor their hosts.
        let but =
            ["set the annotation service.beta.kubernetes.io/binarylane-loadbalancer-id=", "set the labels "];
        assert_empty("BL-139", &first_generation(), &[], &but).await;
        assert_empty("BL-145", &second_generation(), &[ROUTES], &[]).await;
        assert_empty("BL-144 without routes", &second_generation(), &[], &[]).await;
    }

    #[tokio::test]
    async fn what_was_changed_meanwhile_is_told_and_not_done() {
        let table = [
            ("the path", annotated(&[("health-check-path", json!("/up"))]), "set the health check"),
            ("both ports", ports(&[80, 443]), "set what is forwarded"),
            // It forwarded HTTP whatever the ports said.
            ("the other port", ports(&[443]), "set what is forwarded"),
        ];
        for (case, edit, want) in table {
            assert_told(&format!("BL-91 {case}"), &plain(case), edit, want).await;
        }
    }

    #[tokio::test]
    async fn an_entry_that_is_missing_is_told_and_not_written() {
        let site = Site::left(&second_generation()[0]).await;
        let vpc = site.cloud.first_vpc();
        site.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.pop());
        let told = site.plan(&[ROUTES]).await;
        assert_eq!(told.code, Some(2), "BL-119 {}", told.text);
        assert!(told.text.contains("10.244.3.0/24"), "BL-119 {}", told.text);
        assert_eq!(told.writes, [""; 0], "BL-119");
    }
}

mod brightbox {
    use brightbox_sim::replaced::{annotated, plain, variants};

    use super::*;

    #[tokio::test]
    async fn nothing_is_left_to_do_for_whoever_switches_over() {
        // The process asks the real names for domains; those variants are tried in one process with simulated names.
        let variants: Vec<_> = variants().into_iter().filter(|variant| !variant.has_domains()).collect();
        assert!(variants.len() >= 20, "{}", variants.len());
        assert_empty("BB-181", &variants, &[], &[]).await;
    }

    #[tokio::test]
    async fn what_was_changed_meanwhile_is_told_and_not_done() {
        let table = [
            ("a port", json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}}), "open ports"),
            ("the check", annotated(&[("healthcheck-protocol", json!("tcp"))]), "health check"),
        ];
        for (case, edit, want) in table {
            assert_told(&format!("BB-181 {case}"), &plain(case), edit, want).await;
        }
    }
}
