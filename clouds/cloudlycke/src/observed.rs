//! What there is for one Service.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use cloudberth_core::lb::Located;

use crate::{
    action::{Refused, Unavailable},
    machines::Facts,
    wire::LoadBalancer,
};

/// A node and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendMachine {
    pub node: String,
    pub facts: Facts,
}

/// What there is for one Service. There may be no load balancer yet; the machines are known all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The load balancer, if there is one.
    pub existing: Option<LoadBalancer>,
    /// The machines of the nodes that should be behind it.
    pub machines: Located<BackendMachine>,
    /// What was asked for and refused in this turn or a while ago.
    pub refused: Vec<Refused>,
    /// The service has taken the newest spec in this turn, so that nothing is left of an address mode that an annotation
    /// asked for earlier.
    pub mode_is_sent: bool,
}

impl Observed {
    /// Why the service does not give something in this address mode, if it has said so.
    pub(crate) fn why_not(&self, what: &Unavailable, mode: Option<&str>) -> Option<&str> {
        let refused = self.refused.iter().find(|one| one.what == *what && one.mode.as_deref() == mode);
        refused.map(|one| one.why.as_str())
    }

    /// Takes in what was refused just now.
    pub(crate) fn learn(&mut self, refused: &Refused) {
        self.refused.retain(|one| (&one.what, &one.mode) != (&refused.what, &refused.mode));
        self.refused.push(refused.clone());
    }
}
