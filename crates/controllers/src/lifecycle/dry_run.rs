//! What would become of nodes whose instances are stopped or gone, with nothing written and nothing told.

use cloudberth_core::{
    Instance, InstanceState, Listing, Lookup, Tick,
    decide::{
        lifecycle::{
            DeletionDecision, Evidence, ListingTrust, Memory, NodeFacts, Round, Verdict, at_once, gather,
            instance_not_found, judge,
        },
        node::taints::SHUTDOWN,
    },
    lb::Impact,
};

use super::{LifecycleController, round::PATIENCE, tracked::TrackedNodes};
use crate::dry_run::DryRun;

/// A verdict takes the end of the grace of a new node and a second confirmation, never more.
const MOST_ROUNDS: usize = 4;

impl LifecycleController {
    /// What would become of every node that needs judging, by name, if the clouds kept to their present answers.
    /// Listings that were begun at `not_before` or later serve.
    pub async fn dry_run(&self, not_before: Tick) -> Vec<(String, DryRun)> {
        let mut all = Vec::new();
        for tracked in &self.all_tracked {
            let all_facts = self.node_facts(tracked);
            let open = || all_facts.iter().filter(|facts| at_once(facts) != Some(Verdict::Keep));
            if open().next().is_none() {
                continue;
            }
            let snapshot = tracked.cloud.inventory.listing(not_before).await;
            let count = all_facts.iter().filter(|facts| facts.id().is_some()).count();
            let mut add = |facts: &NodeFacts, answer: &Lookup<InstanceState>| {
                all.push((facts.name.clone(), self.dry_run_one(tracked, facts, answer, count)));
            };
            let listing = match &snapshot.instances {
                Ok(listing) => listing,
                Err(why) => {
                    open().for_each(|facts| add(facts, &Lookup::Unknown(why.clone())));
                    continue;
                }
            };
            let trust = self.trust(tracked, listing, &all_facts).await;
            for facts in open() {
                let answer = self.ask_source(tracked, facts, listing, &trust).await;
                add(facts, &answer);
            }
        }
        all
    }

    /// What the listing says, and the source itself where that could end in a deletion.
    async fn ask_source(
        &self,
        tracked: &TrackedNodes,
        facts: &NodeFacts,
        listing: &Listing<Instance>,
        trust: &ListingTrust,
    ) -> Lookup<InstanceState> {
        let listed = trust.ask(listing, facts);
        let by_id = match facts.id().filter(|_| listed.is_absent()) {
            Some(id) => {
                let call = self.ctx.cluster.call(PATIENCE);
                Some(tracked.cloud.inventory.ask(&call, id).await.map(|instance| instance.state))
            }
            None => None,
        };
        gather(facts, listed, by_id)
    }

    fn dry_run_one(
        &self,
        tracked: &TrackedNodes,
        facts: &NodeFacts,
        answer: &Lookup<InstanceState>,
        nodes: usize,
    ) -> DryRun {
        let mut told = DryRun::of(tracked.cloud.name());
        let (mut memory, mut at) = (Memory::default(), self.now());
        for _ in 0..MOST_ROUNDS {
            let round = Round { evidence: Evidence::from(answer), begun: at, ended: at };
            match judge(facts, &mut memory, &round) {
                Verdict::AskAgain(next) => {
                    at = next;
                    continue;
                }
                Verdict::Keep => {}
                Verdict::Unclear => {
                    if let Lookup::Unknown(why) = answer {
                        told.unknown = Some(why.clone());
                    }
                }
                Verdict::AddShutdownTaint => told.step(Impact::None, format!("add the taint {SHUTDOWN}")),
                Verdict::RemoveShutdownTaint => {
                    told.step(Impact::None, format!("remove the taint {SHUTDOWN}"));
                }
                Verdict::ReportNotFound => told.remarks.push(instance_not_found(facts).message),
                Verdict::Delete => {
                    let cap = self.settings.cap;
                    match tracked.deletions().decision(facts, &mut memory, cap, nodes, at) {
                        DeletionDecision::Delete { .. } => {
                            told.step(
                                Impact::None,
                                "delete the node after a second confirmation that its instance is gone",
                            );
                        }
                        DeletionDecision::Wait { until, event } => {
                            let cap = "its instance is gone, and --max-node-deletions is reached";
                            let why = event.map_or_else(|| cap.to_owned(), |event| event.message);
                            // A cap of nothing is never lifted by waiting.
                            match until {
                                Some(_) => told.waits = Some(why),
                                None => told.remarks.push(why),
                            }
                        }
                    }
                }
            }
            break;
        }
        told
    }
}
