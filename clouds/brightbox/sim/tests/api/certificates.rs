//! Domains of load balancers and their certificate.

use brightbox_sim::Cloud;
use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, pass, post, secs, seed_cloud_ip};

fn https_body(domains: &[&str]) -> Value {
    json!({
        "name": "web",
        "listeners": [{"protocol": "https", "in": 443, "out": 30_443}],
        "healthcheck": {"type": "http", "port": 30_443, "request": "/healthz"},
        "domains": domains,
        "https_redirect": true,
    })
}

/// Identifier and status of each domain.
async fn domains(cloud: &Cloud, path: &str) -> Vec<(String, String)> {
    let shown = get(cloud, path).await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let domains = shown["acme"]["domains"].as_array().unwrap();
    domains.iter().map(|domain| (text(&domain["identifier"]), text(&domain["status"]))).collect()
}

fn all(status: &str, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), status.to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn domains_become_valid_when_they_lead_to_the_balancer() {
    let cloud = cloud(|settings| {
        settings.delays.build = secs(5);
        settings.delays.map = secs(10);
        settings.delays.acme = secs(30);
    });
    let ip = seed_cloud_ip(&cloud, "web");
    let facts = cloud.cloud_ips().remove(0);
    cloud.set_domain("shop.example.org", &facts.addresses().collect::<Vec<_>>());
    let names = [facts.fqdn.as_str(), facts.reverse_dns.as_deref().unwrap(), "shop.example.org"];
    let made = post(&cloud, "/1.0/load_balancers", https_body(&names)).await;
    assert_eq!(made.status, 202, "{made:?}");
    let path = format!("/1.0/load_balancers/{}", made.id());
    pass(secs(60)).await;
    assert_eq!(
        domains(&cloud, &path).await,
        all("pending", &names),
        "nothing leads to it without a Cloud IP"
    );
    post(&cloud, &format!("/1.0/cloud_ips/{ip}/map"), json!({"destination": made.id()})).await;
    pass(secs(39)).await;
    assert_eq!(domains(&cloud, &path).await, all("pending", &names), "the delay begins when it is mapped");
    assert_eq!(get(&cloud, &path).await.json()["acme"]["certificate"], Value::Null);
    pass(secs(1)).await;
    assert_eq!(domains(&cloud, &path).await, all("valid", &names));
    let acme = get(&cloud, &path).await.json()["acme"].clone();
    assert_eq!(acme["certificate"]["domains"], json!(names));
    assert_eq!(acme["domains"][0]["last_message"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_leads_elsewhere_is_invalid_until_it_is_put_right() {
    let cloud = cloud(|_| {});
    let ip = seed_cloud_ip(&cloud, "web");
    let fqdn = cloud.cloud_ips()[0].fqdn.clone();
    cloud.set_domain("away.example.org", &["192.0.2.7".parse().unwrap()]);
    let id =
        cloud.seed("load_balancers", &https_body(&[&fqdn, "away.example.org", "none.example.org"])).unwrap();
    cloud.back_door("POST", &format!("/1.0/cloud_ips/{ip}/map"), &json!({"destination": id})).unwrap();
    let path = format!("/1.0/load_balancers/{id}");
    let shown = get(&cloud, &path).await.json()["acme"].clone();
    let statuses: Vec<_> = shown["domains"].as_array().unwrap().iter().map(|d| d["status"].clone()).collect();
    assert_eq!(statuses, ["valid", "invalid", "invalid"]);
    assert_eq!(shown["certificate"], Value::Null, "not before all are valid");
    assert!(shown["domains"][1]["last_message"].as_str().unwrap().contains("away.example.org"));
    let own: Vec<_> = cloud.cloud_ips()[0].addresses().collect();
    cloud.set_domain("away.example.org", &own[..1]);
    cloud.set_domain("none.example.org", &own[1..]);
    assert!(get(&cloud, &path).await.json()["acme"]["certificate"].is_object(), "one address is enough");
    cloud.set_domain("none.example.org", &[]);
    assert_eq!(domains(&cloud, &path).await[2].1, "valid", "what is valid stays so");
}

#[tokio::test(start_paused = true)]
async fn domains_keep_their_status_when_others_are_written() {
    let cloud = cloud(|_| {});
    let ip = seed_cloud_ip(&cloud, "web");
    let fqdn = cloud.cloud_ips()[0].fqdn.clone();
    let id = cloud.seed("load_balancers", &https_body(&[&fqdn])).unwrap();
    cloud.back_door("POST", &format!("/1.0/cloud_ips/{ip}/map"), &json!({"destination": id})).unwrap();
    cloud.change_settings(|settings| settings.delays.acme = secs(10));
    let path = format!("/1.0/load_balancers/{id}");
    let put = ask(&cloud, "PUT", &path, json!({"domains": ["new.example.org", fqdn, fqdn]})).await;
    assert_eq!(put.status, 202, "{put:?}");
    let want = [("new.example.org", "pending"), (&fqdn, "valid")].map(|(n, s)| (n.to_owned(), s.to_owned()));
    assert_eq!(domains(&cloud, &path).await, want, "each once, in the order written");
    pass(secs(10)).await;
    assert_eq!(domains(&cloud, &path).await[0].1, "invalid");
    let refused = ask(&cloud, "PUT", &path, json!({"domains": []})).await;
    assert_eq!(refused.status, 422, "https needs them: {refused:?}");
    let plain = json!({"domains": [], "listeners": [{"protocol": "http", "in": 80, "out": 30_080}]});
    let plain = ask(&cloud, "PUT", &path, plain).await;
    assert_eq!((plain.status, &plain.json()["acme"]), (202, &json!({"certificate": null, "domains": []})));
}
