//! What the tests of this folder share.

use crate::{
    decide::{node::taints::TO_BE_DELETED, nodeset::eligible::EXCLUDE_LABEL},
    view::{NodeView, Ready, Taint, TaintEffect},
};

/// A Ready node with a provider id.
pub(super) fn node(name: &str) -> NodeView {
    NodeView {
        name: name.to_owned(),
        provider_id: Some(format!("cloud://{name}")),
        ready: Ready::True,
        ..NodeView::default()
    }
}

pub(super) fn edited(edit: impl FnOnce(&mut NodeView)) -> NodeView {
    let mut view = node("n1");
    edit(&mut view);
    view
}

pub(super) fn taint(key: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: Some("1718000000".to_owned()),
        effect: TaintEffect::NoSchedule,
        time_added: None,
    }
}

pub(super) fn label(view: &mut NodeView, key: &str, value: &str) {
    view.labels.insert(key, value);
}

pub(super) fn excluded(mut view: NodeView) -> NodeView {
    label(&mut view, EXCLUDE_LABEL, "");
    view
}

pub(super) fn tainted(mut view: NodeView) -> NodeView {
    view.taints.push(taint(TO_BE_DELETED));
    view
}
