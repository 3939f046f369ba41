//! Instances: one listing, one lookup by id, one by name; and the question whether one runs.

use std::time::Duration;

use cloudberth_core::{
    Call, Category, Error, Instance, InstanceState, Instances, Listing, Lookup, ProviderId, Result,
    provider::Boxed,
};
use cloudberth_http::Item;

use crate::{
    id::{SCHEME, server_number},
    provider::BinaryLaneProvider,
    servers,
    wire::{Job, Named, Progress, Server},
};

/// A server is asked whether it runs no more often than this.
const ASK_EVERY: Duration = Duration::from_secs(300);
/// How often an action is looked at, and how many times.
const POLL: Duration = Duration::from_secs(2);
const POLLS: usize = 10;

impl Instances for BinaryLaneProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let listed = self.api.servers(call).await?;
            Ok(self.instances_of(listed))
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            let Some(number) = server_number(id) else { return Lookup::Unknown(no_number(id)) };
            let server = self.api.server(call, number).await.known();
            server
                .and_then(|server| {
                    server.map_or(Ok(None), |server| servers::instance(server, self.settings.nodes))
                })
                .into()
        })
    }

    fn ask_every(&self) -> Option<Duration> {
        self.settings.nodes.ask_whether_running.then_some(ASK_EVERY)
    }

    fn runs<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<InstanceState>> {
        Box::pin(async move {
            let Some(number) = server_number(id) else { return Lookup::Unknown(no_number(id)) };
            match self.ask(call, number).await {
                Ok(state) => Lookup::Present(state),
                Err(why) => Lookup::Unknown(why),
            }
        })
    }

    /// The API filters by name; whether it did is not taken for granted.
    fn find<'a>(&'a self, call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            if name.is_empty() {
                return Lookup::Unknown(Error::user_input("a server without a name cannot be looked up"));
            }
            match self.api.servers_named(call, name).await {
                Ok(listed) => named(&self.instances_of(listed), name),
                Err(why) => Lookup::Unknown(why),
            }
        })
    }
}

impl BinaryLaneProvider {
    fn instances_of(&self, listed: Listing<Item<Server, Named>>) -> Listing<Instance> {
        let (items, flaw) = servers::instances(listed.items, self.settings.nodes);
        Listing { items, short: listed.short.or(flaw) }
    }

    /// Asks, and follows the action that answers: it completes if the server runs, and fails if it does not.
    async fn ask(&self, call: &Call, server: i64) -> Result<InstanceState> {
        let mut job: Job = self.api.is_running(call, server).await?;
        for _ in 0..POLLS {
            match job.progress() {
                Progress::Completed => return Ok(InstanceState::Running),
                Progress::Errored(_) if job.status == "errored" => return Ok(InstanceState::Stopped),
                Progress::Errored(why) => return Err(undecided(&job, &why.unwrap_or_default())),
                Progress::Blocked(why) => return Err(undecided(&job, &why)),
                Progress::UnderWay => {}
            }
            tokio::time::sleep(POLL).await;
            job = match self.api.job(call, job.id).await.known()? {
                Some(job) => job,
                None => return Err(undecided(&job, "it is gone")),
            };
        }
        Err(undecided(&job, "it takes too long"))
    }
}

fn undecided(job: &Job, why: &str) -> Error {
    Error::temporary(format!("whether the server runs is not known from action {}: {why}", job.id))
}

fn no_number(id: &ProviderId) -> Error {
    Error::permanent(format!("{id} is not the id of a server; it should be {SCHEME}://NUMBER"))
}

/// The only server of this name, in any case. Several are an error that names them.
fn named(all: &Listing<Instance>, name: &str) -> Lookup<Instance> {
    let fits = |instance: &&Instance| instance.name.eq_ignore_ascii_case(name);
    let fitting: Vec<&Instance> = all.items.iter().filter(fits).collect();
    match (fitting.as_slice(), &all.short) {
        ([instance], None) => Lookup::Present((*instance).clone()),
        ([], None) => Lookup::Absent,
        ([] | [_], Some(why)) => {
            Lookup::Unknown(Error::temporary(format!("looking for server {name:?}: {why}")))
        }
        (several, _) => {
            let ids: Vec<_> = several.iter().map(|instance| instance.id.to_string()).collect();
            let text = format!("found more than one server called {name:?}: {}", ids.join(", "));
            Lookup::Unknown(Error::new(Category::Conflict, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::provider_id;

    fn server(number: i64, name: &str) -> Instance {
        Instance::new(provider_id(number).unwrap(), name)
    }

    #[test]
    fn a_name_finds_exactly_one_server() {
        let all = Listing::complete(vec![server(1, "other"), server(2, "kube-w1")]);
        for name in ["kube-w1", "Kube-W1"] {
            let id = named(&all, name).known().unwrap().map(|instance| instance.id.to_string());
            assert_eq!(id.as_deref(), Some("binarylane://2"), "BL-18 BL-20 {name}");
        }
        for name in ["kube", "kube-w1.example.com", "kube-w2"] {
            assert_eq!(named(&all, name), Lookup::Absent, "BL-20 {name}");
        }
        let twins = Listing::complete(vec![server(1, "a"), server(2, "a")]);
        let why = named(&twins, "a").known().unwrap_err();
        assert!(why.message().contains("binarylane://1, binarylane://2"), "BL-21 {why}");
        let short = Listing::short(vec![server(1, "a")], "half of it");
        for name in ["a", "b"] {
            assert!(
                named(&short, name).known().unwrap_err().message().contains("half of it"),
                "BL-25 {name}"
            );
        }
    }
}
