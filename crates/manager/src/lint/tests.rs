use cloudberth_core::{Random, provider::Provider};
use cloudberth_http::{
    Env, GivenFlags, NoResolver, Notes, ProviderContext, Unobserved, surroundings::SystemClock,
};

use super::*;

fn fake() -> Arc<dyn Provider> {
    let opened = (cloudberth_fake::FACTORY.open)(&ProviderContext {
        env: &Env::default(),
        config: None,
        given: &GivenFlags::default(),
        cluster_name: "kubernetes",
        observer: Arc::new(Unobserved),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(Random::seeded(1)),
        resolver: Arc::new(NoResolver),
        notes: &Notes::default(),
    });
    opened.unwrap()
}

fn linted(text: &str, chosen: bool) -> Lint {
    let all = objects(&Source { file: "web.yaml".to_owned(), text: text.to_owned() }).unwrap();
    let fake = fake();
    let annotations = cloudberth_fake::FACTORY.annotations;
    let judges = [Judge { name: "fake", annotations, balancers: fake.load_balancers().unwrap() }];
    lint(&all, &judges, chosen, "kubernetes")
}

fn service(name: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  type: \
         LoadBalancer\n  ports: [{{port: 80}}]\n{spec}---\n"
    )
}

/// Level, line, field and value of each finding.
fn short(found: &Lint) -> Vec<(Level, usize, &str, String)> {
    let value = |finding: &Finding| finding.value.as_ref().map(ToString::to_string).unwrap_or_default();
    found.findings.iter().map(|one| (one.level, one.line, one.field.as_str(), value(one))).collect()
}

#[tokio::test]
async fn a_good_service_is_good_although_nobody_gave_it_ports_and_nodes() {
    let found = linted(&service("web", "fake.cloudberth.dev/algorithm: round-robin", ""), false);
    assert_eq!((short(&found), found.exit_code(), found.services), (vec![], EXIT_GOOD, 1));
    assert_eq!(found.clouds, ["fake"]);
}

#[tokio::test]
async fn every_finding_has_its_place_its_value_and_what_to_do() {
    let text = [
        service("good", "", ""),
        service("bad", "fake.cloudberth.dev/algorithm: random, fake.cloudberth.dev/algoritm: x", ""),
        service("odd", "fake.cloudberth.dev/algorithm: 7", "  loadBalancerClass: other\n"),
    ];
    let found = linted(&text.concat(), true);
    let algorithm = "fake.cloudberth.dev/algorithm";
    let want = vec![
        (Level::Refused, 14, algorithm, "\"random\"".to_owned()),
        (Level::Warning, 14, "fake.cloudberth.dev/algoritm", "\"x\"".to_owned()),
        (Level::Refused, 23, algorithm, "7".to_owned()),
        (Level::Notice, 27, "spec.loadBalancerClass", "\"other\"".to_owned()),
    ];
    assert_eq!(short(&found), want, "L8-2101");
    assert_eq!((found.exit_code(), found.services), (EXIT_REFUSED, 3));
    let [refused, typo, unquoted, _] = found.findings.as_slice() else { panic!("{found:?}") };
    assert!(refused.message.contains("round-robin"), "{refused:?}");
    assert_eq!(refused.reason.as_deref(), Some("InvalidAnnotation"));
    assert_eq!((refused.document, refused.service.as_str()), (2, "default/bad"));
    assert!(typo.message.contains("did you mean fake.cloudberth.dev/algorithm?"), "{typo:?}");
    assert_eq!(unquoted.fix, "Put it in quotes: fake.cloudberth.dev/algorithm: \"7\".");
    let text = found.to_text(&["fake"]);
    assert!(
        text.contains("web.yaml:14: document 2, Service default/bad (fake): refused [InvalidAnnotation]\n"),
        "{text}"
    );
    assert!(text.ends_with("3, looked at for fake. Refused: 2. Warnings: 1. Notices: 1.\n"), "{text}");
}

#[tokio::test]
async fn lists_are_opened_and_other_things_left_alone() {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "v1", "kind": "ServiceList", "items": [
            {"metadata": {"name": "a", "namespace": "n",
                "annotations": {"fake.cloudberth.dev/algorithm": "x"}},
             "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}},
            "odd",
            {"metadata": {"name": "b"}, "spec": {"type": "ClusterIP"}}]}]}"#;
    let found = linted(list, false);
    assert_eq!(found.services, 1);
    assert_eq!(short(&found), [(Level::Refused, 5, "fake.cloudberth.dev/algorithm", "\"x\"".to_owned())]);
    assert_eq!(found.findings[0].service, "n/a");
    assert_eq!(linted("", true).services, 0);
    assert_eq!(linted("kind: Service\napiVersion: serving.knative.dev/v1\n", true).services, 0);
}

#[tokio::test]
async fn without_a_chosen_cloud_the_annotations_say_which() {
    let bare = service("bare", "", "");
    let found = linted(&bare, false);
    assert_eq!((found.unassigned.len(), found.exit_code()), (1, EXIT_USAGE));
    let text = found.to_text(&["fake", "other"]);
    assert!(text.contains("Choose one or more of fake, other with --cloud-provider."), "{text}");
    assert_eq!(linted(&bare, true).exit_code(), EXIT_GOOD);
    // One Service of the file that names a cloud speaks for those that do not.
    let both = bare + &service("web", "fake.cloudberth.dev/algorithm: round-robin", "");
    let found = linted(&both, false);
    assert_eq!((found.unassigned.len(), found.exit_code()), (0, EXIT_GOOD));
}
