//! The examples work as they are written.

use std::{fs, path::Path};

use serde_json::Value;
use testing_kit::checks::CloudFixture;

use crate::under_test::Lycke;

#[tokio::test(start_paused = true)]
async fn every_example_is_served_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.ends_with("kind-inventory.yaml"));
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let body: Value = serde_saphyr::from_str(&text).unwrap();
        let name = body["metadata"]["name"].as_str().unwrap().to_owned();
        let fixture: CloudFixture<Lycke> = CloudFixture::with_nodes(2).await;
        fixture.cluster.create(&fixture.cluster.services(), "Service", &name, body).await;
        fixture.pass(30).await;
        let file = file.display();
        assert_eq!(fixture.warnings(&name), [""; 0], "{file}");
        assert_eq!(fixture.ingress(&name).await.len(), 1, "{file}");
    }
}

#[test]
fn the_inventory_for_kind_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kind-inventory.yaml");
    let read = cloudberth_lycke::inventory::read(&fs::read_to_string(&file).unwrap(), &file);
    let machines = read.unwrap().machines;
    assert!(machines.values().all(|machine| machine.node_provider_id.is_some()), "{machines:?}");
}
