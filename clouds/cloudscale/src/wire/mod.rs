//! The API's resources as they go over the wire.
//!
//! Reading is lenient about fields that no decision needs: unknown keys are ignored, and what is missing is `None`. Where
//! a decision needs a field that the API always sends, a missing one does not mean "none" (law 1): the resource cannot be
//! read whole, and only its identity and its parent are known. A listing in which not even these can be read proves
//! nothing.

#![allow(missing_docs, reason = "the fields are those of the API's documentation")]

mod identity;
mod read;
mod write;

pub use identity::{FloatingIdentity, Named, PartIdentity};
pub use read::{
    BalancerStatus, FlavorStub, FloatingIp, HealthMonitor, HttpOptions, Interface, InterfaceAddress,
    Listener, LoadBalancer, Member, Pool, Server, SlugStub, Stub, SubnetStub, VipAddress,
};
pub use write::{
    HttpChange, ListenerChange, MonitorChange, NewBalancer, NewHttp, NewListener, NewMember, NewMonitor,
    NewPool, NewVip,
};
