//! The certificate authority downstream.

use serde_json::{Value, json};

use super::{Change, data, is_hands_off};
use crate::names::{CA_KEY, CA_SECRET};

/// What is to be done to the downstream Secret `cacerts`. Its other keys stay, and it is never deleted.
pub fn plan(existing: Option<&Value>, namespace: &str, ca: Option<&[u8]>) -> Change {
    let Some(ca) = ca else { return Change::Keep };
    let Some(existing) = existing else {
        return Change::Create(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": CA_SECRET, "namespace": namespace}, "data": {CA_KEY: data::encode(ca)},
        }));
    };
    if is_hands_off(existing) || data::bytes(existing, CA_KEY).as_deref() == Some(ca) {
        return Change::Keep;
    }
    let mut new = existing.clone();
    if let Some(map) = data::map_mut(&mut new, "data") {
        map.insert(CA_KEY.to_owned(), data::encode(ca));
    }
    Change::Replace(new)
}

/// Whether a copy stays downstream although there is no CA here.
pub fn is_left(existing: Option<&Value>, ca: Option<&[u8]>) -> bool {
    ca.is_none() && existing.is_some_and(|secret| data::bytes(secret, CA_KEY).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::MANAGED;

    #[test]
    fn the_authority_follows_the_one_here() {
        let Change::Create(new) = plan(None, "fip", Some(b"one")) else { panic!() };
        assert_eq!(new["data"], json!({"ca.crt": data::encode("one")}), "RF-149 exactly one key");
        assert_eq!(plan(Some(&new), "fip", Some(b"one")), Change::Keep);
        assert_eq!(
            data::text(plan(Some(&new), "fip", Some(b"two")).object().unwrap(), "ca.crt"),
            "two",
            "RF-149"
        );
        assert_eq!(
            (plan(Some(&new), "fip", None), is_left(Some(&new), None)),
            (Change::Keep, true),
            "RF-149"
        );
        assert_eq!((plan(None, "fip", None), is_left(None, None)), (Change::Keep, false), "RF-12");
        let mut shared = new.clone();
        shared["data"]["tls.crt"] = json!("eA==");
        let changed = plan(Some(&shared), "fip", Some(b"two"));
        assert_eq!(data::text(changed.object().unwrap(), "tls.crt"), "x", "RF-150");
        data::set_entry(&mut shared, "annotations", MANAGED, "false");
        assert_eq!(plan(Some(&shared), "fip", Some(b"two")), Change::Keep, "RF-151");
    }
}
