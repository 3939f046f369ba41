//! Every scenario is written once against a `Cluster` and runs on both kinds of it, each in a cluster of its own. One that
//! needs pods runs on the real kind only.
//!
//! `cargo xtask e2e` runs them by hand. Without arguments, as in the suite, all of them run on both kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The output is for people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod cloud;
mod clouds;
mod cluster;
mod demonstration;
mod election;
mod events;
mod fixture;
mod lease;
mod ledger;
mod life;
mod nodes;
mod plan;
mod pods;
mod run;
mod services;
mod simulated_cloud;
mod stay;
mod together;
mod trouble;

use std::cmp::Reverse;
use std::pin::Pin;
use std::process::ExitCode;

use cloudberth_e2e::{Cluster, ClusterKind};

/// The result of a part of a scenario; it may also panic.
pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error>>;
/// The result of a scenario.
pub(crate) type Outcome = Fallible<()>;

/// One scenario. It sees a cluster that nobody else uses.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The kinds of cluster that it runs on.
    pub(crate) on: &'static [ClusterKind],
    /// About how long it takes, among the others.
    pub(crate) seconds: u16,
    pub(crate) run: for<'w> fn(&'w Cluster) -> Pin<Box<dyn Future<Output = Outcome> + 'w>>,
}

macro_rules! scenarios {
    (@on) => { &ClusterKind::ALL };
    (@on $kind:ident) => { &[ClusterKind::$kind] };
    ($($seconds:literal $module:ident :: $name:ident $(on $kind:ident)?,)*) => {
        &[$(Scenario {
            name: concat!(stringify!($module), "::", stringify!($name)),
            on: scenarios!(@on $($kind)?),
            seconds: $seconds,
            run: |cluster| Box::pin($module::$name(cluster)),
        }),*]
    };
}

/// All but those on the cards of the clouds, each with its seconds: the longest begin first. A new one is an
/// `async fn(&Cluster) -> Outcome` and a line here.
const SCENARIOS: &[Scenario] = scenarios![
    200 pods::pods_run_once_their_nodes_are_initialised_and_leave_a_node_that_is_gone on Real,
    180 demonstration::the_pods_of_the_walk_through_wait_for_their_cloud on Real,
    150 election::our_replica_and_client_go_hand_a_lease_back_and_forth_20_times,
    115 cloud::a_cloud_that_does_not_answer_costs_no_node_and_no_load_balancer,
    80 cloud::an_instance_is_stopped_started_and_deleted,
    80 cloud::a_token_that_was_rotated_is_used_without_a_restart,
    60 election::client_go_candidates_hand_a_lease_back_and_forth,
    40 together::all_clouds_work_in_one_manager_and_none_holds_up_another,
    40 services::a_service_follows_its_ports_and_its_nodes,
    35 trouble::a_leader_told_to_stop_in_the_middle_of_a_call_hands_over,
    35 trouble::a_standby_takes_over_from_a_leader_that_is_killed,
    30 services::a_manager_killed_in_the_middle_of_a_create_makes_one_load_balancer,
    20 demonstration::one_process_is_the_cloud_and_its_manager,
    20 services::a_service_changes_its_type_and_its_class_and_is_deleted,
    20 services::a_service_that_is_deleted_while_no_manager_runs_leaves_nothing,
    15 services::a_deleted_namespace_takes_its_load_balancer_with_it,
    15 services::unsupported_fields_are_refused_and_reported_at_once,
    15 trouble::a_manager_outlives_its_api_server,
    15 plan::a_plan_says_what_the_manager_then_does,
    12 trouble::a_manager_gets_through_a_storm_of_conflicts,
    10 trouble::watches_that_are_cut_lose_nothing,
    10 nodes::a_node_goes_from_its_taint_to_its_labels,
    8 nodes::a_node_of_another_cloud_is_left_alone,
    6 nodes::a_provider_id_that_the_kubelet_set_is_kept,
    5 cluster::an_api_server_that_was_killed_comes_back_with_everything,
    4 cluster::a_storm_of_conflicts_loses_no_write,
    4 access::a_manager_asks_the_cluster_who_may_read_its_metrics,
    2 cluster::kubectl_creates_and_describes_a_service,
    2 cluster::a_dropped_watch_resumes_where_it_was,
    2 cluster::a_closed_proxy_hides_a_server_that_runs,
    2 access::an_account_has_the_rights_of_its_role_and_every_call_is_logged,
    1 access::an_account_without_a_role_may_only_use_discovery,
];

/// Runs after all others, if all of them ran.
const LAST: &[Scenario] = scenarios![1 ledger::no_right_of_a_shipped_role_goes_unused,];

fn main() -> ExitCode {
    let on_cards = clouds::CARDS.iter().flat_map(|card| &card.scenarios);
    let mut all: Vec<&Scenario> = SCENARIOS.iter().chain(on_cards).collect();
    all.sort_by_key(|scenario| Reverse(scenario.seconds));
    match run::Plan::from_args().and_then(|plan| plan.carry_out(&all, LAST)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
