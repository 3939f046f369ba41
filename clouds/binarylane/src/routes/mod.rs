//! Routes: the entries of VPCs, all changes of a pass in one write for each VPC.

mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cloudberth_core::{
    Call, Error, Listing, Lookup, NodeView, Result, Routes,
    lb::{Backend, Fleet, Located, Notice, Outcome, locate},
    net::IpFamily,
    provider::Boxed,
    route::{RouteChange, RouteData, RouteTable},
};
use cloudberth_http::Operation;
use tokio::sync::Mutex;

use crate::{
    api::{Api, OneVpc},
    id::{read_id, server_number},
    servers::{self, Facts},
    settings::{NodeSettings, Settings},
    wire::{Vpc, VpcPatch},
};
pub use table::{Gateway, Gateways};
use table::{Marks, Merged};

/// How often the entries of a VPC are read and written again if somebody else writes too.
const ATTEMPTS: usize = 3;

/// The routes in the VPCs of an account.
#[derive(Debug)]
pub(crate) struct VpcRoutes {
    api: Api,
    marks: Marks,
    /// The one VPC to look after; `None`: those of the nodes.
    vpc: Option<i64>,
    nodes: NodeSettings,
    /// The VPCs that nodes were seen in: when the last node of one goes, its entries still have to.
    seen: std::sync::Mutex<BTreeSet<i64>>,
    /// One writer at a time: the whole list is replaced by each write.
    writing: Mutex<()>,
}

/// What a listing was made from.
struct Listed {
    vpcs: BTreeMap<i64, Vpc>,
    gateways: Gateways,
}

impl VpcRoutes {
    pub(crate) fn new(api: &Api, settings: &Settings) -> Option<Self> {
        let networks = settings.routes.clone()?;
        Some(Self {
            api: api.clone(),
            marks: Marks::new(&settings.cluster, networks),
            vpc: settings.vpc,
            nodes: settings.nodes,
            seen: std::sync::Mutex::default(),
            writing: Mutex::default(),
        })
    }

    /// Through which address of which VPC each node is reached. A node whose server is not known makes the listing
    /// short: whose entries are its own is not known then.
    async fn gateways(
        &self,
        call: &Call,
        nodes: &[Arc<NodeView>],
        fleet: &Arc<dyn Fleet>,
    ) -> Result<(Gateways, Option<String>)> {
        let backends: Vec<_> =
            nodes.iter().map(|node| Backend { node: Arc::clone(node), local_endpoint: None }).collect();
        let take = |node: &NodeView, instance: &cloudberth_core::Instance| {
            Some((node.name.clone(), servers::facts(instance)?.clone()))
        };
        let Located { found, unknown, .. } = locate(&**fleet, call, &backends, read_id, take).await?;
        let short =
            unknown.first().map(|(node, why)| format!("the server of node {node} is not described: {why}"));
        let gateways = found.into_iter().flatten().map(|(node, facts)| (node, self.gateway(facts))).collect();
        Ok((gateways, short))
    }

    fn gateway(&self, facts: Facts) -> Gateway {
        let vpc = facts.vpc.filter(|vpc| self.vpc.is_none_or(|only| only == *vpc));
        Gateway { vpc, addresses: facts.vpc_addresses, checks_destination: facts.checks_destination }
    }

    /// The VPCs to look at.
    fn wanted(&self, gateways: &Gateways) -> BTreeSet<i64> {
        if let Some(vpc) = self.vpc {
            return BTreeSet::from([vpc]);
        }
        // Each change is complete before the lock is released, so a poisoned lock hides no half-done change.
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.extend(gateways.values().filter_map(|gateway| gateway.vpc));
        seen.clone()
    }

    async fn read(&self, call: &Call, vpcs: &BTreeSet<i64>) -> Result<BTreeMap<i64, Vpc>> {
        let mut found = BTreeMap::new();
        for id in vpcs {
            match self.api.vpc(call, *id).await {
                Lookup::Present(vpc) => drop(found.insert(*id, vpc)),
                Lookup::Absent => {}
                Lookup::Unknown(why) => return Err(why),
            }
        }
        Ok(found)
    }

    /// The gateways of the nodes of new routes, asked for one by one.
    async fn ask(&self, call: &Call, changes: &[RouteChange]) -> Result<Gateways> {
        let mut gateways = Gateways::new();
        for change in changes {
            let RouteChange::Create(new) = change else { continue };
            let id = new.provider_id.as_deref().and_then(|text| text.parse().ok());
            let Some(number) = id.as_ref().and_then(server_number) else { continue };
            let Some(server) = self.api.server(call, number).await.known()? else { continue };
            let instance = servers::instance(server, self.nodes)?;
            if let Some(facts) = instance.as_ref().and_then(servers::facts) {
                gateways.insert(new.node.clone(), self.gateway(facts.clone()));
            }
        }
        Ok(gateways)
    }

