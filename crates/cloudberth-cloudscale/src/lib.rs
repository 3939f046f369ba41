//! cloudscale.ch: machines and load balancers.

mod api;
mod ids;
mod instances;
mod provider;
pub mod servers;
mod settings;

pub use api::Surroundings;
pub use provider::CloudscaleProvider;
pub use settings::{Settings, TOKEN};
