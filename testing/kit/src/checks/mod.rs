//! Checks that hold for every cloud. A provider hands over its simulated cloud as a [`CloudUnderTest`] and gets them.
//!
//! A check runs on a [`ClusterFixture`](crate::ClusterFixture) with all controllers at work, in virtual time, and panics
//! with the law's number where the law does not hold. [`checks!`](crate::checks!) makes a test of each, so that a failure
//! names the provider and the check.

pub mod answers;
mod fixture;
pub mod ownership;
pub mod refusals;

use std::sync::Arc;

use cloudberth_controllers::routes::RouteSettings;
use cloudberth_core::{Clock, Provider, ServiceView};
use serde_json::{Value, json};

pub use fixture::{CloudFixture, annotation};

/// Makes a test of each named check for one cloud: `checks! { Cloud; ownership: a_copied_id_is_no_proof; }`.
#[macro_export]
macro_rules! checks {
    ($cloud:ty; $($module:ident: $($check:ident),+;)+) => {
        $($(
            #[tokio::test(start_paused = true)]
            async fn $check() {
                $crate::checks::$module::$check::<$cloud>().await;
            }
        )+)+
    };
}

/// A simulated cloud with the provider for it: what a check needs to know of them.
///
/// Clones show the same cloud.
pub trait CloudUnderTest: Clone + Send + Sync + 'static {
    /// An empty cloud that goes by `clock`, answers quickly and builds load balancers in a second.
    fn new(clock: &Arc<dyn Clock>) -> Self;

    /// A provider that knows nothing yet, with the credential of the cluster's own account.
    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider>;

    /// The annotation in which the id of a load balancer is recorded.
    fn id_annotation(&self) -> &'static str;

    /// The annotation with which a user names a load balancer; `None` where the cloud has none.
    fn name_annotation(&self) -> Option<&'static str>;

    /// The name that a Service's load balancer gets when nobody names it.
    fn generated_name(&self, service: &ServiceView) -> String;

    /// An instance that runs. Returns its provider id.
    fn add_instance(&self, name: &str) -> String;

    /// What the spec of a node says beside its provider id, such as the networks of its pods. By default nothing.
    fn node_spec(&self, _provider_id: &str) -> Value {
        json!({})
    }

    /// The routes that the program is told to look after. By default none.
    fn routes(&self) -> Option<RouteSettings> {
        None
    }

    /// A load balancer that somebody built by hand, with a port and a member of its own, ready for use. Returns its id.
    fn build_by_hand(&self, name: &str) -> String;

    /// The ids of all load balancers.
    fn balancers(&self) -> Vec<String>;

    /// Everything that there is of a load balancer and its parts, as text: as long as it reads the same, nobody has
    /// touched it. `None` for one that is not there.
    fn state_of(&self, balancer: &str) -> Option<String>;

    /// How many calls have changed something so far.
    fn mutations(&self) -> usize;

    /// The next call that creates a load balancer is carried out and its answer lost.
    fn lose_next_creation(&self);

    /// While the next call that deletes a load balancer is under way, the credential becomes that of another account:
    /// the cloud answers that it knows no such load balancer. Later calls come with the right credential again.
    fn swap_credential_during_next_delete(&self);

    /// The next call that deletes a load balancer comes with the credential of another account, which knows no such load
    /// balancer. All calls before and after come with the right one.
    fn send_next_delete_elsewhere(&self);

    /// From now on, or no longer, answers lack the addresses of instances: the field is missing.
    fn omit_instance_addresses(&self, omit: bool);

    /// From now on, or no longer, answers lack the addresses of load balancers: the field is missing.
    fn omit_balancer_addresses(&self, omit: bool);

    /// From now on, or no longer, a part of this load balancer cannot be read: a field of it holds null where the API
    /// always tells.
    fn garble_part_of(&self, balancer: &str, garble: bool);
}
