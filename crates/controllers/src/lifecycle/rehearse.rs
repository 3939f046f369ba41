//! What would become of nodes whose machines are stopped or gone, with nothing written and nothing told.

use cloudberth_core::{
    Instance, InstanceState, Listing, Lookup, Tick,
    decide::{
        lifecycle::{
            Evidence, Memory, Round, Sentence, Standing, Suspect, Verdict, at_once, gather, judge,
            machine_not_found,
        },
        node::taints::SHUTDOWN,
    },
    lb::Impact,
};

use super::{LifecycleController, round::PATIENCE, ward::Ward};
use crate::rehearsal::Rehearsal;

/// A verdict takes the end of the grace of a new node and a second confirmation, never more.
const MOST_ROUNDS: usize = 4;

impl LifecycleController {
    /// What would become of every node that needs judging, by name, if the clouds kept to their present answers.
    /// Listings that were begun at `not_before` or later serve.
    pub async fn rehearse(&self, not_before: Tick) -> Vec<(String, Rehearsal)> {
        let mut all = Vec::new();
        for ward in &self.wards {
            let suspects = self.patients(ward);
            let open = || suspects.iter().filter(|suspect| at_once(suspect) != Some(Verdict::Keep));
            if open().next().is_none() {
                continue;
            }
            let snapshot = ward.cloud.inventory.listing(not_before).await;
            let count = suspects.iter().filter(|suspect| suspect.id().is_some()).count();
            let mut foretell = |suspect: &Suspect, answer: &Lookup<InstanceState>| {
                all.push((suspect.name.clone(), self.foretell(ward, suspect, answer, count)));
            };
            let listing = match &snapshot.machines {
                Ok(listing) => listing,
                Err(why) => {
                    open().for_each(|suspect| foretell(suspect, &Lookup::Unknown(why.clone())));
                    continue;
                }
            };
            let standing = self.standing(ward, listing, &suspects).await;
            for suspect in open() {
                let answer = self.ask_source(ward, suspect, listing, &standing).await;
                foretell(suspect, &answer);
            }
        }
        all
    }

    /// What the listing says, and the source itself where that could end in a deletion.
    async fn ask_source(
        &self,
        ward: &Ward,
        suspect: &Suspect,
        listing: &Listing<Instance>,
        standing: &Standing,
    ) -> Lookup<InstanceState> {
        let listed = standing.ask(listing, suspect);
        let by_id = match suspect.id().filter(|_| listed.is_absent()) {
            Some(id) => {
                let call = self.desk.cluster.call(PATIENCE);
                Some(ward.cloud.inventory.ask(&call, id).await.map(|machine| machine.state))
            }
            None => None,
        };
        gather(suspect, listed, by_id)
    }

    fn foretell(
        &self,
        ward: &Ward,
        suspect: &Suspect,
        answer: &Lookup<InstanceState>,
        nodes: usize,
    ) -> Rehearsal {
        let mut told = Rehearsal::of(ward.cloud.name());
        let (mut memory, mut at) = (Memory::default(), self.now());
        for _ in 0..MOST_ROUNDS {
            let round = Round { evidence: Evidence::from(answer), begun: at, ended: at };
            match judge(suspect, &mut memory, &round) {
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
                Verdict::ReportNotFound => told.remarks.push(machine_not_found(suspect).message),
                Verdict::Delete => {
                    let cap = self.settings.cap;
                    match ward.deletions().sentence(suspect, &mut memory, cap, nodes, at) {
                        Sentence::Delete { .. } => {
                            told.step(
                                Impact::None,
                                "delete the node after a second confirmation that its machine is gone",
                            );
                        }
                        Sentence::Wait { until, event } => {
                            let cap = "its machine is gone, and --max-node-deletions is reached";
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
