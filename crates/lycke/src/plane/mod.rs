//! The border between the control part, which knows what load balancers should be, and the plane, which carries traffic.

mod affinity;
mod choose;
mod config;
mod diff;
mod flows;
mod low_ports;
mod proxy_header;
mod report;
pub mod socket;
mod source_ranges;
mod verdict;
mod wheel;

use std::{fmt, future::Future, pin::Pin};

pub use config::{
    Backend, BalancerConfig, BalancerKey, Health, HealthKind, Limits, Listener, LowPorts, Policy, Protocol,
    ProxyProtocol,
};
pub use report::{
    BackendCounters, BackendReport, BalancerReport, Connections, Counters, ListenerFault, ListenerReport,
    PlaneEvent, PlaneTotals, UdpCounters,
};

/// An answer that takes a while. It does not borrow, so that whoever waits for it may be dropped.
pub type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What carries the traffic of load balancers. Calls about one load balancer are made one after the other.
pub trait Plane: fmt::Debug + Send + Sync {
    /// Makes a load balancer be like `config`, whatever it is now, and answers when every listener is bound or has failed;
    /// health is not waited for. What did not change is not disturbed: a listener is known by protocol, address and port, a
    /// backend by its machine. Listeners that failed are tried again every two seconds without being asked.
    fn apply(&self, key: &BalancerKey, config: BalancerConfig) -> Answer<BalancerReport>;

    /// Stops accepting, and lets connections end for as long as the configured drain says. Answers as soon as new clients are
    /// refused; does nothing if there is no such load balancer.
    fn remove(&self, key: &BalancerKey) -> Answer<()>;

    /// How a load balancer is right now.
    fn report(&self, key: &BalancerKey) -> Option<BalancerReport>;

    /// What a load balancer has done since it was made or got another uid.
    fn counters(&self, key: &BalancerKey) -> Option<Counters>;

    /// What the whole plane has done since it was started, for metrics.
    fn totals(&self) -> PlaneTotals;

    /// Changes how many TCP connections all load balancers together may have open, for those that come from now on; 0 means
    /// as many as the limit on descriptors allows.
    fn limit_connections(&self, connections: usize);

    /// Closes every listener at once, and answers when no connection is left or the drain is over.
    fn close(&self) -> Answer<()>;
}

/// Is told what the plane notices by itself. It must return at once: it is called between a client and its bytes.
pub trait PlaneObserver: Send + Sync {
    /// Something has changed at a load balancer.
    fn notice(&self, key: &BalancerKey, event: PlaneEvent);
}
