//! The Secrets of a project: the token here, and the same token downstream.
//!
//! The Secret here is the source of truth. A token that exists is never replaced, unless a person asks for it.

use serde_json::{Value, json};

use super::{Change, balancer::SecretType, data, is_hands_off};
use crate::{
    names::{RECORDED_POOL, ROTATE, project_secret},
    view::entry,
};

/// The token of a project, byte for byte as it is compared. It cannot be printed (law 10).
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// Sixteen random bytes as 32 characters, without a newline.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(data::hex(&bytes).into_bytes())
    }

    /// The bytes, for hashes and Secrets.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token([redacted])")
    }
}

/// The Secret here, and the token in it when that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// What is to be done to it.
    pub change: Change,
    /// The token.
    pub token: Token,
    /// The token is new.
    pub fresh: bool,
}

/// What is to be done to the Secret here, given what was read; `None` is a positive answer that there is none. `fresh`
/// draws a token, and is called only if there is none. Nothing if a person keeps us away from a Secret without a token.
pub fn local<E>(
    existing: Option<&Value>,
    namespace: &str,
    project: &str,
    fresh: impl FnOnce() -> Result<[u8; 16], E>,
) -> Result<Option<Local>, E> {
    let Some(existing) = existing else {
        let token = Token::from_random(fresh()?);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": project_secret(project), "namespace": namespace},
            "data": {"clientSecret": data::encode(token.expose()), "project": data::encode(project)},
        });
        return Ok(Some(Local { change: Change::Create(secret), token, fresh: true }));
    };
    let held = data::bytes(existing, "clientSecret").filter(|token| !token.is_empty()).map(Token);
    if is_hands_off(existing) {
        return Ok(held.map(|token| Local { change: Change::Keep, token, fresh: false }));
    }
    let rotate = entry(existing, "annotations", ROTATE) == Some("true");
    let (token, fresh) = match held {
        Some(token) if !rotate => (token, false),
        _ => (Token::from_random(fresh()?), true),
    };
    if !fresh && data::text(existing, "project") == project {
        return Ok(Some(Local { change: Change::Keep, token, fresh }));
    }
    let mut new = existing.clone();
    if let Some(map) = data::map_mut(&mut new, "data") {
        map.insert("clientSecret".to_owned(), data::encode(token.expose()));
        map.insert("project".to_owned(), data::encode(project));
    }
    if let Some(annotations) = new.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ROTATE);
    }
    Ok(Some(Local { change: Change::Replace(new), token, fresh }))
}

/// What a downstream cluster is to be told about a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The project's id.
    pub project: String,
    /// The id of the downstream cluster.
    pub cluster: String,
    /// The address of the floating-IP API.
    pub api_url: String,
    /// The token.
    pub token: Token,
    /// The pool that follows from the pools there are.
    pub pool: String,
}

