//! The clouds that are simulated on a port, a card for each. What every cloud has to live through is in `life`, and what
//! they live through together in `together`.

mod binarylane;
mod brightbox;
pub(crate) mod cloudlycke;
pub(crate) mod cloudscale;

use std::path::Path;
use std::pin::Pin;

use cloudberth_e2e::ClusterKind;

use crate::simulated_cloud::{CardCloud, SimulatedCloud};
use crate::{Fallible, Scenario, life};

/// A cloud that is being started.
pub(crate) type Starting<'a> = Pin<Box<dyn Future<Output = Fallible<Box<dyn SimulatedCloud>>> + 'a>>;

/// What the scenarios know of one cloud.
pub(crate) struct Card {
    pub(crate) name: &'static str,
    /// Two ports that it can open for a Service.
    pub(crate) ports: [u16; 2],
    /// Serves a cloud with instances of these names, with its files in a directory.
    pub(crate) over: for<'a> fn(&'a Path, &'a [&'a str]) -> Starting<'a>,
    /// The life of a Service and its nodes, and what only this cloud has.
    pub(crate) scenarios: [Scenario; 2],
}

macro_rules! cards {
    ($($seconds:literal $module:ident :: $cloud:ident, $own:ident;)*) => {
        &[$(Card {
            name: <$module::$cloud as CardCloud>::NAME,
            ports: <$module::$cloud as CardCloud>::PORTS,
            over: |dir, instances| Box::pin(async move {
                let cloud: Box<dyn SimulatedCloud> = Box::new($module::$cloud::over(dir, instances).await?);
                Ok(cloud)
            }),
            scenarios: [
                Scenario {
                    name: concat!(
                        stringify!($module), "::a_service_lives_and_dies_under_the_rights_of_the_manifest"
                    ),
                    on: &ClusterKind::ALL,
                    seconds: life::SECONDS,
                    run: |cluster| {
                        Box::pin(life::a_service_lives_and_dies_under_the_rights_of_the_manifest::<
                            $module::$cloud,
                        >(cluster))
                    },
                },
                Scenario {
                    name: concat!(stringify!($module), "::", stringify!($own)),
                    on: &ClusterKind::ALL,
                    seconds: $seconds,
                    run: |cluster| Box::pin($module::$own(cluster)),
                },
            ],
        }),*]
    };
}

/// A new cloud is a file in this folder and a line here: the cloud and the scenario of its own, with its seconds.
pub(crate) const CARDS: &[Card] = cards![
    20 binarylane::BinaryLane, what_cannot_be_forwarded_is_refused_without_a_trace;
    20 brightbox::Brightbox, a_cloud_ip_of_the_user_outlives_its_load_balancer;
    15 cloudlycke::Cloudlycke, http_and_datagrams_reach_the_nodes;
    12 cloudscale::Cloudscale, a_floating_ip_outlives_its_load_balancer;
];
