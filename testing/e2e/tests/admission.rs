//! The policies of `deploy/admission` on a real kube-apiserver, which evaluates them itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// What a test prints, a person reads.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::time::Duration;

use cloudberth::CLOUDS;
use cloudberth_core::annotation::{Annotations, Row, Shape};
use cloudberth_e2e::{Answer, ControlPlane, Options, Request, eventually};
use http::Method;
use serde_json::{Value, json};
use support::assets;

const SOON: Duration = Duration::from_secs(60);
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CLOUD_NAMES: [&str; 4] = ["binarylane", "brightbox", "cloudlycke", "cloudscale"];
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PROTOCOL: &str = "k8s.cloudscale.ch/loadbalancer-pool-protocol";

fn documents(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

fn service(name: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

/// A control plane and what is asked of it.
struct Server(ControlPlane);

impl Server {
    async fn send(&self, request: Request) -> Answer {
        self.0.send(&request).await.unwrap()
    }

    /// What would become of a new Service; nothing is stored.
    async fn tried(&self, service: &Value) -> Answer {
        self.send(Request::post(format!("{SERVICES}?dryRun=All"), service)).await
    }

    async fn create(&self, path: &str, object: &Value) {
        let answer = self.send(Request::post(format!("{path}?fieldValidation=Strict"), object)).await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    }

    async fn edit(&self, name: &str, change: &Value) -> Answer {
        let mut request = Request::new(Method::PATCH, format!("{SERVICES}/{name}")).json(change);
        request.content_type = "application/merge-patch+json".into();
        self.send(request).await
    }

    /// Installs the policies of all clouds, and waits until those of each are in force.
    async fn install(&self) {
        for cloud in CLOUD_NAMES {
            for object in documents(&format!("deploy/admission/{cloud}.yaml")) {
                let kind = object["kind"].as_str().unwrap().to_lowercase();
                let plural =
                    if kind.ends_with('y') { kind.replace("policy", "policies") } else { format!("{kind}s") };
                self.create(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &object).await;
            }
        }
        for factory in CLOUDS.iter().filter(|factory| CLOUD_NAMES.contains(&factory.name)) {
            let unknown = format!("{}nowhere", factory.annotations.prefixes()[0]);
            let is_word = |row: &Row| matches!(row.shape, Shape::Word { .. }) && !row.spellings[0].lenient;
            let row = factory.annotations.rows().find(is_word).unwrap();
            let probe = service("probe", &json!({row.spellings[0].name: "never"}));
            let stranger = service("probe", &json!({unknown: "x"}));
            let what = format!("the policies of {} are in force", factory.name);
            eventually(SOON, &what, async || {
                let (denied, warned) = (self.tried(&probe).await, self.tried(&stranger).await);
                let done = denied.status == 422 && warned.header("warning").is_some();
                if done { Ok(()) } else { Err(format!("{} {}", denied.json(), warned.json())) }
            })
            .await
            .unwrap();
        }
    }
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_real_server_refuses_what_the_program_would_and_nothing_else() {
    let server = Server(ControlPlane::start(&assets(), &Options::default()).await.unwrap());
    server.create(SERVICES, &service("old", &json!({PROTOCOL: "pigeon"}))).await;
    server.install().await;

    refusals_name_the_annotation_and_the_fix(&server).await;
    what_was_there_before_can_still_be_edited(&server).await;
    every_example_passes(&server).await;
    no_rule_is_stricter_than_the_program(&server).await;
}

async fn refusals_name_the_annotation_and_the_fix(server: &Server) {
    let answer = server.tried(&service("new", &json!({PROTOCOL: "pigeon"}))).await;
    let said = message(&answer);
    let want = format!("annotation {PROTOCOL}: \"pigeon\" is not one of tcp, proxy, proxyv2");
    assert!(answer.status == 422 && said.contains(&want), "{} {said}", answer.status);

    let answer =
        server.tried(&service("new", &json!({"k8s.cloudscale.ch/loadbalancer-pool-protokol": "tcp"}))).await;
    let warning = answer.header("warning").unwrap_or_default().to_owned();
    assert_eq!(answer.status, 201, "the program only warns of it, and so does the server");
    assert!(
        warning.contains("there is no annotation k8s.cloudscale.ch/loadbalancer-pool-protokol"),
        "{warning}"
    );

    let mut foreign = service("new", &json!({PROTOCOL: "pigeon"}));
    foreign["spec"]["loadBalancerClass"] = json!("example.net/other");
    let mut inside = service("new", &json!({PROTOCOL: "pigeon"}));
    inside["spec"]["type"] = json!("ClusterIP");
    for (case, object) in [("of another class", foreign), ("of another type", inside)] {
        let answer = server.tried(&object).await;
        assert_eq!(answer.status, 201, "{case}: {}", message(&answer));
    }
}

async fn what_was_there_before_can_still_be_edited(server: &Server) {
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let annotated = |value: &str| json!({"metadata": {"annotations": {PROTOCOL: value}}});
    let table = [
        ("another field", labels, 200),
        ("the same value", annotated("pigeon"), 200),
        ("another wrong value", annotated("carrot"), 422),
        ("a good value", annotated("proxy"), 200),
        ("a wrong one again", annotated("pigeon"), 422),
        ("no value", json!({"metadata": {"annotations": {PROTOCOL: null}}}), 200),
    ];
    for (case, change, status) in table {
        let answer = server.edit("old", &change).await;
        assert_eq!(answer.status, status, "{case}: {}", message(&answer));
    }
    let answer = server.send(Request::new(Method::DELETE, format!("{SERVICES}/old"))).await;
    assert_eq!(answer.status, 200, "{}", message(&answer));
}

async fn every_example_passes(server: &Server) {
    let mut tried = 0;
    for cloud in CLOUD_NAMES {
        for entry in fs::read_dir(format!("{ROOT}/clouds/{cloud}/examples")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let objects = documents(&format!("clouds/{cloud}/examples/{name}"));
            for object in objects.iter().filter(|object| object["kind"] == "Service") {
                let answer = server.tried(object).await;
                assert_eq!(answer.status, 201, "{cloud}/{name}: {}", message(&answer));
                assert_eq!(answer.header("warning"), None, "{cloud}/{name}");
                tried += 1;
            }
        }
    }
    println!("{tried} examples pass");
    assert!(tried > 20, "{tried}");
}

/// The server's word on many values of every annotation that has a rule, beside the program's.
async fn no_rule_is_stricter_than_the_program(server: &Server) {
    const TEXTS: [&str; 11] = [
        "",
        " 1 ",
        "0",
        "-1",
        "+1",
        "007",
        "2147483648",
        "99999999999999999999",
        "TCP",
        "[\"10.0.0.0/8\"]",
        "{}",
    ];
    let (mut denials, mut tried) = (0, 0);
    for factory in CLOUDS.iter().filter(|factory| CLOUD_NAMES.contains(&factory.name)) {
        let table = factory.annotations;
        for row in table.rows().filter(|row| row.shape != Shape::Any) {
            for spelling in row.spellings.iter().filter(|spelling| !spelling.lenient) {
                for text in TEXTS {
                    let answer = server.tried(&service("new", &json!({spelling.name: text}))).await;
                    let denied = answer.status == 422;
                    let set = Annotations::from([(spelling.name.to_owned(), text.to_owned())]);
                    let refused = !table.parse(&set).refused.is_empty();
                    let good =
                        table.reading().text(&set, spelling.name).is_none_or(|text| row.shape.admits(text));
                    let case = format!("{}={text:?}: {}", spelling.name, message(&answer));
                    assert!(refused || !denied, "stricter than the program: {case}");
                    assert_eq!(denied, !good, "the rule does not say what the table does: {case}");
                    denials += usize::from(denied);
                    tried += 1;
                }
            }
        }
    }
    println!("{denials} of {tried} values are denied");
    assert!(denials > 50 && denials < tried, "{denials} of {tried}");
}
