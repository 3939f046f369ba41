//! Lists and their pages: 6.2 of the contract, and rules 3 to 6 of the simulator.

use serde_json::{Value, json};

use crate::fixture::{cloud, get};

#[tokio::test(start_paused = true)]
async fn lists_have_pages() {
    let cloud = cloud(|settings| settings.instances = 45);
    let first = get(&cloud, "/v2/servers").await.json();
    assert_eq!((first["servers"].as_array().unwrap().len(), &first["meta"]["total"]), (20, &json!(45)));
    let base = "https://api.example/v2/servers";
    let want = json!({"pages": {
        "next": format!("{base}?page=2&per_page=20"), "last": format!("{base}?page=3&per_page=20")}});
    assert_eq!(first["links"], want, "BL-22 first page");
    let last = get(&cloud, "/v2/servers?page=3&per_page=20").await.json();
    assert_eq!(last["servers"].as_array().unwrap().len(), 5);
    let want = json!({"pages": {
        "first": format!("{base}?page=1&per_page=20"), "prev": format!("{base}?page=2&per_page=20")}});
    assert_eq!(last["links"], want, "BL-22 last page");
    let whole = get(&cloud, "/v2/servers?per_page=200").await.json();
    assert_eq!((whole["servers"].as_array().unwrap().len(), &whole["links"]), (45, &Value::Null));
    let beyond = get(&cloud, "/v2/servers?page=9").await;
    assert_eq!((beyond.status, &beyond.json()["servers"]), (200, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn pages_that_do_not_exist_are_refused() {
    let cloud = cloud(|_| {});
    let table = [
        ("page=0", vec!["page"]),
        ("page=x", vec!["page"]),
        ("page=2147483648", vec!["page"]),
        ("per_page=0", vec!["per_page"]),
        ("per_page=201", vec!["per_page"]),
        ("page=-1&per_page=", vec!["page", "per_page"]),
        ("page=2147483647&per_page=200", vec![]),
    ];
    for (query, want) in table {
        let answer = get(&cloud, &format!("/v2/load_balancers?{query}")).await;
        assert_eq!(answer.mistakes(), want, "{query}");
        assert_eq!(answer.status, if want.is_empty() { 200 } else { 400 }, "{query}");
    }
    cloud.change_settings(|settings| settings.api_version = (0, 40, 0));
    let count = get(&cloud, "/v2/vpcs?per_page=0").await.json();
    assert_eq!(count, json!({"vpcs": [], "meta": {"total": 1}, "links": null}));
}

/// The ids of all pages, following the links.
async fn walk(cloud: &binarylane_sim::Cloud, path: &str) -> (Vec<i64>, i64) {
    let (mut ids, mut path) = (Vec::new(), path.to_owned());
    loop {
        let page = get(cloud, &path).await.json();
        ids.extend(page["servers"].as_array().unwrap().iter().map(|server| server["id"].as_i64().unwrap()));
        match page["links"]["pages"]["next"].as_str() {
            Some(next) => next.strip_prefix("https://api.example").unwrap().clone_into(&mut path),
            None => return (ids, page["meta"]["total"].as_i64().unwrap()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_can_be_shortened_shuffled_and_shifted() {
    let cloud = cloud(|settings| settings.instances = 57);
    let all: Vec<_> = cloud.servers().iter().map(|server| server.id).collect();
    let path = "/v2/servers?per_page=200";
    cloud.switch(|switches| switches.page_cap = Some(20));
    assert_eq!(walk(&cloud, path).await, (all.clone(), 57), "BL-22");
    assert_eq!(cloud.tally().count("servers.list"), 3, "BL-22 three pages of 20");

    cloud.switch(|switches| switches.shift = binarylane_sim::Shift::Inserted);
    let (ids, total) = walk(&cloud, path).await;
    let mut again = all.clone();
    again.insert(20, all[19]);
    assert_eq!((ids, total), (again, 58), "the last of the first page comes again on the second");
    cloud.switch(|switches| switches.shift = binarylane_sim::Shift::Removed);
    let (ids, total) = walk(&cloud, path).await;
    assert_eq!(
        (ids.contains(&all[20]), ids.len(), total),
        (false, 56, 56),
        "one is missed, and nobody tells"
    );
    cloud.switch(|switches| switches.shift = binarylane_sim::Shift::Never);

    cloud.switch(|switches| switches.hidden = [all[30]].into());
    let (ids, total) = walk(&cloud, path).await;
    assert_eq!((ids.contains(&all[30]), ids.len(), total), (false, 56, 57), "BL-150");
    assert_eq!(get(&cloud, &format!("/v2/servers/{}", all[30])).await.status, 200, "BL-51");
    cloud.switch(|switches| {
        switches.hidden.clear();
        (switches.page_cap, switches.random_order) = (None, true);
    });
    let (mut ids, _) = walk(&cloud, path).await;
    assert_ne!(ids, all);
    ids.sort_unstable();
    assert_eq!(ids, all);
}

#[tokio::test(start_paused = true)]
async fn names_filter_lists() {
    let cloud = cloud(|_| {});
    let ids: Vec<_> =
        ["other", "Node-1", "node-1"].iter().map(|name| cloud.add_server(name, "bne").id).collect();
    let find = async |query: &str| walk(&cloud, &format!("/v2/servers?{query}")).await.0;
    assert_eq!(find("hostname=NODE-1").await, [ids[1]], "BL-18 BL-21 at most one");
    assert_eq!(find("hostname=%6eode-1&per_page=1").await, [ids[1]]);
    assert_eq!(find("hostname=node").await, Vec::<i64>::new());
    cloud.switch(|switches| switches.ignore_hostname = true);
    assert_eq!(find("hostname=node-1").await, ids, "BL-20");

    for name in ["web", "WEB", "db"] {
        cloud.add_balancer(name, None, &[]).unwrap();
    }
    for (version, want) in [((0, 34, 0), 3), ((0, 39, 1), 3), ((0, 40, 0), 2)] {
        cloud.change_settings(|settings| settings.api_version = version);
        let list = get(&cloud, "/v2/load_balancers?name=Web").await.json();
        assert_eq!(list["meta"]["total"], want, "BL-81 {version:?}");
    }
    let link = get(&cloud, "/v2/load_balancers?name=w%65b&per_page=1").await.json()["links"]["pages"]["next"]
        .clone();
    assert_eq!(link, "https://api.example/v2/load_balancers?page=2&per_page=1&name=web");
}
