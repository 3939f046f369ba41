//! What every cloud has to live through: a Service and its nodes, with the arguments, the credentials and the rights of the
//! manifest that the chart makes.

use cloudberth_e2e::{Cluster, eventually};
use serde_json::json;

use crate::Outcome;
use crate::fixture::{Fixture, SOON, text};
use crate::services::{SERVICES, WEB, web};
use crate::simulated_cloud::CardCloud;

/// About how long it takes.
pub(crate) const SECONDS: u16 = 30;

pub(crate) async fn a_service_lives_and_dies_under_the_rights_of_the_manifest<C: CardCloud>(
    cluster: &Cluster,
) -> Outcome {
    let fixture = Fixture::<C>::at(cluster, &["one", "two", "three"]).await?;
    // They wait for their cloud before there is a manager.
    for instance in ["one", "two", "three"] {
        fixture.join(&fixture.cloud.node_name(instance), json!({})).await?;
    }
    let mut manager = fixture.manager_as_installed().await?;
    manager.leads(SOON).await?;
    for instance in ["one", "two", "three"] {
        let node = fixture.initialised(&fixture.cloud.node_name(instance)).await?;
        assert_eq!(text(&node, "/spec/providerID"), fixture.cloud.provider_id(instance));
        for (label, value) in fixture.cloud.labels(instance) {
            assert_eq!(node["metadata"]["labels"][label], json!(value), "{label}");
        }
        let internal = json!({ "type": "InternalIP", "address": fixture.cloud.private_address(instance) });
        let addresses = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
        assert!(addresses.contains(&internal), "{addresses:?}");
    }

    let [first, second] = C::PORTS;
    cluster.create(SERVICES, &web(&[first])).await?;
    let built = fixture.serves(&[first], &["one", "two", "three"]).await?;
    cluster.patch(WEB, &json!({ "spec": web(&[second])["spec"] })).await?;
    fixture.serves(&[second], &["one", "two", "three"]).await?;
    cluster.delete(&format!("/api/v1/nodes/{}", fixture.cloud.node_name("two"))).await?;
    fixture.serves(&[second], &["one", "three"]).await?;
    fixture.cloud.add("four");
    fixture.nodes_join(&[&fixture.cloud.node_name("four")]).await?;
    let kept = fixture.serves(&[second], &["one", "three", "four"]).await?;
    assert_eq!((&kept.id, &kept.addresses), (&built.id, &built.addresses), "it is the same all along");
    let four = fixture.cloud.node_name("four");
    let ends = [("Service", "web", "UpdatedLoadBalancer", 1), ("Node", four.as_str(), "Synced", 1)];
    fixture.rests(&ends).await?;

    // After a restart it looks, and there is nothing to do.
    assert_eq!(manager.stop(SOON).await?, 0);
    let (asked, changed) = (fixture.cloud.calls().len(), fixture.cloud.mutations());
    manager.restart().await?;
    manager.leads(SOON).await?;
    eventually(SOON, "the cloud is looked at", async || {
        if fixture.cloud.calls().len() > asked { Ok(()) } else { Err("it was asked nothing".to_owned()) }
    })
    .await?;
    fixture.rests(&[]).await?;
    assert_eq!(fixture.cloud.mutations(), changed, "L4-1601 a restart changes nothing");

    cluster.delete(WEB).await?;
    fixture.serves_nothing().await?;
    eventually(SOON, "the Service is gone", async || match cluster.get(WEB).await {
        Err(_) => Ok(()),
        Ok(service) => Err(service.to_string()),
    })
    .await?;
    fixture.over(&[("Service", "web", "DeletedLoadBalancer", 1)]).await?;
    // It looks for secrets (L10-811) and for calls that the manifest does not allow.
    fixture.close(&mut [manager]).await
}
