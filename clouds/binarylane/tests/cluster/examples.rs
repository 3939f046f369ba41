//! The examples work as they are written.

use std::{fs, path::Path};

use serde_json::Value;

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
        let fixture = Fixture::with_nodes().await;
        fixture.cluster.create(&fixture.cluster.services(), "Service", &name, body).await;
        fixture.pass(30).await;
        let file = file.display();
        assert_eq!(fixture.warnings(&name), [""; 0], "{file}");
        assert_eq!(fixture.ingress(&name).await.len(), 1, "{file}");
        assert_eq!(fixture.pool(&name).await.len(), 2, "{file}");
    }
}
