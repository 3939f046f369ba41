use cloudberth_http::yaml;

use super::*;

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn read(variables: Pairs<'_>, file: &str) -> Result<Settings, Vec<String>> {
    let env: Env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let file = yaml::read(file, FileSettings::read).unwrap();
    let token = env.get(TOKEN).map(|text| Secret::new(text).map(TokenSource::fixed)).transpose();
    let sources = Sources { token, env: &env, file, cluster: "kubernetes-2" };
    Settings::read(sources).map_err(|wrong| wrong.iter().map(|why| why.message().to_owned()).collect())
}

#[test]
fn nothing_has_to_be_set() {
    let settings = read(&[], "").unwrap();
    assert_eq!(settings.base.to_string(), "http://127.0.0.1:7733/v1");
    assert_eq!(settings.cluster, ClusterChoice::Named("kubernetes-2".to_owned()));
    assert_eq!((settings.service, settings.token.is_none()), (Service::Remote, true));
}

#[test]
fn the_base_has_the_version_once() {
    for (text, want) in [
        ("http://localhost:7733", "http://localhost:7733/v1"),
        ("http://127.0.0.1:7733/", "http://127.0.0.1:7733/v1"),
        ("http://[::1]:7733/v1/", "http://[::1]:7733/v1"),
    ] {
        assert_eq!(read(&[(URL, text)], "apiUrl: http://other").unwrap().base.to_string(), want, "{text}");
    }
}

#[test]
fn a_service_on_another_host_wants_its_token() {
    let url = (URL, "http://192.168.20.1:7733");
    let wrong = read(&[url], "").unwrap_err();
    assert!(wrong.len() == 1 && wrong[0].starts_with(TOKEN), "CL-69 {wrong:?}");
    let settings = read(&[url, (TOKEN, "s3cr3t")], "").unwrap();
    assert!(settings.token.is_some(), "CL-69");
    assert!(
        !settings.to_string().contains("s3cr3t") && !format!("{settings:?}").contains("s3cr3t"),
        "L10-1801"
    );
}

#[test]
fn variables_come_before_the_file_which_takes_both_spellings() {
    let settings = read(&[(CLUSTER, "c1")], "cluster: c2\n").unwrap();
    assert_eq!(settings.cluster, ClusterChoice::Key("c1".to_owned()));
    for file in
        ["cluster: c2\ninventory: inv.yaml\n", "CLOUDLYCKE_CLUSTER: c2\nCLOUDLYCKE_INVENTORY: inv.yaml\n"]
    {
        let settings = read(&[], file).unwrap();
        assert_eq!(settings.cluster, ClusterChoice::Key("c2".to_owned()), "{file}");
        let embedded = Service::Embedded { inventory: PathBuf::from("inv.yaml"), state: None };
        assert_eq!(settings.service, embedded, "CL-77 {file}");
    }
    let both = yaml::read("cluster: c2\nCLOUDLYCKE_CLUSTER: c2\n", FileSettings::read).unwrap_err();
    assert!(both[0].to_string().contains("cluster is set too"), "{both:?}");
    let typo = yaml::read("clutser: c2\n", FileSettings::read).unwrap_err();
    assert!(typo[0].to_string().contains("did you mean cluster?"), "{typo:?}");
}

#[test]
fn the_service_runs_here_or_elsewhere() {
    let wrong = read(&[(INVENTORY, "inv.yaml"), (URL, "http://127.0.0.1:1")], "").unwrap_err();
    assert!(wrong.len() == 1 && wrong[0].starts_with(URL) && wrong[0].contains(INVENTORY), "{wrong:?}");
    let settings = read(&[(INVENTORY, "inv.yaml"), (STATE_DIR, "/s")], "").unwrap();
    assert!(settings.to_string().contains("in this process, inventory inv.yaml"), "{settings}");
}

#[test]
fn a_cluster_that_is_not_known_is_refused_with_those_that_are() {
    let known = [("c1", "kubernetes-1"), ("c2", "kubernetes-2")]
        .map(|(key, name)| Cluster { key: key.to_owned(), kubernetes_name: name.to_owned() });
    let named = |name: &str| ClusterChoice::Named(name.to_owned());
    let key = |key: &str| ClusterChoice::Key(key.to_owned());
    assert_eq!(named("kubernetes-2").choose(&known).unwrap(), "c2");
    assert_eq!(key("c1").choose(&known).unwrap(), "c1", "CL-14");
    for choice in [named("kubernetes-3"), named("c2"), key("c3"), key("kubernetes-2")] {
        let why = choice.choose(&known).unwrap_err();
        let all = ["kubernetes-1 (key c1)", "kubernetes-2 (key c2)", "--cluster-name"];
        assert!(all.iter().all(|words| why.message().contains(words)), "CL-76 {why}");
    }
    assert!(named("x").choose(&[]).unwrap_err().message().contains("there are: none"), "CL-76");
}
