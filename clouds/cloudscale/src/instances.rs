//! Instances: one listing, one lookup by id, one by name.

use cloudberth_core::{
    Call, Category, Error, Instance, Instances, Listing, Lookup, ProviderId, Result, provider::Boxed,
};

use crate::{
    provider::CloudscaleProvider,
    servers,
    uuid::{SCHEME, ServerId, server_id},
};

impl Instances for CloudscaleProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let Listing { items, short } = self.api.servers(call).await?;
            let (items, flaw) = servers::instances(items);
            Ok(Listing { items, short: short.or(flaw) })
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            let ServerId::Known(id) = server_id(&id.to_string()) else {
                let text = format!("{id} is not the id of a server; it should be {SCHEME}://UUID");
                return Lookup::Unknown(Error::permanent(text));
            };
            let server = self.api.server(call, &id).await.known();
            server.and_then(|server| server.map(servers::instance).transpose()).into()
        })
    }

    /// The API cannot filter by name, so this is a listing too.
    fn find<'a>(&'a self, call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            match self.list(call).await {
                Ok(all) => named(&all, name),
                Err(why) => Lookup::Unknown(why),
            }
        })
    }
}

/// The only server with exactly this name. Several are an error that names them.
fn named(all: &Listing<Instance>, name: &str) -> Lookup<Instance> {
    let fitting: Vec<&Instance> = all.items.iter().filter(|instance| instance.name == name).collect();
    match (fitting.as_slice(), &all.short) {
        ([instance], None) => Lookup::Present((*instance).clone()),
        ([], None) => Lookup::Absent,
        ([] | [_], Some(why)) => {
            Lookup::Unknown(Error::temporary(format!("listing servers for {name:?}: {why}")))
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

    fn server(uuid: &str, name: &str) -> Instance {
        Instance::new(ProviderId::new(SCHEME, uuid).unwrap(), name)
    }

    const ONE: &str = "00000000-0000-4000-8000-000000000001";
    const TWO: &str = "00000000-0000-4000-8000-000000000002";

    #[test]
    fn a_name_finds_exactly_one_server() {
        let all = Listing::complete(vec![server(ONE, "a"), server(TWO, "b")]);
        let id = named(&all, "b").known().unwrap().map(|instance| instance.id.to_string());
        assert_eq!(id, Some(format!("cloudscale://{TWO}")), "CS-29");
        for (case, name) in [("CS-36 unknown", "c"), ("CS-36 empty", ""), ("another case", "A")] {
            assert_eq!(named(&all, name), Lookup::Absent, "{case}");
        }
        assert_eq!(named(&Listing::complete(vec![]), "a"), Lookup::Absent, "CS-37");
    }

    #[test]
    fn two_of_a_name_are_told_and_not_chosen_from() {
        let all = Listing::complete(vec![server(ONE, "a"), server(TWO, "a")]);
        let why = named(&all, "a").known().unwrap_err();
        let text = why.message();
        assert!(text.contains("more than one") && text.contains(ONE) && text.contains(TWO), "CS-31 {text}");
    }

    #[test]
    fn a_listing_that_lacks_something_can_deny_nothing_and_choose_nothing() {
        let all = Listing::short(vec![server(ONE, "a")], "half of it");
        for name in ["a", "b"] {
            assert!(named(&all, name).known().unwrap_err().message().contains("half of it"), "L1-802 {name}");
        }
    }
}
