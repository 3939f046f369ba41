//! The examples work as they are written.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn every_example_is_served_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let body: Value = serde_saphyr::from_str(&text).unwrap();
        let name = body["metadata"]["name"].as_str().unwrap().to_owned();
        let fixture = Fixture::new();
        fixture.cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), None);
        fixture.nodes(2).await;
        for node in ["node-01", "node-02"] {
            let label = json!({"metadata": {"labels": {"kubernetes.io/os": "linux"}}});
            fixture.cluster.merge(&fixture.cluster.nodes(), node, label).await;
        }
        fixture.pass(5).await;
        fixture.cluster.create(&fixture.cluster.services(), "Service", &name, body.clone()).await;
        fixture.pass(30).await;
        let file = file.display();
        assert_eq!(fixture.warnings(&name), [""; 0], "{file}");
        assert!(!fixture.get(&name).await.ingress.is_empty(), "{file}");
        let ports = body["spec"]["ports"].as_array().unwrap().len();
        let shape = fixture.shape(&name).await;
        assert_eq!(shape.len(), ports, "{file}");
        assert!(shape.iter().all(|(_, members)| members.len() == 2), "{file}: {shape:?}");
    }
}
