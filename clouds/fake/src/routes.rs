//! Routes, in one table: a batch is applied in order.

use std::sync::Arc;

use cloudberth_core::{
    Call, Listing, NodeView, Result, Routes,
    lb::{Fleet, Notice},
    net::IpFamily,
    provider::Boxed,
    route::{Route, RouteChange, RouteData, RouteTable},
};

use crate::{
    cloud::{Fault, Kind, RouteRecord, Trouble},
    provider::FakeProvider,
};

fn route(record: RouteRecord) -> Route {
    Route {
        name: record.name,
        target: Some(record.instance),
        addresses: None,
        destination: record.destination,
        blackhole: false,
        ours: true,
    }
}

/// A change as the log of calls has it.
fn in_words(change: &RouteChange) -> String {
    match change {
        RouteChange::Create(new) => format!("+{} {}", new.node, new.destination),
        RouteChange::Delete(old) => {
            format!("-{} {}", old.target.as_deref().unwrap_or_default(), old.destination)
        }
    }
}

impl Routes for FakeProvider {
    fn families(&self) -> &[IpFamily] {
        &[IpFamily::V4]
    }

    fn list<'a>(
        &'a self,
        call: &'a Call,
        _: &'a [Arc<NodeView>],
        _: &'a Arc<dyn Fleet>,
    ) -> Boxed<'a, Result<RouteTable>> {
        Box::pin(async move {
            let all = self.network.request(call, Kind::Read, "list routes", "", |world, _, fault| {
                let mut all = world.list_routes();
                let short = (fault == Some(Fault::ShortPage)).then(|| {
                    all.truncate(all.len() / 2);
                    "the second page is missing".to_owned()
                });
                Ok((all, short))
            });
            let (all, short) = all.await.map_err(Trouble::error)?;
            Ok(Listing { items: all.into_iter().map(route).collect(), short }.into())
        })
    }

    fn apply<'a>(
        &'a self,
        call: &'a Call,
        _: Option<&'a RouteData>,
        changes: &'a [RouteChange],
    ) -> Boxed<'a, Vec<Result<Vec<Notice>>>> {
        Box::pin(async move {
            let batch = changes.to_vec();
            let subject = changes.iter().map(in_words).collect::<Vec<_>>().join(", ");
            let answers =
                self.network.request(call, Kind::Write, "change routes", &subject, move |world, _, _| {
                    let each = batch.into_iter().map(|change| match change {
                        RouteChange::Delete(route) => {
                            world.delete_route(&route.name);
                            Ok(())
                        }
                        RouteChange::Create(new) => world.create_route(RouteRecord {
                            name: format!("{} {}", new.hint, new.destination),
                            instance: new.node,
                            destination: new.destination,
                        }),
                    });
                    Ok(each.collect::<Vec<_>>())
                });
            match answers.await.map_err(Trouble::error) {
                Ok(answers) => answers.into_iter().map(|answer| answer.map(|()| Vec::new())).collect(),
                Err(error) => changes.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }
}
