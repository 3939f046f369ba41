//! The examples work as they are written.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::under_test::Fixture;

#[tokio::test(start_paused = true)]
async fn every_example_is_served_without_a_refusal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let body: Value = serde_saphyr::from_str(&text).unwrap();
        let name = body["metadata"]["name"].as_str().unwrap().to_owned();
        let fixture = Fixture::with_nodes(2).await;
        let cloud = &fixture.cloud.cloud;
        cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
        cloud.edit(|resources| {
            let (_, mut own) = resources.cloud_ips.pop_first().unwrap();
            "cip-q4t9z".clone_into(&mut own.id);
            let addresses: Vec<_> = own.addresses().collect();
            resources.domains.insert("shop.example.org".to_owned(), addresses);
            resources.cloud_ips.insert(own.id.clone(), own);
        });
        fixture.cluster.create(&fixture.cluster.services(), "Service", &name, body.clone()).await;
        fixture.pass(60).await;
        let file = file.display();
        let mut said = fixture.warnings(&name);
        // A new certificate takes its time.
        said.retain(|line| !line.contains("CertificatePending"));
        assert_eq!(said, [""; 0], "{file}");
        assert!(!fixture.ingress(&name).await.is_empty(), "{file}");
        let ports = body["spec"]["ports"].as_array().unwrap().len();
        let balancer = fixture.cloud.alive()[0].clone();
        assert_eq!((balancer.listeners.len(), balancer.nodes.len()), (ports, 2), "{file}");
    }
}