    /// Carries out the changes of one VPC.
    async fn write(
        &self,
        call: &Call,
        id: i64,
        known: Option<&Vpc>,
        changes: &[(usize, &RouteChange)],
        gateways: &Gateways,
    ) -> Vec<Result<()>> {
        let all = |why: Error| changes.iter().map(|_| Err(why.clone())).collect();
        let mut known = known.cloned();
        for attempt in 1..=ATTEMPTS {
            let vpc = match known.take() {
                Some(vpc) => vpc,
                None => match self.api.vpc(call, id).await.known() {
                    Ok(Some(vpc)) => vpc,
                    Ok(None) => return table::without_vpc(id, changes),
                    Err(why) => return all(why),
                },
            };
            let Merged { entries, answers, changed } = self.marks.merge(&vpc, changes, gateways);
            if !changed {
                return answers;
            }
            let body = VpcPatch { route_entries: &entries };
            let operation = Operation::patch("change routes", "vpcs").segment(&id.to_string()).json(&body);
            let sent: Outcome<OneVpc> = Box::pin(self.api.0.write(call, operation)).await;
            match sent {
                // Somebody else may have written between our look and our write.
                Outcome::Done(after) if !self.marks.merge(&after.vpc, changes, gateways).changed => {
                    return answers;
                }
                Outcome::Done(after) => known = Some(after.vpc),
                Outcome::Failed(why) if !retried(&why) || attempt == ATTEMPTS => return all(why),
                Outcome::Unknown(why) if attempt == ATTEMPTS => return all(why),
                Outcome::Failed(_) | Outcome::Unknown(_) => {}
                Outcome::Refused { why, .. } => return all(why),
                Outcome::NotThere => return table::without_vpc(id, changes),
            }
        }
        all(Error::temporary(format!("the routes of VPC {id} are changed by somebody else at the same time")))
    }
}

/// Whether another look can help.
fn retried(why: &Error) -> bool {
    use cloudberth_core::Category::{Conflict, Temporary};
    matches!(why.category(), Conflict | Temporary)
}

impl Routes for VpcRoutes {
    /// A VPC has IPv4 addresses only.
    fn families(&self) -> &[IpFamily] {
        &[IpFamily::V4]
    }

    fn list<'a>(
        &'a self,
        call: &'a Call,
        nodes: &'a [Arc<NodeView>],
        fleet: &'a Arc<dyn Fleet>,
    ) -> Boxed<'a, Result<RouteTable>> {
        Box::pin(async move {
            let (gateways, short) = self.gateways(call, nodes, fleet).await?;
            let wanted = self.wanted(&gateways);
            let vpcs = self.read(call, &wanted).await?;
            let items = vpcs.values().flat_map(|vpc| self.marks.routes(vpc, &gateways)).collect();
            let data: RouteData = Arc::new(Listed { vpcs, gateways });
            Ok(RouteTable { routes: Listing { items, short }, data })
        })
    }

    fn apply<'a>(
        &'a self,
        call: &'a Call,
        listed: Option<&'a RouteData>,
        changes: &'a [RouteChange],
    ) -> Boxed<'a, Vec<Result<Vec<Notice>>>> {
        Box::pin(async move {
            let _one = self.writing.lock().await;
            let listed = listed.and_then(|data| data.downcast_ref::<Listed>());
            let asked;
            let gateways = match listed {
                Some(listed) => &listed.gateways,
                None => match self.ask(call, changes).await {
                    Ok(gateways) => {
                        asked = gateways;
                        &asked
                    }
                    Err(why) => return changes.iter().map(|_| Err(why.clone())).collect(),
                },
            };
            let mut answers: Vec<Result<Vec<Notice>>> = Vec::with_capacity(changes.len());
            let mut batches: BTreeMap<i64, Vec<(usize, &RouteChange)>> = BTreeMap::new();
            for (place, change) in changes.iter().enumerate() {
                let (vpc, answer) = match self.marks.vpc_of(change, gateways) {
                    Ok(vpc) => (vpc, Ok(table::notices(change, gateways))),
                    Err(why) => (None, Err(why)),
                };
                answers.push(answer);
                if let Some(vpc) = vpc {
                    batches.entry(vpc).or_default().push((place, change));
                }
            }
            for (vpc, batch) in batches {
                let known = listed.and_then(|listed| listed.vpcs.get(&vpc));
                let done = self.write(call, vpc, known, &batch, gateways).await;
                for ((place, _), result) in batch.iter().zip(done) {
                    if let (Some(answer), Err(why)) = (answers.get_mut(*place), result) {
                        *answer = Err(why);
                    }
                }
            }
            answers
        })
    }
}
