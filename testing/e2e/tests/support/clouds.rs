//! The clouds at which an installed program arrives. Each has two instances, whose nodes wait for it.

use std::any::Any;
use std::sync::Arc;

use cloudberth_core::Random;
use cloudberth_http::surroundings::SystemClock;

/// A simulated cloud on a port, until this is dropped.
pub(crate) struct SimulatedCloud {
    /// The variable that leads a program to it, in place of the real one.
    pub(crate) variable: Option<(&'static str, String)>,
    /// What stands for `CLIENT` and `TOKEN` on the page.
    pub(crate) credentials: (String, String),
    /// How its nodes are called.
    pub(crate) nodes: Vec<String>,
    _alive: Box<dyn Any>,
}

const TOKEN: &str = "token-of-a-page-0123456789abcdef";

/// Opens one of those that have simulated APIs.
pub(crate) async fn open(cloud: &str) -> SimulatedCloud {
    let clock = Arc::new(SystemClock::new());
    let with_token = (String::new(), TOKEN.to_owned());
    match cloud {
        "binarylane" => {
            use binarylane_sim::{Access, Cloud, SimSettings, serve_on_loopback};
            let settings = SimSettings { instances: 2, ..SimSettings::default() };
            let cloud = Cloud::new(clock, Random::seeded(1), settings);
            cloud.set_tokens([(TOKEN, Access::Own)]);
            let served = serve_on_loopback(&cloud).await.unwrap();
            SimulatedCloud {
                variable: Some(("BINARYLANE_API_URL", served.url())),
                credentials: with_token,
                nodes: cloud.servers().into_iter().map(|server| server.name).collect(),
                _alive: Box::new((cloud, served)),
            }
        }
        "brightbox" => {
            use brightbox_sim::{Cloud, SimSettings, serve_on_loopback};
            let settings = SimSettings { instances: 2, ..SimSettings::default() };
            let cloud = Cloud::new(clock, Random::seeded(1), settings);
            let credentials = cloud.credentials();
            let served = serve_on_loopback(&cloud).await.unwrap();
            SimulatedCloud {
                variable: Some(("BRIGHTBOX_API_URL", served.url())),
                credentials: (credentials.client, credentials.secret),
                nodes: cloud.servers().into_iter().map(|server| server.hostname).collect(),
                _alive: Box::new((cloud, served)),
            }
        }
        "cloudscale" => {
            use cloudscale_sim::{Access, Cloud, SimSettings, serve_on_loopback};
            let settings = SimSettings { instances: 2, ..SimSettings::default() };
            let cloud = Cloud::new(clock, Random::seeded(1), settings);
            cloud.set_tokens([(TOKEN, Access::ReadWrite)]);
            let served = serve_on_loopback(&cloud).await.unwrap();
            SimulatedCloud {
                variable: Some(("CLOUDSCALE_API_URL", served.url())),
                credentials: with_token,
                nodes: cloud.servers().into_iter().map(|server| server.name).collect(),
                _alive: Box::new((cloud, served)),
            }
        }
        // A process of its own, which the page starts; the Secret says where.
        "cloudlycke" => SimulatedCloud {
            variable: None,
            credentials: with_token,
            nodes: vec!["node-1".to_owned(), "node-2".to_owned()],
            _alive: Box::new(()),
        },
        other => panic!("no simulated cloud is called {other}"),
    }
}
