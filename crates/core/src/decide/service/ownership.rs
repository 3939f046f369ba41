//! Is the load balancer that was found this Service's? (law 3)
//!
//! A provider finds candidates: by the recorded id, by the name, by the name of a creation that was never answered. That
//! something was found does not make it ours. A name that a user gives may be anybody's, and an id is copied around with
//! the rest of a manifest.
//!
//! | what there is | verdict |
//! |---|---|
//! | the name was generated for this Service, or the status shows one of its addresses | proven |
//! | its name was generated for another Service | another's, until a person says otherwise |
//! | its id is recorded, a creation of that name was intended, or a person says so | told |
//! | nothing but a name that somebody gave | not proven |
//!
//! Nobody can write the status of a Service along with its manifest, so a published address is not copied.
//!
//! [`LoadBalancers`](crate::lb::LoadBalancers) asks before every turn, so no provider can forget to.

use crate::{
    lb::{Goal, INTENT_ANNOTATION, Identity, LockKey, LockKind, Name, Refusal, intended_name},
    net::parse_ip,
    reason,
    view::ServiceView,
};

/// The annotation with which a person says that a load balancer is this Service's from now on; the value is its id.
pub const ADOPT_ANNOTATION: &str = "cloudberth.dev/adopt-load-balancer";

/// Whose a load balancer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This Service's: its name or the published address shows it.
    Proven,
    /// This Service's, by what stands on the Service: a recorded id, an intent, or the word of a person.
    Told,
    /// Only a name leads to it, which anybody could have given.
    NotProven,
    /// It was made for the Service with this UID.
    AnotherServices {
        /// The UID that its name carries.
        uid: String,
    },
}

/// Whose a load balancer is that was found for `service`, which makes these `claims` and would call a new one `name`.
#[must_use]
pub fn judge(service: &ServiceView, claims: &[LockKey], name: &Name, found: &Identity) -> Ownership {
    let made_for = found.made_for.as_deref();
    let named = name.generated && name.text == found.name;
    if named || made_for.is_some_and(|uid| is_uid_of(uid, service)) || shows_address(service, found) {
        return Ownership::Proven;
    }
    let adopted = service.annotations.get(ADOPT_ANNOTATION) == Some(&found.id);
    if let Some(uid) = made_for.filter(|uid| !adopted && looks_like_uid(uid)) {
        return Ownership::AnotherServices { uid: uid.to_owned() };
    }
    let recorded = claims.contains(&LockKey::new(LockKind::Id, found.id.as_str()));
    if adopted || recorded || is_intended(service, claims, found) {
        Ownership::Told
    } else {
        Ownership::NotProven
    }
}

/// Whether a recorded intent may be the reason why the load balancer is there. One from before intents had names speaks of
/// the name that the Service has now.
fn is_intended(service: &ServiceView, claims: &[LockKey], found: &Identity) -> bool {
    match intended_name(service) {
        Some(name) => name == found.name,
        None => {
            service.annotations.contains_key(INTENT_ANNOTATION)
                && claims.contains(&LockKey::new(LockKind::Name, found.name.as_str()))
        }
    }
}

/// Whether the status shows an address of the load balancer itself.
fn shows_address(service: &ServiceView, found: &Identity) -> bool {
    let own: Vec<_> = found.addresses.iter().filter_map(|text| parse_ip(text)).collect();
    let shown = service.ingress.iter().filter_map(|entry| parse_ip(entry.ip.as_deref()?));
    shown.into_iter().any(|ip| own.contains(&ip))
}

/// No name holds less of a UID: the shortest that the replaced programs make has 31 of its 32 digits.
const DIGITS: usize = 28;

/// A UID as names hold it: perhaps without dashes, perhaps cut.
fn digits(uid: &str) -> String {
    uid.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect()
}

fn is_uid_of(carried: &str, service: &ServiceView) -> bool {
    let (carried, own) = (digits(carried), digits(&service.uid));
    !own.is_empty() && (carried == own || (carried.len() >= DIGITS && own.starts_with(&carried)))
}

