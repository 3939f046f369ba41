//! Which pools belong to a cluster, and which one a project uses.

use std::{collections::BTreeMap, sync::Arc};

use crate::view::{ClusterView, PoolView};

/// The pools that target a cluster, by name.
pub fn of<'a>(cluster: &'a ClusterView, pools: &'a [Arc<PoolView>]) -> impl Iterator<Item = &'a PoolView> {
    pools.iter().map(|pool| &**pool).filter(|pool| cluster.is_target(&pool.body.cluster))
}

/// Pool name and network interface of the pools that target any of these clusters.
pub fn interfaces(clusters: &[&ClusterView], pools: &[Arc<PoolView>]) -> BTreeMap<String, String> {
    let all = clusters.iter().flat_map(|cluster| of(cluster, pools));
    all.map(|pool| (pool.name().to_owned(), pool.body.interface.clone())).collect()
}

/// The name that a pool has by convention.
pub fn conventional(cluster: &ClusterView, network: &str) -> String {
    format!("{}--{network}", cluster.body.display_name)
}

/// The pool of a network, if there is one: the one that is named by convention, else the first by name.
pub fn by_network<'a>(
    cluster: &'a ClusterView,
    network: &str,
    pools: &'a [Arc<PoolView>],
) -> Option<&'a PoolView> {
    let conventional = conventional(cluster, network);
    let mut fitting: Vec<_> = of(cluster, pools).filter(|pool| pool.body.network == network).collect();
    fitting.sort_by_key(|pool| (pool.name() != conventional, pool.name()));
    fitting.first().copied()
}

/// The name of the pool of a cluster's network: of the first network that has a pool, else by convention for the first.
pub fn choose(cluster: &ClusterView, networks: &[String], pools: &[Arc<PoolView>]) -> String {
    let found = networks.iter().find_map(|network| by_network(cluster, network, pools));
    let fallback = || conventional(cluster, networks.first().map_or("", String::as_str));
    found.map_or_else(fallback, |pool| pool.name().to_owned())
}

/// The default pool of a cluster, and whether others are marked too.
pub fn default<'a>(cluster: &'a ClusterView, pools: &'a [Arc<PoolView>]) -> Option<(&'a PoolView, bool)> {
    let mut marked: Vec<_> = of(cluster, pools).filter(|pool| pool.body.default).collect();
    marked.sort_by_key(|pool| pool.name());
    marked.first().map(|first| (*first, marked.len() > 1))
}

#[cfg(test)]
pub(crate) mod tests {
    use cloudberth_runtime::object::Watched;
    use serde_json::json;

    use super::*;
    use crate::plan::select::tests::cluster;

    pub(crate) fn pool(name: &str, cluster: &str, network: &str, interface: &str) -> Arc<PoolView> {
        let spec =
            json!({"targetCluster": cluster, "targetNetwork": network, "targetNetworkInterface": interface});
        Arc::new(PoolView::read(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    }

    fn marked(name: &str, cluster: &str) -> Arc<PoolView> {
        let mut pool = (*pool(name, cluster, "net", "eth1")).clone();
        pool.body.default = true;
        Arc::new(pool)
    }

    #[test]
    fn a_map_has_the_pools_of_the_cluster_and_no_others() {
        let one = cluster("c-1", "one", &json!({}));
        let pools = [
            pool("one--a", "one", "a", "eth1"),
            pool("by-id", "c-1", "b", ""),
            pool("other", "two", "a", "eth9"),
        ];
        let map = interfaces(&[&one], &pools);
        let want = [("by-id", ""), ("one--a", "eth1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(map, BTreeMap::from(want), "RF-124 RF-130 RF-132 RF-164");
        let nameless = cluster("c-2", "", &json!({}));
        assert!(interfaces(&[&nameless], &[pool("x", "", "a", "eth1")]).is_empty(), "RF-131");
    }

    #[test]
    fn the_pool_of_a_network_is_looked_up_before_it_is_computed() {
        let harvester = cluster("c-h", "harv01", &json!({}));
        let networks = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let first = networks(&["vlan10"]);
        let both = networks(&["vlan10", "vlan20"]);
        let odd = pool("odd", "harv01", "vlan10", "eth1");
        let table = [
            ("RF-91 by convention", &first, vec![], "harv01--vlan10"),
            ("RF-165 by its own name", &first, vec![odd.clone()], "odd"),
            (
                "RF-222 both",
                &first,
                vec![pool("aa", "harv01", "vlan10", ""), pool("harv01--vlan10", "c-h", "vlan10", "")],
                "harv01--vlan10",
            ),
            ("the first by name", &first, vec![odd.clone(), pool("aa", "c-h", "vlan10", "")], "aa"),
            (
                "RF-102 the first network decides",
                &both,
                vec![odd, pool("two", "harv01", "vlan20", "")],
                "odd",
            ),
            ("RF-102 only the second has a pool", &both, vec![pool("two", "harv01", "vlan20", "")], "two"),
            ("of another cluster", &first, vec![pool("zz", "two", "vlan10", "")], "harv01--vlan10"),
        ];
        for (case, networks, pools, want) in table {
            assert_eq!(choose(&harvester, networks, &pools), want, "{case}");
        }
    }

    #[test]
    fn the_default_pool_is_the_first_that_is_marked() {
        let one = cluster("c-1", "one", &json!({}));
        let name =
            |pools: &[Arc<PoolView>]| default(&one, pools).map(|(pool, more)| (pool.name().to_owned(), more));
        assert_eq!(name(&[pool("p", "one", "n", "")]), None, "RF-161");
        assert_eq!(name(&[marked("p", "two")]), None, "RF-161 of another cluster");
        assert_eq!(name(&[marked("p", "c-1")]), Some(("p".to_owned(), false)), "RF-164");
        assert_eq!(name(&[marked("q", "one"), marked("b", "c-1")]), Some(("b".to_owned(), true)), "RF-163");
    }
}
