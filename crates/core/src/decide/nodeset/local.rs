//! On which nodes each Service has ready pods, from its `EndpointSlices`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::view::{EndpointSliceView, ExternalTrafficPolicy, ObjectKey, ServiceView};

/// The slices of every Service.
#[derive(Clone, Debug, Default)]
pub struct LocalEndpoints(BTreeMap<ObjectKey, BTreeMap<String, Arc<EndpointSliceView>>>);

impl LocalEndpoints {
    /// Replaces a slice. Returns the Services whose pods are ready on other nodes than before.
    pub fn update(
        &mut self,
        old: Option<&EndpointSliceView>,
        new: Option<&Arc<EndpointSliceView>>,
    ) -> BTreeSet<ObjectKey> {
        let services = [old.and_then(EndpointSliceView::service_key), new.and_then(|new| new.service_key())];
        let services: BTreeSet<_> = services.into_iter().flatten().collect();
        let before: Vec<_> = services.iter().map(|service| self.nodes(service)).collect();
        if let Some((slice, service)) = old.and_then(|slice| Some((slice, slice.service_key()?)))
            && let Some(slices) = self.0.get_mut(&service)
        {
            slices.remove(&slice.name);
            if slices.is_empty() {
                self.0.remove(&service);
            }
        }
        if let Some((slice, service)) = new.and_then(|slice| Some((slice, slice.service_key()?))) {
            self.0.entry(service).or_default().insert(slice.name.clone(), Arc::clone(slice));
        }
        let moved =
            services.into_iter().zip(before).filter(|(service, before)| self.nodes(service) != *before);
        moved.map(|(service, _)| service).collect()
    }

    /// The nodes on which a Service has ready pods.
    pub fn nodes(&self, service: &ObjectKey) -> BTreeSet<String> {
        let slices = self.0.get(service).into_iter().flat_map(BTreeMap::values);
        slices.flat_map(|slice| slice.ready_on.iter().cloned()).collect()
    }
}

/// Whether it matters to a Service on which nodes its pods are. Otherwise any node passes traffic on to any pod.
pub fn is_local(service: &ServiceView) -> bool {
    service.external_traffic_policy == ExternalTrafficPolicy::Local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, service: &str, nodes: &[&str]) -> Arc<EndpointSliceView> {
        Arc::new(EndpointSliceView {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            service: Some(service.to_owned()),
            ready_on: nodes.iter().map(ToString::to_string).collect(),
            ..EndpointSliceView::default()
        })
    }

    fn names(keys: BTreeSet<ObjectKey>) -> Vec<String> {
        keys.into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn only_a_move_between_nodes_is_told() {
        let mut all = LocalEndpoints::default();
        let (one, two) = (slice("a", "web", &["n1"]), slice("b", "web", &["n1", "n2"]));
        assert_eq!(names(all.update(None, Some(&one))), ["web"], "BL-102");
        assert_eq!(names(all.update(None, Some(&two))), ["web"], "another slice, another node");
        let more = slice("a", "web", &["n2"]);
        assert_eq!(names(all.update(Some(&one), Some(&more))), [""; 0], "the other slice still has n1");
        assert_eq!(names(all.update(Some(&two), None)), ["web"], "n1 has none now");
        let web = ObjectKey::new("shop", "web");
        assert_eq!(all.nodes(&web).into_iter().collect::<Vec<_>>(), ["n2"]);
        let shop = slice("a", "shop", &["n2"]);
        assert_eq!(names(all.update(Some(&more), Some(&shop))), ["shop", "web"], "relabelled");
        assert_eq!(names(all.update(Some(&shop), None)), ["shop"]);
        assert!(all.0.is_empty(), "nothing is kept of slices that are gone");
    }
}
