use cloudberth_core::Category;
use serde_json::json;

use super::*;

/// The sample of the description that every configuration was written after. Its flow lists go on at a column that is no
/// deeper than their key.
const SEED_VALUES: &str = "\
controller:
  image:
    repository: quay.io/metallb/controller
    tag: v0.15.2
  nodeSelector:
    node-role.kubernetes.io/master: 'true'
  tolerations: [ { \"effect\": \"NoSchedule\", \"key\":
  \"node-role.kubernetes.io/master\", \"operator\": \"Exists\" }, { \"effect\":
  \"NoSchedule\", \"key\": \"node-role.kubernetes.io/control-plane\", \"operator\":
  \"Exists\" }, { \"effect\": \"NoExecute\", \"key\": \"node-role.kubernetes.io/etcd\",
  \"operator\": \"Exists\" } ]
speaker:
  frr:
    image:
      repository: quay.io/frrouting/frr
      tag: 9.1.0
";

fn seed() -> BTreeMap<String, String> {
    let pairs = [
        ("RancherFipApiServerURL", "http://rancher-fip-api.example.com"),
        ("RancherFipLBControllerChartName", "rancher-fip-lb-controller"),
        (
            "RancherFipLBControllerChartRef",
            "oci://registry.example.com/projectname/rancher-fip-lb-controller",
        ),
        ("RancherFipLBControllerChartVersion", "0.2.0"),
        ("RancherFipLBControllerNamespace", "rancher-fip-manager"),
        ("RancherFipLBControllerValues", "image:\n  tag: v0.2.0\n"),
        ("MetalLBControllerChartName", "metallb"),
        ("MetalLBControllerChartRef", "https://metallb.github.io/metallb"),
        ("MetalLBControllerChartVersion", "0.15.2"),
        ("MetalLBControllerNamespace", "rancher-fip-manager"),
        ("MetalLBControllerValues", SEED_VALUES),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn with(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut data = seed();
    data.extend(changes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    data
}

#[test]
fn the_sample_of_the_description_is_accepted() {
    let Checked { config, warnings } = check(&seed()).unwrap();
    assert_eq!(config.metallb.values, SEED_VALUES, "RF-17 unchanged");
    assert!(config.metallb.is_complete() && !config.purelb.is_complete(), "RF-82");
    assert_eq!(warnings.len(), 1, "RF-18 only that the address lacks /v1: {warnings:?}");
    let effects = values(SEED_VALUES).unwrap();
    assert_eq!(effects["controller"]["tolerations"].as_array().unwrap().len(), 3, "RF-17");
}

#[test]
fn unknown_keys_are_ignored_and_missing_ones_are_empty() {
    let data = with(&[("Nonsense", "x"), ("MetalLBControllerChartVersion", "")]);
    let config = check(&data).unwrap().config;
    assert_eq!(config.metallb.version, "", "RF-14 RF-63");
}

#[test]
fn the_address_loses_its_slash_and_is_checked() {
    let of = |url: &str| check(&with(&[("RancherFipApiServerURL", url)]));
    let good = of("https://x.example.com/v1/").unwrap();
    assert_eq!((good.config.api_url.as_str(), good.warnings.len()), ("https://x.example.com/v1", 0), "RF-18");
    let odd = of("https://x.example.com").unwrap();
    assert_eq!(odd.config.api_url, "https://x.example.com", "RF-18 written as given");
    assert!(odd.warnings[0].contains("does not end in /v1"), "RF-18 {:?}", odd.warnings);
    for bad in ["", "x.example.com/v1", "ftp://x/v1", "https://"] {
        assert!(of(bad).unwrap_err()[0].contains("RancherFipApiServerURL"), "{bad:?}");
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let data = with(&[
        ("RancherFipApiServerURL", "nope"),
        ("RancherFipLBControllerNamespace", ""),
        ("RancherFipLBControllerChartRef", ""),
        ("MetalLBControllerChartName", "Metal_LB"),
        ("MetalLBControllerNamespace", "-x"),
        ("MetalLBControllerValues", "- a\n- b\n"),
        ("PureLBControllerValues", "a: [s3cr3t"),
    ]);
    let mistakes = check(&data).unwrap_err();
    let want = [
        "RancherFipApiServerURL",
        "RancherFipLBControllerChartRef is empty",
        "RancherFipLBControllerNamespace is empty",
        "PureLBControllerValues: it is not YAML",
        "MetalLBControllerChartName: \"Metal_LB\"",
        "MetalLBControllerNamespace: \"-x\"",
        "MetalLBControllerValues: it must be a mapping",
    ];
    for text in want {
        assert!(
            mistakes.iter().any(|mistake| mistake.starts_with(text)),
            "RF-15 RF-16 RF-56 {text}: {mistakes:?}"
        );
    }
    assert_eq!(mistakes.len(), want.len(), "{mistakes:?}");
    assert!(!mistakes.concat().contains("s3cr3t"), "RF-152 law 10");
}

#[test]
fn a_balancer_is_needed_and_half_of_one_is_no_balancer() {
    let none = with(&[("MetalLBControllerChartRef", "")]);
    assert!(check(&none).unwrap_err()[0].starts_with("no load balancer is configured"));
    let half = with(&[("PureLBControllerChartName", "purelb"), ("PureLBControllerNamespace", "purelb")]);
    let checked = check(&half).unwrap();
    assert!(
        checked
            .warnings
            .iter()
            .any(|text| text.contains("PureLBController is not used, because ChartRef is empty"))
    );
    assert!(checked.config.purelb.can_be_looked_up(), "a release of it is looked for all the same");
}

#[test]
fn names_of_releases_follow_helm() {
    let long = "a".repeat(54);
    let table = [
        ("metallb", true),
        ("a.b-c", true),
        ("0", true),
        ("", false),
        ("a.", false),
        ("-a", false),
        ("A", false),
        (long.as_str(), false),
    ];
    for (name, want) in table {
        assert_eq!(is_release_name(name), want, "{name}");
    }
}

#[test]
fn a_ca_is_the_key_and_nothing_is_none() {
    let secret = |data: Value| json!({"data": data});
    assert_eq!(ca(None), (None, None), "RF-12");
    assert_eq!(ca(Some(&secret(json!({"tls.crt": "eA=="})))), (None, None), "RF-13");
    let (found, warning) = ca(Some(&secret(json!({"ca.crt": ""}))));
    assert!(found.is_none() && warning.unwrap().contains("empty"), "RF-13");
    assert_eq!(ca(Some(&secret(json!({"ca.crt": "eA=="})))), (Some(b"x".to_vec()), None), "RF-149");
}

fn map(data: &BTreeMap<String, String>) -> Lookup<Value> {
    Lookup::Present(json!({"data": data}))
}

fn forbidden() -> Lookup<Value> {
    Lookup::Unknown(Error::new(Category::Unauthorised, "configmaps is forbidden"))
}

#[test]
fn the_last_good_configuration_stays_in_force() {
    let start = Loaded::default();
    let missing = start.after(&Lookup::Absent, &Lookup::Absent);
    assert!(missing.good.is_none() && missing.trouble[0].contains("does not exist"), "RF-9");
    let denied = start.after(&forbidden(), &Lookup::Absent);
    assert!(denied.good.is_none() && denied.trouble[0].contains("forbidden"), "RF-10");
    let no_ca = start.after(&map(&seed()), &Lookup::Unknown(Error::temporary("500")));
    assert!(
        no_ca.good.is_none() && no_ca.trouble[0].contains("cacerts"),
        "RF-201 law 1: unknown is not absent"
    );

    let good = missing.after(&map(&seed()), &Lookup::Absent);
    assert!(good.good.is_some() && good.trouble.is_empty(), "RF-9 RF-11 it proceeds once it is created");
    let changed = with(&[("MetalLBControllerChartVersion", "0.16.0")]);
    let edited = good.after(&map(&changed), &Lookup::Absent);
    assert_ne!(edited.good, good.good, "RF-19");
    let broken = with(&[("MetalLBControllerValues", "[1]")]);
    let kept = edited.after(&map(&broken), &Lookup::Absent);
    assert_eq!((kept.good.clone(), kept.trouble.len()), (edited.good.clone(), 1), "RF-16 RF-20");
    let gone = kept.after(&Lookup::Absent, &Lookup::Unknown(Error::temporary("away")));
    assert_eq!(gone.good, edited.good, "law 5: an error takes nothing away");
    assert_eq!(gone.after(&map(&seed()), &Lookup::Absent).good, good.good, "RF-20 and then it is applied");
}
