//! Nimbus, a cloud that has nothing: the least that a provider is.
//!
//! From here on, `clouds/fake` shows how each capability is added.

use std::sync::Arc;

use cloudberth_core::{Provider, annotation::Table};
use cloudberth_http::{OpenResult, ProviderContext, ProviderFactory};

/// Nimbus, as a program lists it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: "nimbus",
    replaces: &[],
    annotations: &const { Table::new(&[]) },
    reasons: &[],
    rights: &[],
    offline: &[],
    open,
};

struct Nimbus;

impl Provider for Nimbus {
    fn name(&self) -> &str {
        FACTORY.name
    }

    fn scheme(&self) -> &str {
        FACTORY.name
    }
}

fn open(_: &ProviderContext<'_>) -> OpenResult {
    Ok(Arc::new(Nimbus))
}
