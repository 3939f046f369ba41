//! The API's resources as they go over the wire.
//!
//! Reading is lenient about fields that no decision needs: unknown keys are ignored, and what is missing is `None`. Where
//! a decision needs a field that the API always sends, a missing one does not mean "none" (law 1): the resource cannot be
//! read whole, and only its identity is known.

#![allow(missing_docs, reason = "the fields are those of the API's documentation")]

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};

/// A field that no decision needs: missing or `null` counts as empty.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// A text, or `None` if it cannot be read.
fn if_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(from)?.as_str().map(str::to_owned))
}

/// What is read of a resource whose other fields cannot be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Named {
    pub id: i64,
    /// The name; `None` where it cannot be read.
    #[serde(default, deserialize_with = "if_text")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Slug {
    pub slug: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Host {
    /// Empty on dedicated hosts.
    #[serde(default, deserialize_with = "or_default")]
    pub display_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Network {
    pub ip_address: String,
    /// `public`, `private`, or anything else.
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Networks {
    pub v4: Vec<Network>,
    pub v6: Vec<Network>,
    #[serde(default)]
    pub source_and_destination_check: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub id: i64,
    /// The host name. Nothing promises that it is unique.
    pub name: String,
    /// `new`, `active`, `off`, `archive`, and whatever comes later.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    #[serde(default)]
    pub vpc_id: Option<i64>,
    pub region: Slug,
    #[serde(default)]
    pub size: Option<Slug>,
    #[serde(default)]
    pub size_slug: Option<String>,
    #[serde(default)]
    pub host: Option<Host>,
    pub networks: Networks,
    #[serde(default)]
    pub cancelled_at: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BalancerStatus {
    /// It is being built and takes no connections.
    New,
    #[default]
    Active,
    Errored,
    /// A word that we do not know. It delays nothing.
    Other(String),
}

impl<'de> Deserialize<'de> for BalancerStatus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        Ok(match word.as_str() {
            "new" => Self::New,
            "active" => Self::Active,
            "errored" => Self::Errored,
            _ => Self::Other(word),
        })
    }
}

/// A forwarding rule is a protocol and nothing else: its port follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Rule {
    pub entry_protocol: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct HealthCheck {
    /// `http`, `https` or `both`.
    pub protocol: String,
    pub path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    pub id: i64,
    /// The name; not unique.
    pub name: String,
    /// Empty where it is not known yet.
    pub ip: String,
    pub status: BalancerStatus,
    #[serde(default, deserialize_with = "or_default")]
    pub created_at: String,
    pub forwarding_rules: Vec<Rule>,
    pub health_check: HealthCheck,
    /// Where it is; `None` is everywhere.
    #[serde(default)]
    pub region: Option<Slug>,
    pub server_ids: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewBalancer {
    pub name: String,
    pub forwarding_rules: Vec<Rule>,
    pub health_check: HealthCheck,
    pub server_ids: Vec<i64>,
    /// Where it goes for good; left out, it is everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// The whole of a load balancer: what is left out of an update falls back to defaults, the pool to an empty one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BalancerUpdate {
    pub name: String,
    pub forwarding_rules: Vec<Rule>,
    pub health_check: HealthCheck,
    pub server_ids: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerIds {
    pub server_ids: Vec<i64>,
}

/// What a mutation began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Links {
    #[serde(default, deserialize_with = "or_default")]
    pub actions: Vec<ActionLink>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ActionLink {
    pub id: i64,
}

/// The answer to a creation or an update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Changed {
    pub load_balancer: LoadBalancer,
    #[serde(default)]
    pub links: Option<Links>,
}

impl Changed {
    /// The action that the change is carried out by, where there is one.
    pub(crate) fn job(&self) -> Option<i64> {
        self.links.as_ref()?.actions.first().map(|link| link.id)
    }
}

/// An asynchronous action of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Job {
    pub id: i64,
    pub status: String,
    #[serde(default)]
    pub completed_at: Option<String>,
    #[serde(default)]
    pub blocking_invoice_id: Option<i64>,
    #[serde(default)]
    pub user_interaction_required: Option<Value>,
    /// Why it failed; often `null`. The `reason` beside it says what was attempted, so it is not read.
    #[serde(default, deserialize_with = "if_text")]
    pub error_message: Option<String>,
}

/// How far an action is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on by itself.
    UnderWay,
    /// It waits for a person, for ever if need be; this says for what.
    Blocked(String),
    Completed,
    /// It failed; why, where the API says so.
    Errored(Option<String>),
}

impl Job {
    /// How far it is. A status that is not known ends it as a failure.
    pub fn progress(&self) -> Progress {
        let ended = self.completed_at.is_some();
        match self.status.as_str() {
            "completed" => Progress::Completed,
            "errored" => Progress::Errored(self.error_message.clone().filter(|text| !text.trim().is_empty())),
            "in-progress" if !ended => match (&self.blocking_invoice_id, &self.user_interaction_required) {
                (Some(invoice), _) => Progress::Blocked(format!("invoice {invoice} is not paid")),
                (None, Some(question)) => {
                    Progress::Blocked(format!("it asks a question: {}", asked(question)))
                }
                (None, None) => Progress::UnderWay,
            },
            other => Progress::Errored(Some(format!("its status is {other:?}"))),
        }
    }
}

