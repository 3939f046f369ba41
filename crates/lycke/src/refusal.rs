//! Why a request is not carried out.

use crate::addresses::NoAddress;

/// A refusal, as the API answers it. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The methods that the path takes, where the method was the mistake.
    pub allowed: Option<String>,
}

impl Refusal {
    /// A refusal.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), allowed: None }
    }

    pub(crate) fn method(message: impl Into<String>, allowed: String) -> Self {
        Self { allowed: Some(allowed), ..Self::new(405, "method_not_allowed", message) }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_spec", message)
    }

    pub(crate) fn no_cluster(key: &str, known: &[&str]) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self::new(
            404,
            "cluster_not_found",
            format!("{key:?} is not a cluster of the inventory; there are: {known}"),
        )
    }
}

impl From<NoAddress> for Refusal {
    fn from(why: NoAddress) -> Self {
        match why {
            NoAddress::Taken(address, owner) => {
                Self::new(409, "address_taken", format!("{address} belongs to {owner}"))
            }
            NoAddress::NotInPool(address, pool) => Self::new(
                422,
                "address_not_in_pool",
                format!("{address} cannot be given to this load balancer; its pool is {pool}"),
            ),
            NoAddress::Exhausted(pool) => {
                Self::new(503, "pool_exhausted", format!("every address of {pool} is taken"))
            }
            NoAddress::NoFamily(_, pool) if pool.is_empty() => {
                Self::invalid("addressMode: this mode has no address at all: the inventory names no pool")
            }
            NoAddress::NoFamily(family, pool) => {
                let family = family.as_str();
                let message = format!("families: {family:?} has no address here; the pool is {pool}");
                Self::new(422, "family_not_available", message)
            }
        }
    }
}
