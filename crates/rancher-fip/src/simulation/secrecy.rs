//! Nothing that is secret is told: not in the log, not in an event, not in a plan.

use std::{
    io,
    sync::{Arc, Mutex},
};

use embedded_kube::{Fault, Harm};
use serde_json::json;
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, filter_fn},
    fmt::MakeWriter,
    layer::SubscriberExt as _,
};

use super::world::{GUEST, KUBECONFIG_TOKEN, PROJECT_SECRET, World, pass, simulate};
use crate::{helm::HelmFailure, plan::data, process::is_shown};

/// A log that is kept.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

const PASSWORD: &str = "rep0sitory-passw0rd";
const BY_HAND: &str = "t0ken-by-hand";

/// A life in which as much as possible is worth telling; what is secret in it, and what was told.
async fn life() -> (Vec<String>, String) {
    let world = World::reference().await;
    let url = format!("https://robot:{PASSWORD}@purelb.example.com");
    let values = format!("auth:\n  password: {PASSWORD}\n");
    let broken = format!("auth: [{PASSWORD}\n");
    world.configure(&[("PureLBControllerChartRef", &url), ("PureLBControllerValues", &values)]).await;
    let mut told = world.plan().await.to_text();
    world.helm.fail([HelmFailure::Rejected, HelmFailure::Fetch]);
    let _running = world.start();
    pass(300).await;
    let mut hidden = vec![PASSWORD.to_owned(), BY_HAND.to_owned(), KUBECONFIG_TOKEN.to_owned()];
    hidden.push(world.token().await.unwrap());

    // Writes that are refused, answers that say what was sent, and reads that fail.
    let guest = world.api("guest01");
    for (api, verb) in
        [(&guest, "update"), (&guest, "create"), (&world.local, "create"), (&world.local, "get")]
    {
        for harm in [Harm::status(422), Harm::status(403), Harm::LostAnswer, Harm::Conflict] {
            api.add_fault(Fault::new(harm).on(verb, "secrets").times(2));
        }
    }
    let path = format!("/api/v1/namespaces/c-m-harv01/secrets/{PROJECT_SECRET}");
    world.send("PATCH", &path, Some(json!({"data": {"clientSecret": data::encode(BY_HAND)}}))).await;
    pass(1_300).await;
    let rotate = json!({"metadata": {"annotations": {"rancher.k8s.binbash.org/rotate-token": "true"}}});
    world.send("PATCH", &path, Some(rotate)).await;
    pass(1_300).await;
    hidden.push(world.token().await.unwrap());
    told.push_str(&world.plan().await.to_json());

    // A configuration and a kubeconfig that cannot be read.
    world.configure(&[("PureLBControllerChartRef", &url), ("PureLBControllerValues", &broken)]).await;
    let kubeconfig = format!("users: [{{name: u, user: {{token: {KUBECONFIG_TOKEN}}}}}\nbroken");
    let body = json!({"data": {"value": data::encode(kubeconfig)}});
    world.send("PATCH", "/api/v1/namespaces/fleet-default/secrets/guest01-kubeconfig", Some(body)).await;
    world.label(GUEST, json!({"rancher-fip-lbtype": "metallb"})).await;
    pass(300).await;
    told.push_str(&world.plan().await.to_text());
    assert!(world.events().len() > 5, "there was something to tell: {:?}", world.events());
    for event in world.local.objects("events") {
        told.push_str(&event.to_string());
    }
    (hidden, told)
}

#[test]
fn no_secret_is_told() {
    let log = Log::default();
    let shown = filter_fn(|about| is_shown(about, LevelFilter::TRACE));
    let lines = tracing_subscriber::fmt::layer().with_writer(log.clone()).with_ansi(false).with_filter(shown);
    let mut found = (Vec::new(), String::new());
    // With one subscriber only, what another test happens to log first would count as not listened to, here too.
    let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
        simulate(async { found = life().await });
    });
    let (hidden, told) = found;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("this replica leads") && log.contains("TRACE"), "the log is kept, and in full");
    assert!(told.contains("install the chart purelb"), "the plan is told");
    assert!(hidden.len() == 5 && hidden.iter().all(|secret| secret.len() > 10), "{}", hidden.len());
    for secret in hidden {
        let encoded = data::encode(&secret).to_string();
        for form in [secret.as_str(), encoded.trim_matches('"')] {
            let line = log.lines().find(|line| line.contains(form));
            assert_eq!(line, None, "RF-152 law 10: the log");
            assert!(!told.contains(form), "RF-152 law 10: an event or a plan");
        }
    }
}