fn looks_like_uid(carried: &str) -> bool {
    let digits = digits(carried);
    (DIGITS..=32).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Why nothing is done about a load balancer, where it is not ours. `id_annotation` is the one in which its id would be
/// recorded.
#[must_use]
pub fn refusal(
    verdict: &Ownership,
    found: &Identity,
    goal: Goal,
    id_annotation: Option<&str>,
) -> Option<Refusal> {
    let Identity { id, name, .. } = found;
    let id_annotation = id_annotation.unwrap_or("the annotation that records its id");
    let (reason, field, message) = match (verdict, goal) {
        (Ownership::Proven | Ownership::Told, _) => return None,
        (Ownership::NotProven, Goal::Present) => (
            reason::LOAD_BALANCER_NOT_PROVEN,
            id_annotation,
            format!(
                "a load balancer called {name:?} exists ({id}), and nothing shows that it is this Service's, so it is \
                 not touched, and no second one of that name is created; to adopt it, set this annotation to {id}, \
                 otherwise give another name"
            ),
        ),
        (Ownership::NotProven, Goal::Gone) => (
            reason::LOAD_BALANCER_NOT_PROVEN,
            id_annotation,
            format!(
                "load balancer {name:?} ({id}) stays: nothing shows that it is this Service's; delete it by hand if \
                 nobody needs it"
            ),
        ),
        (Ownership::AnotherServices { uid }, Goal::Present) => (
            reason::LOAD_BALANCER_OF_ANOTHER_SERVICE,
            ADOPT_ANNOTATION,
            format!(
                "load balancer {name:?} ({id}) was made for another Service, whose UID is {uid}, so it is not \
                 touched; if it is to be this Service's from now on, because the Service was restored or created anew, \
                 set this annotation to {id}, otherwise remove {id_annotation}"
            ),
        ),
        (Ownership::AnotherServices { uid }, Goal::Gone) => (
            reason::LOAD_BALANCER_OF_ANOTHER_SERVICE,
            ADOPT_ANNOTATION,
            format!(
                "load balancer {name:?} ({id}) stays: it was made for another Service, whose UID is {uid}, and \
                 nobody has said by this annotation that it is this Service's; delete it by hand if nobody needs it"
            ),
        ),
    };
    Some(Refusal { reason, field: field.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::service::testing::{MARK, annotated, service},
        view::Ingress,
    };

    const OWN: &str = "7d1c4b8e-0000-4000-8000-00000000aaaa";
    const OTHER: &str = "7d1c4b8e-0000-4000-8000-00000000bbbb";
    const TIME: &str = "2026-03-02T04:05:00Z";

    fn own() -> ServiceView {
        ServiceView { uid: OWN.to_owned(), ..service() }
    }

    fn shown(mut view: ServiceView, ip: &str) -> ServiceView {
        view.ingress = vec![Ingress { ip: Some(ip.to_owned()), ..Ingress::default() }];
        view
    }

    fn found(name: &str, made_for: Option<&str>) -> Identity {
        Identity {
            id: "7".to_owned(),
            name: name.to_owned(),
            made_for: made_for.map(str::to_owned),
            addresses: vec!["192.0.2.1".to_owned(), "2001:db8::1".to_owned()],
        }
    }

    /// As a provider would: the id where one is recorded, and the name.
    fn verdict(view: &ServiceView, name: &Name, found: &Identity) -> Ownership {
        let id = view.annotations.get(MARK).map(|id| LockKey::new(LockKind::Id, id));
        let claims: Vec<_> =
            [LockKey::new(LockKind::Name, name.text.as_str())].into_iter().chain(id).collect();
        judge(view, &claims, name, found)
    }

    #[test]
    fn whose_it_is() {
        use Ownership::{NotProven, Proven, Told};
        let prod = || found("prod", None);
        let generated = |uid: &str| found(&format!("k8s-{uid}"), Some(uid));
        let recorded = |id: &str| annotated(own(), MARK, id);
        let intent = |value: &str| annotated(own(), INTENT_ANNOTATION, value);
        let adopt = |view, id: &str| annotated(view, ADOPT_ANNOTATION, id);
        let another = |uid: &str| Ownership::AnotherServices { uid: uid.to_owned() };
        let table = [
            ("L3-300 nothing but a name that was given", own(), prod(), NotProven),
            ("its id is recorded", recorded("7"), prod(), Told),
            ("L3-301 another id is recorded", recorded("8"), prod(), NotProven),
            ("a creation of that name was intended", intent("2026-03-02T04:05:00Z prod"), prod(), Told),
            ("L3-302 one of another name was", intent("2026-03-02T04:05:00Z web"), prod(), NotProven),
            ("an intent from before they had names", intent(TIME), prod(), Told),
            ("L3-303 that intent speaks of another name", intent(TIME), found("old", None), NotProven),
            ("its address is published", shown(own(), "192.0.2.1"), prod(), Proven),
            ("in another spelling", shown(own(), "2001:DB8:0::1"), prod(), Proven),
            ("L3-304 another address is published", shown(own(), "192.0.2.2"), prod(), NotProven),
            ("a person says so", adopt(own(), "7"), prod(), Told),
            ("L3-305 a person speaks of another one", adopt(own(), "8"), prod(), NotProven),
            ("the name carries our UID", own(), generated(OWN), Proven),
            ("without dashes, and cut", own(), generated("7d1c4b8e00004000800000000000aaa"), Proven),
            (
                "L3-306 a copied id: the name carries another UID",
                recorded("7"),
                generated(OTHER),
                another(OTHER),
            ),
            (
                "L3-307 without dashes, and cut",
                recorded("7"),
                generated("7d1c4b8e00004000800000000000bbb"),
                another("7d1c4b8e00004000800000000000bbb"),
            ),
            (
                "L3-308 an intent does not make it ours",
                intent(&format!("{TIME} k8s-{OTHER}")),
                generated(OTHER),
                another(OTHER),
            ),
            ("a person confirms the copied id", adopt(recorded("7"), "7"), generated(OTHER), Told),
            ("L3-309 not that of another one", adopt(recorded("7"), "8"), generated(OTHER), another(OTHER)),
            (
                "made for another, and its address is ours",
                shown(recorded("7"), "192.0.2.1"),
                generated(OTHER),
                Proven,
            ),
            ("a name that only begins like one of ours", recorded("7"), generated("prod"), Told),
        ];
        for (case, view, found, want) in table {
            let name = Name { text: "prod".to_owned(), generated: false };
            assert_eq!(verdict(&view, &name, &found), want, "{case}");
        }
    }

    #[test]
    fn a_generated_name_is_enough() {
        let found = found("c1-shop-web", None);
        let name = |generated| Name { text: "c1-shop-web".to_owned(), generated };
        assert_eq!(verdict(&own(), &name(true), &found), Ownership::Proven);
        assert_eq!(verdict(&own(), &name(false), &found), Ownership::NotProven);
        let nobody = ServiceView { uid: String::new(), ..service() };
        let unnamed = Identity { made_for: Some(String::new()), ..found };
        assert_eq!(verdict(&nobody, &name(false), &unnamed), Ownership::NotProven, "no UID is nobody's UID");
    }

    #[test]
    fn what_people_are_told() {
        let another = Ownership::AnotherServices { uid: OTHER.to_owned() };
        let say = |verdict: &Ownership, goal| {
            refusal(verdict, &found("prod", None), goal, Some(MARK)).map(|refusal| refusal.to_string())
        };
        let not_proven = say(&Ownership::NotProven, Goal::Present).unwrap();
        assert!(not_proven.starts_with(&format!("{MARK}: ")), "L3-310 {not_proven}");
        assert!(not_proven.contains("set this annotation to 7"), "L3-310 {not_proven}");
        let held = say(&another, Goal::Present).unwrap();
        assert!(held.starts_with(&format!("{ADOPT_ANNOTATION}: ")) && held.contains(OTHER), "L3-311 {held}");
        assert!(held.contains("set this annotation to 7") && held.contains(MARK), "L3-311 {held}");
        for verdict in [&another, &Ownership::NotProven] {
            let gone = say(verdict, Goal::Gone).unwrap();
            assert!(gone.contains("(7) stays"), "L3-312 {gone}");
        }
        for verdict in [Ownership::Proven, Ownership::Told] {
            assert_eq!(say(&verdict, Goal::Present), None);
        }
    }
}