/// The kind of question, wherever in the answer it stands.
fn asked(question: &Value) -> String {
    let kind = question.as_str().or_else(|| question.as_object()?.values().find_map(Value::as_str));
    kind.unwrap_or("see the cloud's console").chars().take(80).collect()
}

/// An entry of a VPC's routing, with the text that the API sent: what others wrote goes back byte for byte.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    pub router: String,
    pub destination: String,
    pub description: Option<String>,
    pub raw: Box<RawValue>,
}

impl<'de> Deserialize<'de> for RouteEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Known {
            router: String,
            destination: String,
            #[serde(default)]
            description: Option<String>,
        }
        let raw = Box::<RawValue>::deserialize(from)?;
        let Known { router, destination, description } =
            serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { router, destination, description, raw })
    }
}

impl Serialize for RouteEntry {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(to)
    }
}

impl fmt::Display for RouteEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.destination, self.router)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct Vpc {
    pub id: i64,
    pub route_entries: Vec<RouteEntry>,
}

/// The change of a VPC. Only the entries: its name may have been changed by somebody else meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct VpcPatch<'a> {
    pub route_entries: &'a [RouteEntry],
}

#[cfg(test)]
mod tests {
    use cloudberth_http::Item;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_action_says_is_understood() {
        let blocked = |text: &str| Progress::Blocked(text.to_owned());
        let table = [
            ("", json!({"status": "in-progress"}), Progress::UnderWay),
            (
                "",
                json!({"status": "completed", "completed_at": "2026-03-02T04:05:06+00:00"}),
                Progress::Completed,
            ),
            (
                "BL-73",
                json!({"status": "in-progress", "blocking_invoice_id": 9}),
                blocked("invoice 9 is not paid"),
            ),
            (
                "BL-73",
                json!({"status": "in-progress", "user_interaction_required": {"interaction_type": "allow-unclean-power-off"}}),
                blocked("it asks a question: allow-unclean-power-off"),
            ),
            (
                "BL-152 the reason is what was attempted",
                json!({"status": "errored", "reason": "Creating the load balancer", "error_message": null}),
                Progress::Errored(None),
            ),
            (
                "BL-152 the message is why",
                json!({"status": "errored", "error_message": "no address is left"}),
                Progress::Errored(Some("no address is left".to_owned())),
            ),
            ("", json!({"status": "parked"}), Progress::Errored(Some("its status is \"parked\"".to_owned()))),
        ];
        for (case, mut body, want) in table {
            body["id"] = json!(7);
            let job: Job = serde_json::from_value(body.clone()).unwrap();
            assert_eq!(job.progress(), want, "{case} {body}");
        }
    }

    #[test]
    fn a_load_balancer_is_read_whole_or_known_by_its_id() {
        let body = json!({
            "id": 5512, "name": "web", "ip": "203.0.113.80", "status": "active", "created_at": "2026-03-02T04:05:06+00:00",
            "forwarding_rules": [{"entry_protocol": "http", "more": 1}], "health_check": {"protocol": "http", "path": "/"},
            "region": null, "server_ids": [1, 2], "unheard_of": {},
        });
        let whole: Item<LoadBalancer, Named> = serde_json::from_value(body.clone()).unwrap();
        assert!(matches!(&whole, Item::Whole(one) if one.region.is_none()), "BL-69 {whole:?}");
        for field in ["ip", "status", "forwarding_rules", "health_check", "server_ids", "name"] {
            let mut body = body.clone();
            body[field] = json!(null);
            let flawed: Item<LoadBalancer, Named> = serde_json::from_value(body).unwrap();
            assert!(matches!(&flawed, Item::Flawed(one) if one.identity.id == 5512), "L1-1600 {field}");
        }
    }

    #[test]
    fn an_entry_of_somebody_else_keeps_its_bytes() {
        let text =
            r#"{"destination" : "10.9.0.0/16","router":"10.240.0.9", "description":null,"later":[1, 2]}"#;
        let entry: RouteEntry = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&[entry]).unwrap(), format!("[{text}]"), "BL-123");
    }

    #[test]
    fn an_update_without_links_is_read() {
        let balancer = json!({
            "id": 1, "name": "a", "ip": "", "status": "new", "created_at": "x", "forwarding_rules": [],
            "health_check": {"protocol": "http", "path": "/"}, "server_ids": [],
        });
        for (links, want) in [
            (json!(null), None),
            (json!({"actions": null}), None),
            (json!({"actions": [{"id": 4, "rel": "update_load_balancer", "href": "x"}]}), Some(4)),
        ] {
            let body = json!({"load_balancer": balancer, "links": links});
            let changed: Changed = serde_json::from_value(body).unwrap();
            assert_eq!(changed.job(), want, "BL-103 {links}");
        }
    }
}
