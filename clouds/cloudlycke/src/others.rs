//! The nodes that other programs own and that the inventory names: those of kind, k3d and minikube.

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
};

use cloudberth_core::Instance;

use crate::id::SCHEME;

/// Their provider ids, as the newest listing has them.
#[derive(Debug, Default)]
pub(crate) struct OtherNodes(RwLock<Option<BTreeSet<String>>>);

impl OtherNodes {
    /// Takes them from a complete listing.
    pub(crate) fn learn(&self, listed: &[Instance]) {
        let foreign = listed.iter().filter(|instance| instance.id.scheme() != SCHEME);
        let ids: BTreeSet<_> = foreign.map(|instance| instance.id.to_string()).collect();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&ids) {
            *known = Some(ids);
        }
    }

    /// Whether the node with this id may be one of them. Before anything was listed any node may be: whether it is shows
    /// when its machine is looked for, and nobody is taken away from a load balancer meanwhile.
    pub(crate) fn may_be(&self, id: &str) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_none_or(|ids| ids.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_taken_only_if_the_inventory_names_it() {
        let others = OtherNodes::default();
        assert!(others.may_be("kind://docker/kind/kind-worker"), "nobody has looked yet");
        let instance = |id: &str| Instance::new(id.parse().unwrap(), "");
        others.learn(&[instance("kind://docker/kind/kind-worker"), instance("cloudlycke://n-c2-1")]);
        assert!(others.may_be("kind://docker/kind/kind-worker"), "CL-7");
        assert!(!others.may_be("kind://docker/kind/other"), "L3-1801");
        assert!(!others.may_be("cloudlycke://n-c2-1"), "our own are not theirs");
        others.learn(&[]);
        assert!(!others.may_be("kind://docker/kind/kind-worker"), "it was taken out of the inventory");
    }
}
