//! The list of clouds. Flags, presets by program name, the reference pages and the checks of the manifests follow
//! from it.

pub mod commands;
#[cfg(feature = "demo")]
pub mod page;
#[cfg(feature = "demo")]
pub mod world;

use cloudberth_core::{Reason, reason::REASONS};
use cloudberth_http::ProviderFactory;

/// Every cloud that `--cloud-provider` may name. A new cloud is a folder under `clouds/` and a line here.
pub const CLOUDS: &[ProviderFactory] = &[
    cloudberth_binarylane::FACTORY,
    cloudberth_brightbox::FACTORY,
    #[cfg(feature = "lycke")]
    cloudberth_cloudlycke::FACTORY,
    cloudberth_cloudscale::FACTORY,
    #[cfg(feature = "fake")]
    cloudberth_fake::FACTORY,
];

/// The reasons of all events that the program can publish: those of the framework and of every cloud.
pub fn reasons() -> impl Iterator<Item = Reason> {
    REASONS.iter().chain(CLOUDS.iter().flat_map(|factory| factory.reasons)).copied()
}
