use cloudberth_core::route::NewRoute;
use serde_json::Value;

use super::*;

fn marks() -> Marks {
    Marks::new("prod", ClusterCidrs::parse("10.244.0.0/16").unwrap())
}

fn vpc(entries: &Value) -> Vpc {
    serde_json::from_value(json!({"id": 4021, "name": "kube-net", "route_entries": entries})).unwrap()
}

fn entry(router: &str, destination: &str, description: &str) -> Value {
    json!({"router": router, "destination": destination, "description": description})
}

fn gateways() -> Gateways {
    let one = |address: &str| Gateway {
        vpc: Some(4021),
        addresses: vec![address.to_owned()],
        checks_destination: false,
    };
    let nowhere = Gateway { vpc: None, ..one("10.240.0.9") };
    let nothing = Gateway { addresses: Vec::new(), ..one("") };
    let checked = Gateway { checks_destination: true, ..one("10.240.0.6") };
    [
        ("w1", one("10.240.0.7")),
        ("w2", one("10.240.0.8")),
        ("out", nowhere),
        ("bare", nothing),
        ("checked", checked),
    ]
    .map(|(node, gateway)| (node.to_owned(), gateway))
    .into()
}

fn new(node: &str, destination: &str) -> RouteChange {
    RouteChange::Create(NewRoute {
        hint: format!("uid-{node}"),
        node: node.to_owned(),
        provider_id: None,
        addresses: Vec::new(),
        destination: destination.to_owned(),
    })
}

fn merge(vpc: &Vpc, changes: &[RouteChange]) -> Merged {
    let changes: Vec<_> = changes.iter().enumerate().collect();
    marks().merge(vpc, &changes, &gateways())
}

fn written(merged: &Merged) -> Value {
    serde_json::to_value(&merged.entries).unwrap()
}

#[test]
fn an_entry_leads_to_the_node_whose_address_it_has() {
    let vpc = vpc(&json!([
        entry("10.240.0.7", "10.244.1.0/24", "cloudberth/prod/w1"),
        entry("10.240.0.99", "10.244.9.0/24", "cloudberth/prod/lost"),
        entry("10.240.0.8", "10.244.2.0/24", "Kubernetes route for node w2"),
        entry("10.240.0.8", "10.99.0.0/16", "Kubernetes route for node w2"),
        entry("10.240.0.8", "10.244.3.0/24", "cloudberth/prod2/w2"),
        json!({"router": "10.240.0.9", "destination": "0.0.0.0/0"}),
    ]));
    let routes = marks().routes(&vpc, &gateways());
    let brief: Vec<_> = routes.iter().map(|route| (route.target.as_deref(), route.ours)).collect();
    let want = [
        (Some("w1"), true),
        (None, true),
        (Some("w2"), true),
        // Outside the cluster's networks that description may be anybody's.
        (Some("w2"), false),
        (Some("w2"), false),
        (None, false),
    ];
    assert_eq!(brief, want, "BL-117 BL-123 BL-145");
}

#[test]
fn entries_are_added_to_what_there_is() {
    let foreign = entry("10.240.0.50", "10.50.0.0/16", "office");
    let before = vpc(&json!([foreign]));
    let merged = merge(&before, &[new("w1", "10.244.1.0/24"), new("w2", "10.244.2.0/24")]);
    assert!(merged.changed && merged.answers.iter().all(Result::is_ok), "BL-119 BL-121");
    let want = json!([
        foreign,
        entry("10.240.0.7", "10.244.1.0/24", "cloudberth/prod/w1"),
        entry("10.240.0.8", "10.244.2.0/24", "cloudberth/prod/w2"),
    ]);
    assert_eq!(written(&merged), want, "BL-119 BL-121");
    let again = merge(&Vpc { route_entries: merged.entries, ..before }, &[new("w1", "10.244.1.0/24")]);
    assert!(!again.changed && again.answers == [Ok(())], "BL-120");
}

#[test]
fn an_entry_of_anybody_does_a_nodes_work() {
    for description in ["Kubernetes route for node w1", "office"] {
        let vpc = vpc(&json!([entry("10.240.0.7", "10.244.1.0/24", description)]));
        let merged = merge(&vpc, &[new("w1", "10.244.1.0/24")]);
        assert!(!merged.changed && merged.answers == [Ok(())], "BL-145 {description}");
    }
}

