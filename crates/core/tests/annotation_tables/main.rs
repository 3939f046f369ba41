//! Annotation tables of four very different clouds, in miniature: proof that the table type can express each of
//! them, and property tests over all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod clouds;
mod properties;

use cloudberth_core::annotation::{Annotations, Table};

/// An object with these annotations.
fn annotations(pairs: &[(&str, &str)]) -> Annotations {
    pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Every table with the prefix that it watches.
const ALL: [(&str, &Table); 4] = [
    ("k8s.cloudscale.ch/", &clouds::cloudscale::TABLE),
    ("service.beta.kubernetes.io/binarylane-loadbalancer-", &clouds::binarylane::TABLE),
    ("service.beta.kubernetes.io/brightbox-load-balancer-", &clouds::brightbox::TABLE),
    ("service.beta.kubernetes.io/cloudlycke-load-balancer-", &clouds::cloudlycke::TABLE),
];
