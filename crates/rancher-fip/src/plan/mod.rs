//! The decisions: pure functions of what was read.
//!
//! ```text
//!   select      which clusters take part
//!   kubeconfig  which Secret holds the way into a cluster
//!   chain       from a cluster on Harvester to its project and network
//!   pools       which pools belong to a cluster, and which one is the default
//!   balancer    PureLB or MetalLB, and when neither
//!   map, secret, ca   the objects that are delivered
//!   restart     what the load-balancer controller has read, and when it has to read again
//!   release     which labels a floating IP loses when its cluster is gone
//!   quota       what a quota asks for
//!   version     which version of the floating-IP kinds is used
//! ```

pub mod balancer;
pub mod ca;
pub mod chain;
pub mod data;
pub mod kubeconfig;
pub mod map;
pub mod pools;
pub mod quota;
pub mod release;
pub mod restart;
pub mod secret;
pub mod select;
pub mod version;

use serde_json::Value;

use crate::{names::MANAGED, view::entry};

/// What is to be done to one object.
#[derive(Clone, PartialEq)]
pub enum Change {
    /// It is as it should be, or not ours to change.
    Keep,
    /// It is to be created like this.
    Create(Value),
    /// It is to be replaced by this, which is the object as it was read, changed.
    Replace(Value),
}

/// Shows nothing of the object: it may be a Secret (law 10).
impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Create(_) => "Create",
            Self::Replace(_) => "Replace",
        })
    }
}

impl Change {
    /// The object after the change, if it is changed.
    pub const fn object(&self) -> Option<&Value> {
        match self {
            Self::Keep => None,
            Self::Create(object) | Self::Replace(object) => Some(object),
        }
    }
}

/// Whether a person asked us to keep away from an object.
pub fn is_hands_off(object: &Value) -> bool {
    entry(object, "annotations", MANAGED) == Some("false")
}
