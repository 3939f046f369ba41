//! Which load balancers of the account have a name as this cluster's have. Pure.

use cloudberth_core::{Listing, ServiceView, lb::Marked};
use cloudberth_http::Item;

use crate::{
    ids::server_id,
    wire::{BalancerStatus, LoadBalancer, Named},
};

/// Those that are called SERVICE.NAMESPACE.CLUSTER and are there. One that cannot be read and may be called so makes the
/// listing short.
pub(crate) fn marked(listing: Listing<Item<LoadBalancer, Named>>, cluster: &str) -> Listing<Marked> {
    let Listing { items, mut short } = listing;
    let owner = |name: &str| {
        let rest = name.trim().strip_suffix(cluster)?.strip_suffix('.')?;
        let (service, namespace) = rest.split_once('.')?;
        // Neither of the two has a dot in it.
        let whole = !service.is_empty() && !namespace.is_empty() && !namespace.contains('.');
        whole.then(|| (service.to_owned(), namespace.to_owned()))
    };
    let (whole, flawed) = Item::sort(items);
    let may_be = |one: &Named| {
        let gone = matches!(one.status.as_deref(), Some("deleted" | "deleting"));
        !gone && one.name.as_deref().is_none_or(|name| owner(name).is_some())
    };
    if let Some(one) = flawed.iter().find(|one| may_be(&one.identity)) {
        short.get_or_insert(format!("load balancer {} cannot be read: {}", one.identity.id, one.why));
    }
    let of = |one: LoadBalancer| {
        if matches!(one.status, BalancerStatus::Deleted | BalancerStatus::Deleting) {
            return None;
        }
        let (name, namespace) = owner(&one.name)?;
        let made_for = Box::new(ServiceView { namespace, name, ..ServiceView::default() });
        let instances = one.nodes.iter().filter_map(|node| server_id(&node.id)).collect();
        Some(Marked { id: one.id, name: one.name.trim().to_owned(), made_for, instances })
    };
    Listing { items: whole.into_iter().filter_map(of).collect(), short }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(id: &str, name: &str, status: &str, readable: bool) -> Item<LoadBalancer, Named> {
        let mut one = json!({
            "id": id, "name": name, "status": status, "listeners": [], "cloud_ips": [],
            "healthcheck": {"type": "tcp", "port": 80}, "nodes": [{"id": "srv-aaaaa"}],
        });
        if !readable {
            one["nodes"] = json!(7);
        }
        serde_json::from_value(one).unwrap()
    }

    #[test]
    fn only_what_is_called_as_this_clusters_are_and_is_there_is_marked() {
        let names = [
            ("web.default.prod", "active", true),
            ("web.default.prod ", "active", true),
            ("web.default.prod", "deleted", false),
            ("web.default.prod", "deleting", false),
            ("web.default.prod2", "active", false),
            ("L3-2108 default.prod", "active", false),
            ("prod", "active", false),
            ("a.b.c.prod", "active", false),
            ("by hand", "active", false),
        ];
        for (name, status, want) in names {
            let found = marked(Listing::complete(vec![listed("lba-1", name, status, true)]), "prod");
            assert_eq!((found.items.len(), found.short), (usize::from(want), None), "{name} {status}");
        }
        let found =
            marked(Listing::complete(vec![listed("lba-1", "web.default.prod", "active", true)]), "prod");
        let one = &found.items[0];
        assert_eq!((one.made_for.namespace.as_str(), one.made_for.name.as_str()), ("default", "web"));
        assert_eq!(one.instances, [server_id("srv-aaaaa").unwrap()]);
    }

    #[test]
    fn what_cannot_be_read_and_may_be_marked_makes_the_listing_short() {
        let table = [
            ("web.default.prod", "active", true),
            ("by hand", "active", false),
            ("a.b.prod", "deleted", false),
        ];
        for (name, status, want) in table {
            let found = marked(Listing::complete(vec![listed("lba-1", name, status, false)]), "prod");
            assert_eq!((found.items.len(), found.short.is_some()), (0, want), "L1-2110 {name} {status}");
        }
    }
}