/// What is to be done to the downstream Secret. Keys of others stay. A pool that somebody chose by hand stays as long as it
/// exists.
pub fn downstream(
    existing: Option<&Value>,
    namespace: &str,
    delivery: &Delivery,
    balancer: SecretType,
    pool_exists: impl Fn(&str) -> bool,
) -> Change {
    if existing.is_some_and(is_hands_off) {
        return Change::Keep;
    }
    let name = project_secret(&delivery.project);
    let blank = || {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": namespace}, "data": {}})
    };
    let mut new = existing.cloned().unwrap_or_else(blank);
    let pool_now = data::text(&new, "floatingIPPool");
    let recorded = entry(&new, "annotations", RECORDED_POOL).map(str::to_owned);
    let pool = if pool_now.is_empty() || !pool_exists(&pool_now) || recorded.as_ref() == Some(&pool_now) {
        delivery.pool.clone()
    } else {
        pool_now.clone()
    };
    let balancer_now = data::text(&new, "loadBalancerType");
    let balancer = match balancer {
        SecretType::KeepOr(_) if !balancer_now.is_empty() => balancer_now,
        SecretType::KeepOr(kind) | SecretType::Exactly(kind) => kind.name().to_owned(),
    };
    let wanted: [(&str, &[u8]); 6] = [
        ("apiUrl", delivery.api_url.as_bytes()),
        ("cluster", delivery.cluster.as_bytes()),
        ("clientSecret", delivery.token.expose()),
        ("project", delivery.project.as_bytes()),
        ("floatingIPPool", pool.as_bytes()),
        ("loadBalancerType", balancer.as_bytes()),
    ];
    if let Some(map) = data::map_mut(&mut new, "data") {
        for (key, value) in wanted {
            map.insert(key.to_owned(), data::encode(value));
        }
    }
    if pool != pool_now {
        data::set_entry(&mut new, "annotations", RECORDED_POOL, &pool);
    }
    match existing {
        None => Change::Create(new),
        Some(existing) if *existing == new => Change::Keep,
        Some(_) => Change::Replace(new),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{names::MANAGED, plan::balancer::Kind};

    #[allow(clippy::unnecessary_wraps, reason = "the source of tokens may fail")]
    fn draw() -> Result<[u8; 16], Infallible> {
        Ok([0xab; 16])
    }

    fn never() -> Result<[u8; 16], Infallible> {
        panic!("a token was drawn although one exists")
    }

    #[allow(clippy::needless_pass_by_value, reason = "tables read better without references")]
    fn secret(data: Value, annotations: Value) -> Value {
        json!({"metadata": {"name": "rancher-fip-config-p-1", "namespace": "c-h", "uid": "u", "resourceVersion": "3",
            "annotations": annotations}, "data": data})
    }

    const TOKEN: &str = "abababababababababababababababab";

    #[test]
    fn a_token_is_drawn_only_where_there_is_none() {
        let Local { change, token, .. } = local(None, "c-h", "p-1", draw).unwrap().unwrap();
        let Change::Create(new) = &change else { panic!() };
        assert_eq!(data::text(new, "clientSecret"), TOKEN, "RF-133");
        assert!(token.expose().len() == 32 && token.expose().iter().all(u8::is_ascii_hexdigit), "RF-133");
        assert_eq!(
            (&new["metadata"]["namespace"], data::text(new, "project").as_str()),
            (&json!("c-h"), "p-1"),
            "RF-153"
        );
        let again = local(Some(new), "c-h", "p-1", never).unwrap().unwrap();
        assert_eq!((again.change, again.token), (Change::Keep, token), "RF-136 RF-29");

        let by_hand = secret(
            json!({"clientSecret": data::encode("T\n"), "project": data::encode("p-1"), "x": "eA=="}),
            json!({}),
        );
        let kept = local(Some(&by_hand), "c-h", "p-1", never).unwrap().unwrap();
        assert_eq!((kept.change, kept.token.expose()), (Change::Keep, &b"T\n"[..]), "RF-135 byte for byte");
    }

    #[test]
    fn an_empty_token_is_replaced_and_a_wrong_project_is_corrected() {
        for empty in [json!({"clientSecret": "", "x": "eA=="}), json!({"x": "eA=="})] {
            let found = local(Some(&secret(empty, json!({}))), "c-h", "p-1", draw).unwrap().unwrap();
            let new = found.change.object().unwrap();
            assert_eq!(data::text(new, "clientSecret"), TOKEN, "RF-141 RF-227");
            assert_eq!(
                (data::text(new, "x").as_str(), &new["metadata"]["resourceVersion"]),
                ("x", &json!("3")),
                "RF-147"
            );
            assert_eq!(
                local(Some(new), "c-h", "p-1", never).unwrap().unwrap().change,
                Change::Keep,
                "RF-141 and then stable"
            );
        }
        let wrong =
            secret(json!({"clientSecret": data::encode("T"), "project": data::encode("p-2")}), json!({}));
        let found = local(Some(&wrong), "c-h", "p-1", never).unwrap().unwrap();
        assert_eq!(data::text(found.change.object().unwrap(), "project"), "p-1");
        assert_eq!(found.token.expose(), b"T");
    }

    #[test]
    fn a_person_can_ask_for_a_new_token_and_for_none_at_all() {
        let held = json!({"clientSecret": data::encode("T"), "project": data::encode("p-1")});
        let rotate = secret(held.clone(), json!({ROTATE: "true", "note": "keep"}));
        let found = local(Some(&rotate), "c-h", "p-1", draw).unwrap().unwrap();
        let new = found.change.object().unwrap();
        assert_eq!((data::text(new, "clientSecret").as_str(), found.fresh), (TOKEN, true));
        assert_eq!(new["metadata"]["annotations"], json!({"note": "keep"}), "once");
        let hands_off = secret(held, json!({MANAGED: "false", ROTATE: "true"}));
        assert_eq!(
            local(Some(&hands_off), "c-h", "p-1", never).unwrap().unwrap().change,
            Change::Keep,
            "RF-151"
        );
        let empty = secret(json!({}), json!({MANAGED: "false"}));
        assert_eq!(
            local(Some(&empty), "c-h", "p-1", never).unwrap(),
            None,
            "RF-151 an empty one is never delivered"
        );
    }

    #[test]
    fn a_token_is_not_shown() {
        let found = local(None, "c-h", "p-1", draw).unwrap().unwrap();
        assert!(!format!("{found:?}").contains("abab"), "RF-152 law 10");
    }

    fn delivery() -> Delivery {
        Delivery {
            project: "p-1".to_owned(),
            cluster: "c-m-guest01".to_owned(),
            api_url: "https://api/v1".to_owned(),
            token: Token(TOKEN.into()),
            pool: "harv01--vlan10".to_owned(),
        }
    }

    const PURE: SecretType = SecretType::Exactly(Kind::PureLb);

    fn plan(existing: Option<&Value>, delivery: &Delivery, balancer: SecretType) -> Change {
        downstream(existing, "fip", delivery, balancer, |pool| {
            ["harv01--vlan10", "new", "other"].contains(&pool)
        })
    }

    fn read(secret: &Value) -> Vec<String> {
        let keys = ["apiUrl", "cluster", "clientSecret", "project", "floatingIPPool", "loadBalancerType"];
        keys.iter().map(|key| data::text(secret, key)).collect()
    }

    #[test]
    fn everything_is_delivered_and_nothing_twice() {
        let Change::Create(new) = plan(None, &delivery(), PURE) else { panic!() };
        let want = ["https://api/v1", "c-m-guest01", TOKEN, "p-1", "harv01--vlan10", "purelb"];
        assert_eq!(read(&new), want, "RF-91 RF-79 RF-133 RF-156");
        assert_eq!((&new["type"], &new["metadata"]["namespace"]), (&json!("Opaque"), &json!("fip")));
        assert_eq!(plan(Some(&new), &delivery(), PURE), Change::Keep, "RF-136 RF-166");
        let other = Delivery { cluster: "c-m-guest02".to_owned(), ..delivery() };
        let Change::Create(second) = plan(None, &other, PURE) else { panic!() };
        assert_eq!(data::text(&second, "clientSecret"), TOKEN, "RF-137 the same token in both");
        assert_ne!(read(&new)[1], read(&second)[1], "RF-137");
    }

    #[test]
    fn what_differs_is_corrected_and_what_others_added_stays() {
        let Change::Create(mut old) = plan(None, &delivery(), PURE) else { panic!() };
        old["data"]["extra"] = json!("eA==");
        old["data"]["clientSecret"] = data::encode("edited");
        old["data"].as_object_mut().unwrap().remove("loadBalancerType");
        let changed = Delivery { api_url: "https://new/v1".to_owned(), ..delivery() };
        let new = plan(Some(&old), &changed, SecretType::Exactly(Kind::MetalLb)).object().unwrap().clone();
        let want = ["https://new/v1", "c-m-guest01", TOKEN, "p-1", "harv01--vlan10", "metallb"];
        assert_eq!(read(&new), want, "RF-140 RF-144 RF-145 RF-139 RF-227");
        assert_eq!(data::text(&new, "extra"), "x", "RF-147");
        let mut hands_off = old.clone();
        data::set_entry(&mut hands_off, "annotations", MANAGED, "false");
        assert_eq!(plan(Some(&hands_off), &changed, PURE), Change::Keep, "RF-151");
    }

    #[test]
    fn a_pool_that_was_chosen_by_hand_stays_while_it_exists() {
        let with = |pool: &str, recorded: Option<&str>| {
            let Change::Create(mut secret) = plan(None, &delivery(), PURE) else { panic!() };
            secret["data"]["floatingIPPool"] = data::encode(pool);
            match recorded {
                Some(recorded) => data::set_entry(&mut secret, "annotations", RECORDED_POOL, recorded),
                None => secret["metadata"]["annotations"] = json!({}),
            }
            secret
        };
        let derived = Delivery { pool: "new".to_owned(), ..delivery() };
        let table = [
            ("RF-146 by hand", with("other", Some("harv01--vlan10")), "other"),
            ("RF-146 by hand, on a cluster of the Go program", with("other", None), "other"),
            ("RF-146 it vanished", with("gone", None), "new"),
            ("it is empty", with("", None), "new"),
            ("ours, and another follows now", with("harv01--vlan10", Some("harv01--vlan10")), "new"),
        ];
        for (case, existing, want) in table {
            let change = plan(Some(&existing), &derived, PURE);
            let secret = change.object().unwrap_or(&existing);
            assert_eq!(data::text(secret, "floatingIPPool"), want, "{case}");
        }
        let of_go = with("harv01--vlan10", None);
        assert_eq!(plan(Some(&of_go), &delivery(), PURE), Change::Keep, "a takeover writes nothing");
    }

    #[test]
    fn an_unclear_balancer_leaves_the_type_alone() {
        let Change::Create(old) = plan(None, &delivery(), PURE) else { panic!() };
        assert_eq!(plan(Some(&old), &delivery(), SecretType::KeepOr(Kind::MetalLb)), Change::Keep, "RF-90");
        let Change::Create(new) = plan(None, &delivery(), SecretType::KeepOr(Kind::PureLb)) else { panic!() };
        assert_eq!(data::text(&new, "loadBalancerType"), "purelb", "RF-84");
    }
}