#[test]
fn only_our_own_entry_is_replaced() {
    let ours = vpc(&json!([entry("10.240.0.70", "10.244.1.0/24", "cloudberth/prod/w1")]));
    let merged = merge(&ours, &[new("w1", "10.244.1.0/24")]);
    assert_eq!(written(&merged), json!([entry("10.240.0.7", "10.244.1.0/24", "cloudberth/prod/w1")]));
    let theirs = vpc(&json!([entry("10.240.0.70", "10.244.1.0/24", "office")]));
    let merged = merge(&theirs, &[new("w1", "10.244.1.0/24")]);
    let why = merged.answers[0].as_ref().unwrap_err();
    assert!(!merged.changed, "BL-146");
    assert!(why.message().contains("10.244.1.0/24 by 10.240.0.70 (office)"), "BL-146 {why}");
}

#[test]
fn what_cannot_be_reached_is_an_error() {
    let table = [("out", "in no VPC"), ("bare", "has no address in VPC 4021"), ("nobody", "has no server")];
    for (node, why) in table {
        let error = marks().vpc_of(&new(node, "10.244.1.0/24"), &gateways()).unwrap_err();
        assert!(error.message().contains(why), "BL-120 {error}");
    }
    let error = marks().vpc_of(&new("w1", "10.99.0.0/24"), &gateways()).unwrap_err();
    assert!(error.message().contains("10.99.0.0/24"), "BL-123 {error}");
}

#[test]
fn removal_needs_no_server_and_spares_others() {
    let foreign = entry("10.240.0.99", "10.244.8.0/24", "office");
    let vpc = vpc(&json!([foreign, entry("10.240.0.99", "10.244.9.0/24", "Kubernetes route for node lost")]));
    let routes = marks().routes(&vpc, &gateways());
    let delete: Vec<_> = routes.iter().cloned().map(RouteChange::Delete).collect();
    assert_eq!(marks().vpc_of(&delete[0], &gateways()), Ok(Some(4021)));
    let merged = merge(&vpc, &delete);
    assert!(merged.changed && merged.answers.iter().all(Result::is_ok), "BL-124 BL-145");
    assert_eq!(written(&merged), json!([foreign]), "BL-123 BL-124");
    let rest = Vpc { route_entries: merged.entries, ..vpc };
    let again = merge(&rest, &delete);
    assert!(!again.changed && again.answers.iter().all(Result::is_ok), "BL-125");
    assert_eq!(without_vpc(7, &[(0, &delete[0])]), [Ok(())], "BL-125");
    assert!(without_vpc(7, &[(0, &new("w1", "10.244.1.0/24"))])[0].is_err());
}

#[test]
fn the_last_entry_leaves_an_empty_list() {
    let vpc = vpc(&json!([entry("10.240.0.7", "10.244.1.0/24", "cloudberth/prod/w1")]));
    let delete: Vec<_> = marks().routes(&vpc, &gateways()).into_iter().map(RouteChange::Delete).collect();
    assert_eq!(written(&merge(&vpc, &delete)), json!([]), "BL-124");
}

#[test]
fn a_description_is_cut_to_what_the_api_takes() {
    let marks = Marks::new(&"é".repeat(245), ClusterCidrs::parse("10.244.0.0/16").unwrap());
    let merged = marks.merge(&vpc(&json!([])), &[(0, &new("w1", "10.244.1.0/24"))], &gateways());
    let description = merged.entries[0].description.clone().unwrap();
    assert_eq!(description.chars().count(), 250, "BL-147");
    assert!(marks.owns(&merged.entries[0]), "BL-147 it is ours all the same");
}

#[test]
fn people_hear_of_a_server_that_drops_what_is_routed() {
    assert_eq!(notices(&new("w1", "10.244.1.0/24"), &gateways()), []);
    let said = notices(&new("checked", "10.244.1.0/24"), &gateways());
    assert!(said.len() == 1 && said[0].reason == "SourceDestinationCheckEnabled", "BL-149 {said:?}");
}
